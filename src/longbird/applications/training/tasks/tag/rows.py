"""Rows with tags: words with a tag each, or text with labelled spans of characters."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from longbird.applications.training.data.columns import NAMES, as_text, find_column, group_of
from longbird.applications.training.data.files import CONLL, Row, kind
from longbird.applications.training.settings.tasks import TagSettings
from longbird.errors import InvalidValueError

IOB = re.compile(r"O|[BI]-.+", re.DOTALL)
OPENED = "tags such as I-{name} that begin an entity are read as B-{name} (IOB1 becomes IOB2)"


def tagged(
    rows: Iterable[Row],
    settings: TagSettings,
    say: Callable[[str], None],
    labelled: bool = True,
    text: str | None = None,
) -> Iterator[dict[str, Any]]:
    """What each row holds: its text, its words or spans, and their tags.

    An example has the `text`; `words`, where each begins and ends in it, with `tags`, or else
    `spans`, each with its begin, end and label. What is not known is None.

    Args:
        rows: Of a table, of a file with a word and its tag in each line, or of texts.
        settings: May name the columns.
        say: Is told of guesses.
        labelled: Must they have tags?
        text: Column of the text or the words, where the files need not have that of `settings`.

    Raises:
        ValueError: A row is not like that; says where.
    """
    columns: dict[Any, tuple[str, str | None]] = {}
    said: set[str] = set()

    def once(line: str) -> None:
        if line not in said:
            said.add(line)
            say(line)

    for row in rows:
        if kind(row.file) in CONLL or (labelled and not row.line and [*row.values] == ["text"]):
            for line, words, tags in _lines(row, labelled):
                here = row._replace(line=line)
                yield _of_words(here, words, tags if labelled else None, settings, once)
            continue
        names = tuple(row.values)
        if names not in columns:
            named = settings.text if labelled or settings.text in names else text
            columns[names] = _columns(row, named, settings.label, labelled, once)
        column, label = columns[names]
        value, truth = row.values[column], None if label is None else row.values[label]
        if isinstance(value, str) and column.lower() in NAMES["tokens"]:
            value, truth = value.split(), truth.split() if isinstance(truth, str) else truth
        if isinstance(value, list):
            words = [_word(word, row, column) for word in value]
            tags = None if label is None else _tags(truth, len(words), row, label)
            yield _of_words(row, words, tags, settings, once)
            continue
        content = as_text(value, row, column)
        yield {
            "place": row.place,
            "file": str(row.file),
            "line": row.line,
            "text": content,
            "words": None,
            "tags": None,
            "spans": None if label is None else _spans(truth, content, row, label),
            "group": group_of(row, content, settings.group),
        }


def _columns(
    row: Row, text: str | None, label: str | None, labelled: bool, say: Callable[[str], None]
) -> tuple[str, str | None]:
    """The column of words or text, and that of tags or spans."""
    names = list(row.values)
    has_tokens = any(name.lower() in NAMES["tokens"] for name in names)
    column = find_column("tokens" if has_tokens else "text", text, names, say, option="text")
    if not labelled:
        return column, None
    is_words = isinstance(row.values[column], list) or column.lower() in NAMES["tokens"]
    others = [name for name in names if name != column]
    wanted = "tags" if is_words else "spans"
    return column, find_column(wanted, label, others, say, option="label", alone=column == "text")


def _of_words(
    row: Row,
    words: list[str],
    tags: list[str] | None,
    settings: TagSettings,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """An example of words, which are joined by spaces."""
    text = " ".join(words)
    ends = list(itertools.accumulate(words, lambda end, word: end + 1 + len(word), initial=-1))[1:]
    return {
        "place": row.place,
        "file": str(row.file),
        "line": row.line,
        "text": text,
        "words": [(end - len(word), end) for word, end in zip(words, ends, strict=True)],
        "tags": None if tags is None else _opened(tags, say),
        "spans": None,
        "group": group_of(row, text, settings.group),
    }


def _opened(tags: list[str], say: Callable[[str], None]) -> list[str]:
    """Tags of the scheme IOB1 as those of IOB2: every entity begins with B-."""
    if not all(IOB.fullmatch(tag) for tag in tags):
        return tags
    fixed: list[str] = []
    before = "O"
    for tag in tags:
        if tag[0] == "I" and before[1:] != tag[1:]:
            say(OPENED.format(name=tag[2:]))
            fixed.append(f"B{tag[1:]}")
        else:
            fixed.append(tag)
        before = tag
    return fixed


def _word(value: Any, row: Row, column: str) -> str:
    if isinstance(value, (str, int, float)):
        return str(value)
    raise InvalidValueError(
        f"{row.place}: the column {column} holds {value!r:.60}, expected words"
    )


def _tags(value: Any, words: int, row: Row, column: str) -> list[str]:
    if not isinstance(value, list):
        raise InvalidValueError(
            f"{row.place}: the column {column} holds {value!r:.60}, expected a list with a tag "
            "for each word"
        )
    if len(value) != words:
        raise InvalidValueError(f"{row.place} has {words} words and {len(value)} tags in {column}")
    for tag in value:
        if not isinstance(tag, (str, int)) or str(tag).strip() == "":
            raise InvalidValueError(
                f"{row.place}: {column} has the tag {tag!r:.60}, expected text"
            )
    return [str(tag) for tag in value]


def _spans(value: Any, text: str, row: Row, column: str) -> list[tuple[int, int, str]]:
    """Spans by where they begin, from a list of objects or of [start, end, label]."""
    where = f"{row.place}: the column {column}"
    if isinstance(value, str):  # a table has only text
        with contextlib.suppress(json.JSONDecodeError):
            value = json.loads(value)
    if not isinstance(value, list):
        raise InvalidValueError(
            f'{where} holds {value!r:.60}, expected a list of {{"start": 0, "end": 4, "label": '
            '"name"}'
        )
    found: list[tuple[int, int, str]] = []
    for each in value:
        if isinstance(each, dict):
            start = each.get("start", each.get("start_offset"))
            end = each.get("end", each.get("end_offset"))
            label = each.get("label", each.get("type"))
        elif isinstance(each, list) and len(each) == 3:
            start, end, label = each
        else:
            start = end = label = None
        if (
            type(start) is not int
            or type(end) is not int
            or not isinstance(label, (str, int))
            or str(label).strip() == ""
        ):
            raise InvalidValueError(
                f"{where} has the span {each!r:.80}, expected a start, an end and a label"
            )
        if not 0 <= start < end <= len(text):
            raise InvalidValueError(
                f"{where} has a span from {start} to {end} in a text of {len(text)} characters"
            )
        if not text[start:end].strip():
            raise InvalidValueError(
                f"{where} has a span from {start} to {end}, which is only spaces"
            )
        found.append((start, end, str(label)))
    found.sort()
    for (start, end, label), (begin, close, other) in itertools.pairwise(found):
        if begin < end:
            raise InvalidValueError(
                f"{where} has spans that overlap: {label} from {start} to {end} and {other} from "
                f"{begin} to {close}. A character has one label: leave one of them out"
            )
    return found


def _lines(row: Row, labelled: bool) -> Iterator[tuple[int, list[str], list[str]]]:
    """The documents of a file with a word and its tag in each line: first line, words and tags.

    The first column is the word, or the second where the first only counts the words, and the last
    is its tag; blank lines divide documents.
    """
    lines = [line.rstrip("\r") for line in row.values["text"].split("\n")]
    fields = [
        [part.strip() for part in (line.split("\t") if "\t" in line else line.split())]
        for line in lines
    ]
    # A line that begins with # may be a word and its tag, but then it has as many columns.
    whole = [parts for parts in fields if any(parts) and parts[0] != "-DOCSTART-"]
    columns = next((len(parts) for parts in whole if not parts[0].startswith("#")), 2)
    counted = columns > 2 and _only_counts(whole, columns)
    begun, words, tags = 1, [], []
    for number, (line, parts) in enumerate(zip([*lines, ""], [*fields, [""]], strict=True), 1):
        if not line.strip() or parts[0] == "-DOCSTART-":
            if words:
                yield begun, words, tags
            words, tags = [], []
            continue
        if line.startswith("#") and columns != len(parts):
            continue  # a comment
        if labelled and (len(parts) != columns or columns < 2 or not parts[-1]):
            raise InvalidValueError(
                f"{row.file}, line {number}, is {line.strip()!r:.60}, expected a word and its tag"
                + (f" in {columns} columns as above" if columns > 1 else "")
                + ", with blank lines between documents"
            )
        begun = begun if words else number
        words.append(parts[1] if counted and len(parts) > 1 else parts[0])
        tags.append(parts[-1])


def _only_counts(lines: list[list[str]], columns: int) -> bool:
    """Does the first column count the words of each document, as in CoNLL-U?"""
    first = [parts[0] for parts in lines if len(parts) == columns]
    numbers = [int(part) if re.fullmatch("[0-9]{1,9}", part) else 0 for part in first]
    return numbers[:1] == [1] and all(
        now in (1, before + 1) for before, now in itertools.pairwise(numbers)
    )
