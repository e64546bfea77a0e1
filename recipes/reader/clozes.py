"""Questions that nobody had to write: a statement of one paragraph, asked of another one.

What a sentence says of a name or a number is often said again in another paragraph. The sentence
without the name is the question, and the name in the other paragraph its answer: to find it, a
reader has to understand what is asked for, since no other words need to agree. This is the span
selection of Glass et al. (2020) [1], with words like "who" and "when" in the gap.

References:
    [1] M. Glass et al., "Span Selection Pre-training for Question Answering", ACL 2020.
"""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Any

WORD = re.compile(r"[A-Za-z0-9][\w'\u2019-]*")
NAME = re.compile(
    r"(?:[A-Z][\w'\u2019.-]*|[0-9][0-9,.]*)(?:\s+(?:(?:of|the|de|and)\s+)?(?:[A-Z][\w'\u2019-]*|[0-9]+))*"
)
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip

SENTENCE = range(6, 46)
"""Words of a sentence that becomes a question."""
LONGEST = 170
"""Words of a paragraph that is asked."""
RARE, COMMON = 150, 1500
"""In how many paragraphs a word is that leads to others; that counts as a clue."""
NEAREST = 6
"""Paragraphs that are asked what a sentence says."""


def clozes(corpus: Corpus, draw: random.Random) -> Iterator[dict[str, Any]]:
    """At most one question for each sentence of the paragraphs, in HotpotQA's format.

    Args:
        corpus: The paragraphs.
        draw: Which paragraph, name and question word are taken.
    """
    for number, title in enumerate(corpus.titles):
        for sentence in corpus.paragraphs[title]:
            if len(words(sentence)) not in SENTENCE:
                continue
            nearest = corpus.nearest(sentence, number)
            draw.shuffle(nearest)
            made = (corpus.cloze(sentence, number, other, draw) for other in nearest)
            first = next((each for each in made if each is not None), None)
            if first is not None:
                yield first


def in_company(
    rows: Iterable[dict[str, Any]], corpus: Corpus, draw: random.Random, words: tuple[int, int]
) -> Iterator[dict[str, Any]]:
    """The same questions about more paragraphs: others that have much of what is asked.

    Args:
        rows: Questions about one paragraph each.
        corpus: Where others come from.
        draw: How many they are, and in which order.
        words: Of the whole document, at least and at most.
    """
    for row in rows:
        ((own, parts),) = row["context"]
        context, budget = [[own, parts]], draw.randint(*words)
        near = corpus.nearest(row["question"], corpus.titles.index(own), 60)
        far = draw.sample(range(len(corpus.titles)), 60)
        for number in dict.fromkeys((*near, *far)):
            title = corpus.titles[number]
            text = "".join(corpus.paragraphs[title])
            if title != own and not stands(row["answer"], text):
                context.append([title, list(corpus.paragraphs[title])])
                budget -= len(text.split())
            if budget < 0:
                break
        draw.shuffle(context)
        yield {**row, "context": context}


