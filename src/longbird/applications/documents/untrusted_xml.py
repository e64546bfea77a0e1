"""Untrusted XML: refusing entity declarations before anything is parsed."""

from __future__ import annotations

import re

from longbird.applications.documents.errors import NotTextError

# Entities that refer to other entities can expand without bounds. A DOCTYPE without declarations
# is harmless, since no parser that is used here loads what it names.
DECLARATIONS = re.compile(rb"<!ENTITY|<!DOCTYPE[^>\[]*\[", re.I)


def check_xml(data: bytes, name: str) -> bytes:
    """Return the data unchanged.

    Raises:
        NotTextError: The data declares entities.
    """
    if DECLARATIONS.search(data.replace(b"\0", b"")):  # also finds them in UTF-16
        raise NotTextError(f"declares XML entities in {name}, which only harmful files do")
    return data
