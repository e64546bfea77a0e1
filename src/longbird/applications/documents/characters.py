"""Characters of a formatted document that are of no use in plain text."""

from __future__ import annotations

import re

# Ligatures, which are for the look, and spaces that only a typesetter tells apart.
LETTERS = dict(zip("ﬀﬁﬂﬃﬄﬅﬆ", ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True))
SPACES = {
    **dict.fromkeys(map(chr, range(0x2000, 0x200B)), " "),
    **dict.fromkeys("\xa0\u202f\u205f\u3000", " "),
}
# Soft hyphens, marks of no width, and what is not a character.
NOTHING = dict.fromkeys("\u00ad\u200b\u200e\u200f\u2060\ufeff\ufffe\uffff", "")
TABLE = str.maketrans({**LETTERS, **SPACES, **NOTHING, "\u2028": "\n", "\u2029": "\n"})
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    r"""Readable characters alone; half of a surrogate pair is none.

    Examples:
        >>> clean("an e\ufb03cient\u00a0co\u00adoperative")
        'an efficient cooperative'
    """
    text = CONTROLS.sub("", text.translate(TABLE))
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def valid_unicode(text: str) -> str:
    r"""Return the text with a question mark in place of each unpaired surrogate.

    Python represents undecodable bytes of file names and of typed input in this way, and no
    tokenizer accepts them.

    Examples:
        >>> valid_unicode("caf\udce9")
        'caf?'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
