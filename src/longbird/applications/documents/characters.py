"""Replacing characters of formatted documents that plain text does not need."""

from __future__ import annotations

import re

LIGATURES = dict(zip("ﬀﬁﬂﬃﬄﬅﬆ", ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True))
SPACES = {
    **dict.fromkeys(map(chr, range(0x2000, 0x200B)), " "),
    **dict.fromkeys("\xa0\u202f\u205f\u3000", " "),
}
# Soft hyphens, zero-width characters and noncharacters.
REMOVED = dict.fromkeys("\u00ad\u200b\u200e\u200f\u2060\ufeff\ufffe\uffff", "")
TABLE = str.maketrans({**LIGATURES, **SPACES, **REMOVED, "\u2028": "\n", "\u2029": "\n"})
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    r"""Return the text without ligatures, special spaces and invisible characters.

    Examples:
        >>> clean("an e\ufb03cient\u00a0co\u00adoperative")
        'an efficient cooperative'
    """
    return valid_unicode(CONTROLS.sub("", text.translate(TABLE)))


def valid_unicode(text: str) -> str:
    r"""Return the text with a question mark in place of each unpaired surrogate.

    Python represents undecodable bytes of file names and of typed input in this way, and no
    tokenizer accepts them.

    Examples:
        >>> valid_unicode("caf\udce9")
        'caf?'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
