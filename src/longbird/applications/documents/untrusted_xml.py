"""XML of strangers."""

from __future__ import annotations

import re

from longbird.applications.documents.errors import NotTextError

# An entity is text that stands for other text, and entities of entities grow without bounds. A
# plain DOCTYPE, without declarations of its own, is harmless: no parser here loads what it names.
DECLARATIONS = re.compile(rb"<!ENTITY|<!DOCTYPE[^>\[]*\[", re.I)


def check_xml(data: bytes, name: str) -> bytes:
    """The same bytes, if they declare nothing."""
    if DECLARATIONS.search(data.replace(b"\0", b"")):  # in UTF-16, too
        raise NotTextError(f"declares XML entities in {name}, as no program does but to harm")
    return data
