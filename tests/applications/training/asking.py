"""Files of questions that a tiny model can learn to answer, in the formats of the field."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

ORE = ("gold", "coal")
EARTH = "the a of to in sun rain snow wind".split()


def squad_file(file: Path, second: bool, longest: int = 30, count: int = 40) -> Path:
    """Which ore is in the document? In the second version, sometimes none."""
    drawn, articles = random.Random(0), []
    for number in range(count):
        words = drawn.choices(EARTH, k=drawn.randint(5, longest))
        asked: dict[str, Any] = {"id": f"q{number}", "question": "in the mine"}
        impossible = second and number % 3 == 0
        if not impossible:
            words.insert(drawn.randrange(len(words)), ORE[number % 2])
        context = " ".join(words)
        gold = {"text": ORE[number % 2], "answer_start": context.find(ORE[number % 2])}
        asked["answers"] = [] if impossible else [gold, gold]
        if second:
            asked["is_impossible"] = impossible
        articles.append(
            {"title": f"t{number}", "paragraphs": [{"context": context, "qas": [asked]}]}
        )
    file.write_text(json.dumps({"version": "x", "data": articles}))
    return file


def hotpot_file(file: Path, count: int = 40) -> Path:
    """Sentences with ore support the answer, which is the ore, yes or no."""
    drawn, rows = random.Random(1), []
    for number in range(count):
        ore, context, facts = ORE[number % 2], [], []
        for paragraph in range(3):
            title = f"rain {number} {paragraph}"
            sentences = [" ".join(drawn.choices(EARTH, k=4)) + " ." for _ in range(3)]
            if paragraph != number % 3:
                at = drawn.randrange(3)
                sentences[at] = f"{ore} {sentences[at]}"
                facts.append([title, at])
            context.append([title, sentences])
        kind = number % 4
        rows.append(
            {
                "_id": f"h{number}",
                "question": "in the port"
                if kind == 0
                else "to a ship"
                if kind == 2
                else "of a mine",
                "answer": "yes" if kind == 0 else "no" if kind == 2 else ore,
                "supporting_facts": facts,
                "context": context,
            }
        )
    file.write_text(json.dumps(rows))
    return file
