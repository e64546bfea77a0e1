"""DNA as numbers, and tables of contexts, compared with loops over strings in float64."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from Bio.Seq import reverse_complement as of_biopython
from hypothesis import given
from hypothesis import strategies as st

from experiments.dna.bases import codes, ending_words, letters, reverse_complement, words
from experiments.dna.bits import tables
from experiments.dna.corpora import by_piece, corpus, of_one
from experiments.dna.markov import Markov, TwoSided, choose
from experiments.dna.organisms import bacterium
from experiments.framework.experiment import Attempt, ratio_of

dna = st.text("ACGTN", max_size=60)


@given(dna)
def test_letters_and_strands(text: str) -> None:
    assert letters(codes(text)) == letters(codes(text.lower())) == text
    assert letters(reverse_complement(codes(text))) == of_biopython(text)
    assert letters(codes(text.replace("N", "R"))) == text


@given(dna, st.integers(1, 31))
def test_words(text: str, length: int) -> None:
    def number(word: str) -> int:
        value = 0
        for letter in word:
            value = 4 * value + "ACGT".index(letter)
        return value

    expected = [
        -1 if "N" in text[at : at + length] else number(text[at : at + length])
        for at in range(len(text) - length + 1)
    ]
    assert words(codes(text), length).tolist() == expected
    rows = np.stack([codes(text), codes(text)])
    assert words(rows, length).tolist() == [expected, expected]
    for size, ending in enumerate(ending_words(codes(text), length), start=1):
        assert (ending[: size - 1] == -1).all()
        assert len(ending) == len(text)


def one_sided(train: list[str], text: str, order: int, strength: float) -> list[float]:
    """Counts in a dictionary, and the recursion as it is written."""
    counts: Counter[tuple[str, str]] = Counter()
    for sequence in train:
        for strand in (sequence, of_biopython(sequence)):
            for at, base in enumerate(strand):
                for k in range(order + 1):
                    context = strand[at - k : at] if at >= k else "N"
                    if "N" not in context + base:
                        counts[context, base] += 1

    def probability(context: str, base: str) -> float:
        shorter = probability(context[1:], base) if context else 0.25
        total = sum(counts[context, each] for each in "ACGT")
        return (counts[context, base] + strength * shorter) / (total + strength)

    bits: list[float] = []
    for at, base in enumerate(text):
        context = text[max(0, at - order) : at].rpartition("N")[2]
        bits.append(math.nan if base == "N" else -math.log2(probability(context, base)))
    return bits


@given(st.lists(dna, min_size=1, max_size=3), dna, st.integers(0, 4), st.floats(0.1, 50))
def test_one_sided(train: list[str], text: str, order: int, strength: float) -> None:
    model = Markov(order).count([codes(each) for each in train])
    expected = one_sided(train, text, order, strength)
    assert model.bits(codes(text), strength).shape == (order + 1, len(text))
    np.testing.assert_allclose(model.bits(codes(text), strength)[order], expected, rtol=1e-12)


def two_sided(train: list[str], text: str, width: int, strength: float) -> list[float]:
    counts: Counter[tuple[str, str, str]] = Counter()
    for sequence in train:
        for strand in (sequence, of_biopython(sequence)):
            for at, base in enumerate(strand):
                for k in range(width + 1):
                    left, right = strand[max(0, at - k) : at], strand[at + 1 : at + 1 + k]
                    if len(left) == len(right) == k and "N" not in left + base + right:
                        counts[left, base, right] += 1

    def probability(left: str, base: str, right: str) -> float:
        inner = probability(left[1:], base, right[:-1]) if left else 0.25
        total = sum(counts[left, each, right] for each in "ACGT")
        return (counts[left, base, right] + strength * inner) / (total + strength)

    bits: list[float] = []
    for at, base in enumerate(text):
        left = text[max(0, at - width) : at].rpartition("N")[2]
        right = text[at + 1 : at + 1 + width].partition("N")[0]
        k = min(len(left), len(right))
        said = probability(left[len(left) - k :], base, right[:k]) if base != "N" else math.nan
        bits.append(-math.log2(said))
    return bits


@given(st.lists(dna, min_size=1, max_size=3), dna, st.integers(0, 3), st.floats(0.1, 50))
def test_two_sided(train: list[str], text: str, width: int, strength: float) -> None:
    model = TwoSided(width).count([codes(each) for each in train])
    expected = two_sided(train, text, width, strength)
    found = model.bits(codes(text), strength)[width]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    other = model.bits(reverse_complement(codes(text)), strength)[width]
    assert np.array_equal(found, other[::-1], equal_nan=True)  # the same on either strand


@pytest.mark.parametrize("table", [Markov, TwoSided])
def test_tables_say_how_likely_each_base_is(table: type[Markov] | type[TwoSided]) -> None:
    """Over the four bases that could be there, probabilities are one together."""
    random = np.random.default_rng(0)
    model = table(2).count([random.integers(0, 4, 500).astype(np.uint8)])
    sequence, at = random.integers(0, 4, 50).astype(np.uint8), 20
    total = np.zeros(3)
    for base in range(4):
        sequence[at] = base
        total += 2.0 ** -model.bits(sequence, 3.0)[:, at]
    np.testing.assert_allclose(total, 1.0)


def test_a_table_is_chosen_by_what_it_did_not_count() -> None:
    random = np.random.default_rng(0)
    chain = [0]
    for _ in range(6000):  # of order 1: a base is followed by the next one, or by any
        follows = (chain[-1] + 1) % 4 if random.random() < 0.7 else int(random.integers(4))
        chain.append(follows)
    sequence = np.array(chain, np.uint8)
    sequence[::7] = random.integers(0, 4, len(sequence[::7]))
    corpus = of_one(sequence, circular=False, gap=10)
    assert [len(x) for x in corpus.test] == [6001 - 6001 * 4 // 5]
    model = Markov(6).count(corpus.train)
    chosen = choose(model, corpus.validation, strengths=(0.01, 10.0))
    every = [
        (model.bits(corpus.validation[0], s)[k].mean(), k, s)
        for k in range(7)
        for s in (0.01, 10.0)
    ]
    assert (chosen.bits, chosen.size, chosen.strength) == min(every)
    assert chosen.size < 6 or chosen.strength == 10.0
    given = choose(model, corpus.validation, size=6)
    assert given.size == 6
    assert given.bits >= chosen.bits


def test_bits_by_piece() -> None:
    values = np.random.default_rng(0).random(1000)
    values[[3, 500]] = np.nan
    sums, known = by_piece(values, 300)
    assert known.tolist() == [299, 299, 300, 100]
    assert sums[1] == pytest.approx(np.nansum(values[300:600]))


@pytest.mark.slow  # 22 MB, and a genome
def test_the_last_fifth_of_e_coli() -> None:
    """As measured elsewhere, without a gap: 1.952 by 3 bases, 1.931 by 7, 1.848 by 4 and 4."""
    expected = {"one-sided table, order 3": 1.952, "one-sided table, order 7": 1.931}
    expected |= {"two-sided table, 4 + 4": 1.848}
    for contestant in tables(partial(corpus, "E. coli"), {}):
        if contestant.name in expected:
            outcome = contestant.attempt(Attempt(0, Path(), lambda _: None))
            columns = {name: np.array(x) for name, x in outcome.documents.items()}
            [bits] = ratio_of("bits", "bases")(columns, np.ones((1, len(columns["bits"]))))
            assert columns["bases"].sum() == 4_641_652 - 4_641_652 * 4 // 5
            assert bits == pytest.approx(expected[contestant.name], abs=0.003)
    coding = bacterium("E. coli").codons["U00096.3"] >= 0
    assert coding.any(0).mean() == pytest.approx(0.879, abs=0.0005)
