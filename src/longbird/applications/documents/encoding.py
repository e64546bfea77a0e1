"""Decoding bytes to text, with detection of the encoding."""

from __future__ import annotations

import codecs

from longbird.applications.documents.errors import NotTextError
from longbird.errors import InvalidValueError

# UTF-32 comes first, since its mark starts with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SAMPLE = 2**16
# All control characters but those that text may contain: backspace (manual pages), tab, line ends,
# form feed, the end of a DOS file, and escape (terminal colours).
CONTROLS = bytes(set(range(32)) - {8, 9, 10, 11, 12, 13, 26, 27}) + b"\x7f"
CONTROLS_IN_TEXT = 0.02
"""Maximum share of control characters in text; compressed data has three times as many."""


def decode(
    data: bytes, encoding: str | None = None, declared: str | None = None
) -> tuple[str, list[str]]:
    r"""Return the text, with "\n" at the end of each line, and notes on how it was decoded.

    The caller names an `encoding` that the data must have; the file may have `declared` one.

    Raises:
        NotTextError: The data is not in the encoding that the caller named.
    """
    marked = next((name for mark, name in MARKS if data.startswith(mark)), None)
    if encoding is not None:
        text, notes = _named(data, encoding), list[str]()
    elif marked is not None:
        text, notes = _replacing(data, marked)
    elif (wide := _wide(data)) is not None:
        text, notes = _replacing(data, wide)
        notes.append(f"read as {wide.upper()}, judging by the pattern of its bytes")
    elif declared is not None and (known := _codec(declared)):
        text = data.decode(known, "replace")
        notes = _replaced(text.count("\ufffd") - data.count("\ufffd".encode()), known)
    else:
        text, notes = _guessed(data)
    if "\0" in text:
        notes.append(f"{text.count(chr(0)):,} NUL bytes are read as spaces")
        text = text.replace("\0", " ")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removeprefix("\ufeff"), notes


def check_text(data: bytes) -> None:
    """Raise NotTextError if the data cannot be text in any encoding that is detected."""
    if data.startswith(tuple(mark for mark, _ in MARKS)) or _wide(data) is not None:
        return
    sample = data[:SAMPLE]
    controls = len(sample) - len(sample.translate(None, CONTROLS))
    if controls > CONTROLS_IN_TEXT * len(sample):
        raise NotTextError(
            f"is not text: of its first {len(sample):,} bytes {controls:,} are control characters"
        )


def _named(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise NotTextError(
            f"is not {encoding}: byte {data[error.start]:#04x} at position {error.start:,} is not "
            "valid in it. Set `encoding` to that of the file, or leave it out to detect it"
        ) from error
    except UnicodeError as error:  # raised by codecs that give no position
        raise NotTextError(f"is not {encoding}: {error}") from error
    except LookupError as error:
        raise InvalidValueError(
            f"`encoding` must be a known encoding such as utf-8, cp1252, latin-1 or shift_jis, "
            f"received {encoding!r}"
        ) from error


def _replacing(data: bytes, encoding: str) -> tuple[str, list[str]]:
    text = data.decode(encoding, "replace")
    return text, _replaced(text.count("\ufffd") - data.count("\ufffd".encode(encoding)), encoding)


def _wide(data: bytes) -> str | None:
    """Detect UTF-16 without a mark: in most languages, every other byte is usually NUL."""
    sample = data[: min(len(data), SAMPLE) // 2 * 2]
    if len(sample) < 4 or b"\0" not in sample:
        return None
    even, odd = (sample[start::2].count(0) / (len(sample) // 2) for start in (0, 1))
    if odd > 0.4 and even < 0.05:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 and odd < 0.05 else None


def _guessed(data: bytes) -> tuple[str, list[str]]:
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError as error:
        first = error.start
    # A few invalid bytes among many valid UTF-8 sequences are damage, not another encoding: text
    # in other encodings rarely contains sequences that are valid UTF-8.
    text = data.decode("utf-8", "replace")
    wrong = text.count("\ufffd") - data.count("\ufffd".encode())
    ascii_alone = len(data.translate(None, bytes(range(128, 256))))
    right = len(text) - text.count("\ufffd") - ascii_alone
    if right > 3 * wrong or (wrong == 1 and first >= len(data) - 3 and right):
        return text, _replaced(wrong, "utf-8")
    try:
        text, name = data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        text, name = data.decode("latin-1"), "latin-1"
    line = data.count(b"\n", 0, first) + 1
    return text, [
        f"read as {name}, since it is not UTF-8 (byte {data[first]:#04x} in line {line:,}); set "
        "`encoding` if letters are wrong"
    ]


def _replaced(number: int, encoding: str) -> list[str]:
    if number <= 0:
        return []
    what = "character is" if number == 1 else "characters are"
    return [f"{number:,} {what} not valid {encoding.upper()} and read as \ufffd"]


def _codec(label: str) -> str | None:
    """Return Python's name for a declared encoding, interpreted as browsers do."""
    label = label.strip().lower()
    aliases = {
        "iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252",
        "iso8859-1": "cp1252", "x-sjis": "cp932", "shift_jis": "cp932", "shift-jis": "cp932",
        "gb2312": "gb18030", "gbk": "gb18030", "ks_c_5601-1987": "cp949", "euc-kr": "cp949",
        "x-mac-roman": "mac-roman", "macintosh": "mac-roman", "iso-8859-9": "cp1254",
        "tis-620": "cp874", "x-gbk": "gb18030", "big5": "big5hkscs",
    }  # fmt: skip
    # A declaration of UTF-16 is wrong, since it could not have been read.
    name = "utf-8" if label.startswith(("utf-16", "unicode")) else aliases.get(label, label)
    try:
        info = codecs.lookup(name)
        b"a".decode(name)
    except (LookupError, ValueError, TypeError):
        return None
    return None if info.name == "utf-8" else info.name  # which is tried first in any case
