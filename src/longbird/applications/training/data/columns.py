"""Which column is the text and which the label: named, or guessed where that is certain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from longbird.applications.training.data.files import Row
from longbird.errors import InvalidValueError

NAMES = {
    "text": ("text", "document", "content", "body", "article", "review", "abstract"),
    "label": ("label", "labels", "category", "class", "target", "tags"),
    "context": ("context", "document", "passage", "text", "article", "paragraph"),
    "question": ("question", "query"),
    "answer": ("answer", "answers"),
    "summary": ("summary", "highlights", "abstract", "headline", "title"),
    "choices": ("choices", "options", "endings"),
    "right choice": ("label", "answer", "answerkey", "answer_key", "correct", "target", "gold"),
    "positive": (
        "positive",
        "positives",
        "pos",
        "passage",
        "document",
        "context",
        "text",
        "answer",
        "text2",
        "sentence2",
    ),
    "query": ("query", "anchor", "question", "text1", "sentence1"),
    "negative": ("negative", "hard_negative"),
    "tokens": ("tokens", "words"),
    "tags": ("tags", "labels", "label", "ner_tags", "pos_tags", "ner", "pos"),
    "spans": ("spans", "entities", "annotations", "labels", "label"),
}
"""By what a task needs: the names that a column for it usually has, in lower case."""


def find_column(
    wanted: str,
    named: str | None,
    columns: Sequence[str],
    say: Callable[[str], None],
    option: str | None = None,
    alone: bool = False,
) -> str:
    """The column for what is wanted.

    Args:
        wanted: A key of `NAMES`.
        named: What the user named.
        columns: Of the file.
        say: Is told of a guess.
        option: That names the column; `wanted` by default.
        alone: Whether the only column is taken, whatever its name.

    Raises:
        ValueError: There is no such column, or several could be it.
    """
    option = option or wanted
    if named is not None:
        if named in columns:
            return named
        raise InvalidValueError(
            f"`{option}={named}` names a column that is not among {_list(columns)}"
        )
    likely = [column for column in columns if column.lower() in NAMES[wanted]]
    if wanted in columns:
        likely = [wanted]
    elif alone and not likely and len(columns) == 1:
        likely = [*columns]
    if len(likely) != 1:
        those = f"any of {_list(likely)} could be" if likely else f"there are {_list(columns)}"
        raise InvalidValueError(f"which column is the {wanted}? {those}; name it with `{option}`")
    if likely[0] != wanted:
        say(f"the column {likely[0]} is taken as the {wanted} (`{option}` names another)")
    return likely[0]


def _list(columns: Sequence[str]) -> str:
    return ", ".join(columns)


def as_text(value: Any, row: Row, column: str) -> str:
    """The text of a column."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidValueError(
                f"{row.place}: the column {column} holds {value[error.start]!a}, half of a pair "
                "of surrogates, which is no character"
            ) from error
        return value
    raise InvalidValueError(
        f"{row.place}: the column {column} holds {json.dumps(value, default=str)[:60]}, expected "
        "text"
    )


def as_label(value: Any, row: Row, column: str) -> str:
    """A label as text; 3.0 is 3, as a column of whole numbers has it once a row lacks its own."""
    missing = value is None or value != value or str(value).strip() == ""  # NaN is not itself
    if missing or not isinstance(value, (str, int, float)):
        raise InvalidValueError(
            f"{row.place}: the column {column} is empty or holds no label: {value!r:.60}"
        )
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def group_of(row: Row, text: Any, column: str | None) -> list[str]:
    """What stays on one side of a split: equal texts, and equal values of a column if named.

    Texts are compared by how they begin, which takes no time for one of 300 MB.
    """
    named = [] if column is None else [f"{column}: {value_of(row, column)}"]
    same = " ".join(str(text)[:100_000].split()).lower()
    return [hashlib.sha256(each.encode()).hexdigest() for each in (*named, same)]


def value_of(row: Row, column: str) -> Any:
    """What a row has in a column."""
    if column not in row.values:
        raise InvalidValueError(
            f"{row.place} has no column {column}; it has {', '.join(row.values) or 'none'}"
        )
    return row.values[column]
