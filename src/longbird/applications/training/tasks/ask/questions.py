"""Questions about documents in the user's files: SQuAD's format, HotpotQA's, or columns."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from longbird.applications.training.data.columns import find_column, value_of
from longbird.applications.training.data.files import Row
from longbird.errors import InvalidValueError


@dataclass(frozen=True)
class Sentence:
    """A sentence of a document, by the characters that it has, and by its name in the file."""

    start: int
    end: int
    title: str
    index: int


@dataclass(frozen=True)
class Question:
    """A question about a document, with what is right.

    Attributes:
        place: Where it stands in the files.
        question: The question itself.
        text: The document.
        answers: All that are right; none if the document has no answer.
        kind: Of `TYPES`.
        spans: Characters of the document, first and behind the last, that are the answer.
        metric: Whose definition of a right answer holds: squad1, squad2 or hotpot.
        together: Questions that share one of these stay on one side of a split.
        sentences: Of the document, where the file has them.
        support: The title and index of each sentence that supports the answer; None if unknown.
    """

    place: str
    question: str
    text: str
    answers: list[str]
    kind: str
    spans: list[tuple[int, int]]
    metric: str
    together: tuple[str, ...]
    sentences: list[Sentence] = field(default_factory=list[Sentence])
    support: list[tuple[str, int]] | None = None


def questions(
    rows: Iterable[Row], columns: Mapping[str, str | None], say: Callable[[str], None]
) -> Iterator[Question]:
    """The questions of rows in any of the formats, which may differ from file to file.

    Args:
        rows: Of the user's files.
        columns: The names that the user gave for `question`, `context`, `answer` and `group`,
            and what is the `separator` of several answers.
        say: Is told of what was recognised.
    """
    file, found = None, {}
    for row in rows:
        new = row.file != file
        file = row.file
        if "paragraphs" in row.values:
            if new:
                say(f"{file} is in SQuAD's format")
            read = _squad(row)
        elif _has_paragraphs(row.values.get("context")):
            if new:
                say(f"{file} is in HotpotQA's format")
            read = [_hotpot(row)]
        else:
            if new or not found:  # rows before it may have been of another format
                found = {
                    wanted: find_column(wanted, columns[wanted], list(row.values), say)
                    for wanted in ("question", "context", "answer")
                }
            read = [_columns(row, found, columns["separator"])]
        group = columns["group"]
        for each in read:
            named = () if group is None else (f"{group}: {value_of(row, group)}",)
            same = (*named, *each.together)
            hashes = (hashlib.sha256(one.encode()).hexdigest() for one in same)
            yield replace(each, together=tuple(hashes))


# ---- SQuAD: articles of paragraphs, each with questions


def _squad(row: Row) -> Iterator[Question]:
    title = str(row.values.get("title", ""))
    for paragraph in _list(row.values["paragraphs"], dict, f"{row.place}: paragraphs"):
        text = _text(paragraph.get("context"), f"{row.place}: the context of a paragraph")
        for asked in _list(paragraph.get("qas"), dict, f"{row.place}: the qas of a paragraph"):
            place = f"{row.place}, question {asked.get('id', '?')}"
            golds = _golds(asked.get("answers"), place)
            # The second version marks its questions, answerable or not.
            second = "is_impossible" in asked
            if asked.get("is_impossible"):
                golds = []
            elif not golds:
                raise InvalidValueError(
                    f"{place} has no answers; one that the document does not answer has "
                    '"is_impossible": true'
                )
            yield Question(
                place=place,
                question=_asked(asked.get("question"), place),
                text=text,
                answers=[answer for answer, _ in golds],
                kind="span" if golds else "none",
                spans=_unique(span for gold in golds for span in _at(text, *gold)),
                metric="squad2" if second else "squad1",
                together=(title or text,),
            )


def _at(text: str, answer: str, start: int | None) -> list[tuple[int, int]]:
    """Where an answer stands that begins with a character, or near it."""
    if start is not None and text[start : start + len(answer)] == answer and answer.strip():
        return [(start, start + len(answer))]
    found = mentions(text, answer)
    return found if start is None else sorted(found, key=lambda span: abs(span[0] - start))[:1]


# ---- HotpotQA: paragraphs of sentences, some of which support the answer


def _has_paragraphs(context: Any) -> bool:
    """Is it a list of [title, [sentences]], or the same as columns?"""
    if isinstance(context, dict):
        return "title" in context and "sentences" in context
    return (
        isinstance(context, list)
        and len(context) > 0
        and all(isinstance(each, list) and len(each) == 2 for each in context)
    )


def _hotpot(row: Row) -> Question:
    values, place = row.values, row.place
    if "_id" in values or "id" in values:
        place = f"{place}, question {values.get('_id', values.get('id'))}"
    for wanted in ("answer", "supporting_facts"):
        if values.get(wanted) is None:
            raise InvalidValueError(
                f"{place} has no {wanted}: the file has questions without answers"
            )
    facts = values["supporting_facts"]
    if isinstance(facts, dict):
        facts = list(zip(facts.get("title", []), facts.get("sent_id", []), strict=False))
    try:
        support = _unique((str(title), int(index)) for title, index in facts)
    except (TypeError, ValueError):
        raise InvalidValueError(
            f"{place}: supporting_facts holds {json.dumps(facts)[:60]}, expected [title, index] "
            "of each"
        ) from None
    text, sentences = _joined(values["context"], place)
    answer = _text(values["answer"], f"{place}: the answer")
    kind = answer.strip().lower() if answer.strip().lower() in ("yes", "no") else "span"
    if not answer.strip():
        kind = "none"
    answers = [answer] if kind != "none" else []
    if kind == "span":  # other ways to say it, which SQuAD has
        answers += [gold for gold, _ in _golds(values.get("answers"), place) if gold.strip()]
    supporting = [each for each in sentences if (each.title, each.index) in set(support)]
    within = [(each.start, each.end) for each in supporting]
    spans: list[tuple[int, int]] = []
    for gold in answers if kind == "span" else ():
        near = [span for piece in within for span in mentions(text, gold, *piece)]
        spans += near or mentions(text, gold)
    return Question(
        place=place,
        question=_asked(values.get("question"), place),
        text=text,
        answers=_unique(answers),
        kind=kind,
        spans=_unique(spans),
        metric="hotpot" if kind != "none" else "squad2",
        together=tuple(_unique(each.title for each in sentences)) or (place,),
        sentences=sentences,
        support=support,
    )


def _joined(context: Any, place: str) -> tuple[str, list[Sentence]]:
    """Paragraphs as one text, each after its title, and where the sentences are in it."""
    if isinstance(context, dict):
        context = list(zip(context["title"], context["sentences"], strict=False))
    text, sentences = "", []
    for title, parts in context:
        title = _text(title, f"{place}: the title of a paragraph")
        text += f"{title}\n"
        for index, part in enumerate(_list(parts, str, f"{place}: the paragraph {title}")):
            begins = len(text) + len(part) - len(part.lstrip())
            text += part
            if part.strip():
                sentences.append(Sentence(begins, len(text), title, index))
        text += "\n\n"
    return text, sentences


# ---- columns


def _columns(row: Row, names: Mapping[str, str], separator: str | None) -> Question:
    question, context, answer = (
        value_of(row, names[wanted]) for wanted in ("question", "context", "answer")
    )
    text = _text(context, f"{row.place}: the column {names['context']}")
    if isinstance(answer, str) and separator is not None:
        answer = [part.strip() for part in answer.split(separator)]
    golds = _golds(answer, f"{row.place}: the column {names['answer']}")
    golds = [(gold, start) for gold, start in golds if gold.strip()]
    said = {gold.strip().lower() for gold, _ in golds}
    kind = "span" if golds else "none"
    if len(said) == 1 and said <= {"yes", "no"}:
        (kind,) = said
    spans = (span for gold in golds for span in _at(text, *gold)) if kind == "span" else ()
    return Question(
        place=row.place,
        question=_asked(question, row.place),
        text=text,
        answers=[gold for gold, _ in golds],
        kind=kind,
        spans=_unique(spans),
        metric="squad2",
        together=(" ".join(text.split()).lower(),),
    )


def _golds(value: Any, where: str) -> list[tuple[str, int | None]]:
    """Answers with the character each begins with, or None where that is not said."""
    if value is None:
        return []
    if isinstance(value, bool):
        return [("yes" if value else "no", None)]
    if isinstance(value, (int, float)):
        return [(str(value), None)]
    if isinstance(value, str):
        return [(value, None)]
    if isinstance(value, dict):
        texts, starts = value.get("text"), value.get("answer_start")
        if isinstance(texts, list):
            starts = starts if isinstance(starts, list) else [None] * len(texts)
            pairs = zip(texts, starts, strict=False)
            return [(_text(text, where), _start(start, where)) for text, start in pairs]
        return [(_text(texts, where), _start(starts, where))]
    if isinstance(value, list):
        return [gold for each in value for gold in _golds(each, where)]
    raise InvalidValueError(f"{where} holds {_shown(value)}, expected an answer")


def _start(value: Any, where: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value < 0):
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise InvalidValueError(
        f"{where} has an answer_start of {_shown(value)}, expected a whole number"
    )


# ---- what they share


def mentions(
    text: str, answer: str, start: int = 0, end: int | None = None
) -> list[tuple[int, int]]:
    """Where an answer stands in a part of a text, as whole words if it does anywhere.

    Examples:
        >>> mentions("Ann met Anna. ann left.", "Ann")
        [(0, 3)]
        >>> mentions("Anna left.", "ann")
        [(0, 3)]
    """
    words = answer.strip()
    if not words:
        return []
    exact = re.escape(words)
    whole = rf"(?<!\w){exact}(?!\w)"
    end = len(text) if end is None else end
    for pattern, flags in ((whole, 0), (whole, re.IGNORECASE), (exact, re.IGNORECASE)):
        found = [each.span() for each in re.compile(pattern, flags).finditer(text, start, end)]
        if found:
            return found
    return []


def _unique(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _asked(value: Any, place: str) -> str:
    question = _text(value, f"{place}: the question")
    if not question.strip():
        raise InvalidValueError(f"{place}: the question is empty")
    return question


def _text(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    raise InvalidValueError(f"{where} is {_shown(value)}, expected text")


def _list(value: Any, of: type, where: str) -> list[Any]:
    if isinstance(value, list) and all(isinstance(each, of) for each in value):
        return value
    expected = {dict: "objects", str: "texts"}[of]
    raise InvalidValueError(f"{where} holds {_shown(value)}, expected a list of {expected}")


def _shown(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)[:60]