class Corpus:
    """Paragraphs, and how rare their words are.

    Attributes:
        paragraphs: Sentences by the title of their paragraph.
        titles: Of the paragraphs, which numbers stand for.
        words: Of each paragraph.
        having: The paragraphs that have a word.
        rarity: Of each word.
    """

    def __init__(self, paragraphs: Mapping[str, Sequence[str]]) -> None:
        self.paragraphs = paragraphs
        self.titles = list(paragraphs)
        self.words = [
            {word for sentence in paragraphs[title] for word in words(sentence)}
            for title in self.titles
        ]
        self.having: dict[str, list[int]] = defaultdict(list)
        for number, found in enumerate(self.words):
            for word in found:
                self.having[word].append(number)
        count = len(self.titles)
        self.rarity = {word: math.log(count / len(at)) for word, at in self.having.items()}

    def nearest(self, sentence: str, number: int, count: int = NEAREST) -> list[int]:
        """The paragraphs that share most with a sentence, but for paragraph `number`."""
        score: dict[int, float] = defaultdict(float)
        for word in sorted(set(words(sentence))):
            if len(having := self.having.get(word, ())) <= RARE:
                for other in having:
                    if other != number:
                        score[other] += self.rarity[word]
        return nlargest(count, score, key=score.__getitem__)

    def cloze(
        self, sentence: str, number: int, other: int, draw: random.Random
    ) -> dict[str, Any] | None:
        """The sentence as a question about paragraph `other`, where that answers it."""
        title = self.titles[other]
        parts = self.paragraphs[title]
        text = "".join(parts)
        shared = len(self.words[number] & self.words[other])
        alike = shared > 0.6 * min(len(self.words[number]), len(self.words[other]))
        answers = [each for each in names(sentence) if self._asks(each, sentence, other, text)]
        if alike or len(text.split()) > LONGEST or not answers:
            return None
        answer = draw.choice(answers)
        before, after = around(sentence, answer, draw)
        clues = set(words(f"{before} {after}")) & self.words[other]
        within = [index for index, part in enumerate(parts) if stands(answer, part)]
        if self._worth(clues) < 7 or not within:
            return None
        word = draw.choice(question_words(answer))
        turned = after and draw.random() < 0.35
        question = f"{word} {after}, {before}?" if turned else f"{before} {word} {after}?"
        support = max(within, key=lambda index: self._worth(clues & set(words(parts[index]))))
        return {
            "question": question.strip(),
            "answer": answer,
            "supporting_facts": [[title, support]],
            "context": [[title, list(parts)]],
        }

    def _asks(self, answer: str, sentence: str, other: int, text: str) -> bool:
        """Is this name in the other paragraph, with enough of what the sentence says of it?"""
        own = set(words(answer))
        clues = (set(words(sentence)) & self.words[other]) - own
        return (
            stands(answer, text)
            and any(self.rarity.get(word, 0.0) > 3.5 for word in own)
            and text.count(answer) <= 4
            and sentence.count(answer) == 1
            and self._worth(clues) >= 9
            and sum(len(self.having[word]) <= COMMON for word in clues) >= 2
        )

    def _worth(self, found: Iterable[str]) -> float:
        """How much it says that two texts share these words."""
        return math.fsum(self.rarity[x] for x in found if len(self.having[x]) <= COMMON)


def words(text: str) -> list[str]:
    """Of a text, in lower case."""
    return [word.lower() for word in WORD.findall(text)]


def names(sentence: str) -> list[str]:
    """Names, numbers and dates of a sentence, up to six words each.

    Examples:
        >>> names("The Mount of Olives was bought in 1854 by Baron Rothschild, of Paris.")
        ['The Mount of Olives', '1854', 'Baron Rothschild', 'Paris']
    """
    found = (each.group().rstrip(".,'") for each in NAME.finditer(sentence))
    return list(dict.fromkeys(each for each in found if len(each) > 1 and len(each.split()) <= 6))


def stands(answer: str, text: str) -> bool:
    """Is it in the text, as whole words?"""
    return re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text) is not None


def question_words(answer: str) -> list[str]:
    """What may stand in the gap."""
    if any(month in answer for month in MONTHS):
        return ["when", "what date", "on what date"]
    if re.fullmatch(r"1\d\d\d|20\d\d", answer):
        return ["when", "what year", "which year"]
    if re.fullmatch(r"[0-9,.]+", answer):
        return ["how many", "how much", "what number"]
    return ["who", "what", "which", "what", "where"]


def around(sentence: str, answer: str, draw: random.Random) -> tuple[str, str]:
    """Some words before and after the gap: questions are shorter than statements."""
    before, after = sentence.split(answer, 1)
    few = before.split()[-draw.randint(5, 14) :], after.split()[: draw.randint(5, 14)]
    return " ".join(few[0]), " ".join(few[1]).rstrip(". ")
