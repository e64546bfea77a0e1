"""Texts that belong together, row by row: pairs, triplets, or texts with a label."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from longbird.applications.training.data.columns import (
    NAMES,
    as_label,
    as_text,
    find_column,
    group_of,
    value_of,
)
from longbird.applications.training.data.files import Row
from longbird.applications.training.settings.tasks import EmbedSettings
from longbird.applications.training.tasks.embed.loss import NEGATIVE, POSITIVE, QUERY
from longbird.errors import InvalidValueError

NEGATIVES = re.compile(r"(hard[_ -]?)?neg(ative)?s?[_ -]?[0-9]*", re.IGNORECASE)
"""Columns of negatives: one, several with numbers, or one with a list."""
JUDGED = ("label", "labels", "score", "similarity", "gold_label", "is_duplicate", "relevance")
"""Columns that say whether the texts of a row belong together."""


class Columns:
    """Which columns hold the texts that belong together.

    Raises:
        ValueError: A column that was named is not there, or which are meant is not certain.
    """

    def __init__(
        self, names: Sequence[str], settings: EmbedSettings, say: Callable[[str], None]
    ) -> None:
        self.names = list(names)
        pairs = settings.query is not None or settings.positive is not None
        labels = settings.text is not None or settings.label is not None
        if not pairs and not labels:
            pairs, labels = (
                all(any(name.lower() in NAMES[each] for name in names) for each in wanted)
                for wanted in (("query", "positive"), ("text", "label"))
            )
            if not pairs and not labels:
                raise InvalidValueError(
                    f"which columns belong together? There are {', '.join(names) or 'none'}; name "
                    "a query and its document with `query` and `positive`, or a text and what "
                    "it is about with `text` and `label`"
                )
        if pairs and labels:
            raise InvalidValueError(
                f"the columns {', '.join(names)} could be pairs (`query`, `positive`) or texts "
                "with a label (`text`, `label`): name those that are meant"
            )
        if labels:
            self.query = None
            self.text = find_column("text", settings.text, names, say)
            self.label = find_column("label", settings.label, names, say)
            return
        self.query = find_column("query", settings.query, names, say)
        others = [name for name in names if name != self.query]
        self.positive = find_column("positive", settings.positive, others, say)
        others.remove(self.positive)
        if settings.negative is not None:
            self.negatives = [find_column("negative", settings.negative, others, say)]
        else:
            self.negatives = [name for name in others if NEGATIVES.fullmatch(name)]
        if self.negatives not in ([], ["negative"]) and settings.negative is None:
            say(f"negatives are the columns {', '.join(self.negatives)} (`negative` names others)")
        judged = [name for name in others if name.lower() in JUDGED]
        if judged and (settings.query is None or settings.positive is None):
            raise InvalidValueError(
                f"the column {judged[0]} may say which rows belong together and which do not, and "
                "all rows are taken to: keep those that do, and name the columns with `query` and "
                "`positive`"
            )

    def examples(self, row: Row, group: str | None) -> Iterator[dict[str, Any]]:
        """What a row holds: an example for each positive that it has."""
        if self.query is None:
            text = _text(row, self.text)
            yield {
                "place": row.place,
                "texts": [text],
                "kinds": [NEGATIVE],  # until another of its label is drawn
                "class": as_label(value_of(row, self.label), row, self.label),
                "group": group_of(row, text, group),
            }
            return
        query = _text(row, self.query)
        positives = _texts(row, self.positive)
        if not positives:
            raise InvalidValueError(
                f"{row.place}: the column {self.positive} is empty, expected text"
            )
        found = {normal(text) for text in positives}
        every = [text for name in self.negatives for text in _texts(row, name)]
        negatives = [text for text in every if normal(text) not in found]
        both = [name for text in (query, *positives) for name in group_of(row, text, group)]
        for positive in positives:
            yield {
                "place": row.place,
                "texts": [query, positive, *negatives],
                "kinds": [QUERY, POSITIVE, *[NEGATIVE] * len(negatives)],
                "class": normal(query),
                "group": both,
            }


def normal(text: str) -> str:
    """Equal for texts that differ in spaces and case alone."""
    return " ".join(text.split()).lower()


def _text(row: Row, column: str) -> str:
    text = as_text(value_of(row, column), row, column)
    if not text.strip():
        raise InvalidValueError(f"{row.place}: the column {column} is empty, expected text")
    return text


def _texts(row: Row, column: str) -> list[str]:
    """One text or a list of them; those that are empty are none."""
    value = value_of(row, column)
    if isinstance(value, str) and value.lstrip().startswith("["):  # a table has only text
        try:
            parsed = json.loads(value)
        except json.JSONDecodeError:
            parsed = None
        if isinstance(parsed, list) and all(isinstance(each, str) for each in parsed):
            value = parsed
    several = value if isinstance(value, list) else [] if value is None else [value]
    return [text for each in several if (text := as_text(each, row, column)).strip()]
