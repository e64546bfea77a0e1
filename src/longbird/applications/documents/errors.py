"""What a file is that cannot be read."""

from __future__ import annotations


class UnreadableError(ValueError):
    """A file that cannot be read as text: the message names it, and says why and what to do."""


class NotTextError(Exception):
    """Why something is not read, in words to stand behind the name of its file."""
