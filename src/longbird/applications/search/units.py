"""What of a document gets a vector of its own: all of it, each paragraph, or each sentence."""

from __future__ import annotations

from collections.abc import Sequence

from longbird.applications.documents.sentences import sentences
from longbird.errors import InvalidValueError

UNITS = ("document", "paragraph", "sentence")
CONTEXTS = ("document", "alone")

Range = tuple[int, int]
"""The first character, and the one behind the last."""


def units_of(text: str, unit: str) -> list[Range]:
    r"""Where the units of a text begin and end, without space around them.

    Examples:
        >>> units_of("One. Two.\n\nThree.", "paragraph")
        [(0, 9), (11, 17)]
        >>> units_of("One. Two.\n\nThree.", "sentence")
        [(0, 4), (5, 9), (11, 17)]
        >>> units_of("", "document"), units_of("", "sentence")
        ([(0, 0)], [])
    """
    match unit:
        case "document":
            return [(0, len(text))]
        case "paragraph":
            from longbird.applications.documents import Document

            return Document("", text).paragraphs()
        case _:
            return sentences(text)


def check_one_of(name: str, given: object, known: Sequence[str]) -> None:
    """Raises for a word that has no meaning."""
    if given not in known:
        raise InvalidValueError(
            f"{name} must be one of {', '.join(known)}, received {given!r:.80}"
        )


def check_ranges(text: str, ranges: Sequence[Range], number: int) -> list[Range]:
    """The ranges that a caller gives for a text.

    Raises:
        ValueError: One is not inside the text.
    """
    for start, end in ranges:
        if not 0 <= start <= end <= len(text):
            raise InvalidValueError(
                f"units of text {number} must be pairs (start, end) of characters with 0 <= start "
                f"<= end <= {len(text):,}, its length; received ({start}, {end})"
            )
    return [(int(start), int(end)) for start, end in ranges]
