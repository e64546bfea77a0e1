"""Errors of files that cannot be read as documents."""

from __future__ import annotations

from longbird.errors import InvalidFileError


class UnreadableError(InvalidFileError):
    """A file cannot be read as text; the message names the file, the reason and the remedy."""


class NotTextError(Exception):
    """The reason why a file cannot be read, phrased to follow the name of the file."""
