"""Baselines on DNA compared with loops, and on data with planted signals."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from Bio.Seq import reverse_complement as of_biopython
from small_coli import LENGTH, STARTS

from experiments.dna import (
    artificial,
    classifying,
    coding,
    motif,
    profile,
    profiling,
    promoters,
    scanning,
)
from experiments.dna.bases import codes, letters, reverse_complement
from experiments.dna.cnn import Cnn, Filters
from experiments.dna.examples import Examples
from experiments.dna.linear import (
    STRENGTHS,
    AtContent,
    OneHot,
    Scorer,
    Words,
    logistic,
    one_hot,
    scan,
    word_counts,
)
from experiments.dna.metrics import auroc_of, average_precision_of, mcc_of
from experiments.dna.periodic import ORDER, STRENGTH, Periodic
from experiments.dna.splits import GAP, TEST, TRAIN
from experiments.framework.experiment import Attempt, Contestant, Outcome, ratio_of


def random_codes(*shape: int, seed: int = 0, letters: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, letters, shape).astype(np.uint8)


# ---- classifiers of windows ----


def test_features() -> None:
    windows = random_codes(20, 40, letters=5)
    counts = word_counts(windows, 3)
    for row, window in zip(counts, windows, strict=True):
        text = letters(window)
        for number in range(64):
            word = "".join("ACGT"[number >> shift & 3] for shift in (4, 2, 0))
            assert row[number] == sum(text[at:].startswith(word) for at in range(40))
    flat = one_hot(windows).reshape(20, 40, 4)
    assert np.array_equal(flat.argmax(2)[windows < 4], windows[windows < 4])
    assert (flat.sum(2) == (windows < 4)).all()


def planted(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Windows of 60, every other one with TATAAT at place 30."""
    windows = random_codes(count, 60, seed=seed)
    windows[::2, 30:36] = codes("TATAAT")
    return windows, np.arange(count) % 2 == 0, np.arange(count) // 10


@pytest.mark.parametrize(
    ("make", "least"), [(AtContent, 0.6), (lambda: Words(4), 0.8), (OneHot, 0.99)]
)
def test_classifiers_find_what_was_planted(make: Callable[[], Scorer], least: float) -> None:
    scorer = make().fit(*planted(400, 0))
    windows, positive, _ = planted(200, 1)
    columns = {"score": scorer.scores(windows), "true": positive}
    assert auroc_of("score", "true")(columns, np.ones((1, 200)))[0] > least
    sequence = random_codes(300, seed=2, letters=5)
    expected = [scorer.scores(sequence[None, at : at + 60])[0] for at in range(241)]
    np.testing.assert_allclose(scan(scorer, sequence, 60, batch=50), expected, atol=1e-5)


def test_log_odds_are_those_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    windows, positive, groups = planted(300, 0)
    features = word_counts(windows, 2).astype(float)
    weights, bias = logistic(features, positive, groups)
    scaled = StandardScaler().fit_transform(features)
    models = [LogisticRegression(C=c, max_iter=300).fit(scaled, positive) for c in STRENGTHS]
    differences = [
        np.abs(model.decision_function(scaled) - features @ weights - bias).max()
        for model in models
    ]
    assert min(differences) < 1e-6  # one of them was chosen
    assert np.allclose(
        Words(2).fit(windows, positive, groups).scores(windows),
        features @ weights + bias,
        atol=1e-3,
    )


def test_a_network_has_the_parameters_that_it_says() -> None:
    assert sum(x.numel() for x in Filters().parameters()) == 147_001


def test_a_scan_by_a_network_is_that_of_each_window() -> None:
    network = Cnn(seed=0, filters=8)
    with torch.no_grad():
        network.model.train()(torch.rand(32, 4, 60))  # so that it normalises by something
    sequence = random_codes(400, letters=5)
    expected = network.scores(np.lib.stride_tricks.sliding_window_view(sequence, 60))
    np.testing.assert_allclose(network.scan(sequence, 60, stretch=100), expected, atol=1e-5)
    with pytest.raises(ValueError, match="scan with pool=1"):
        Cnn(pool=4).scan(sequence, 200)


def test_a_network_learns() -> None:
    windows, positive, groups = planted(400, 0)
    shifts = np.random.default_rng(0).integers(-20, 20, len(windows))
    windows = np.stack([np.roll(each, shift) for each, shift in zip(windows, shifts, strict=True)])
    network = Cnn(filters=16, epochs=10, learning_rate=5e-3).fit(windows, positive, groups)
    held, truth, _ = planted(200, 1)
    columns = {"score": network.scores(held), "true": truth}
    assert auroc_of("score", "true")(columns, np.ones((1, 200)))[0] > 0.9  # wherever it lies


def test_a_network_depends_on_its_seed() -> None:
    windows, positive, groups = planted(100, 0)
    first, again, other = (
        Cnn(seed, filters=4, epochs=1, batch=32).fit(windows, positive, groups).scores(windows)
        for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


# ---- genes ----


def planted_genes(count: int, seed: int) -> tuple[str, list[tuple[int, int, str]]]:
    """Genes with codons that mostly are GAC, on both strands, with other bases between them."""
    random = np.random.default_rng(seed)
    text, places = "", list[tuple[int, int, str]]()
    for _ in range(count):
        text += "".join(random.choice(list("ACGT"), int(random.integers(100, 200))))
        shares = ([0.1, 0.1, 0.7, 0.1], [0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1])
        codons = int(random.integers(80, 150))
        columns = [random.choice(list("ACGT"), codons, p=share) for share in shares]
        gene = "".join(a + b + c for a, b, c in zip(*columns, strict=True))
        strand = "+" if random.random() < 0.5 else "-"
        places.append((len(text), len(text) + len(gene), strand))
        text += gene if strand == "+" else of_biopython(gene)
    return text, places


def codons_of(length: int, places: list[tuple[int, int, str]]) -> np.ndarray:
    codons = np.full((2, length), -1, np.int8)
    for begin, end, strand in places:
        along = np.arange(end - begin) % 3
        codons[int(strand == "-"), begin:end] = along if strand == "+" else along[::-1]
    return codons


def test_the_periodic_table_by_hand() -> None:
    """With dictionaries, base by base, frame by frame."""
    text, places = planted_genes(3, 0)
    codons = codons_of(len(text), places)
    model = Periodic(reach=10)
    model.count_sequence(codes(text), codons)
    counts: list[dict[tuple[str, str], int]] = [{} for _ in range(4)]
    strands = [
        (text, codons[0], codons[1]),
        (of_biopython(text), codons[1, ::-1], codons[0, ::-1]),
    ]
    for bases, own, other in strands:
        for at, base in enumerate(bases):
            tables = [own[at]] if own[at] >= 0 else [3] if other[at] < 0 else []
            for table in tables:
                for k in range(min(at, ORDER) + 1):
                    key = bases[at - k : at], base
                    counts[table][key] = counts[table].get(key, 0) + 1

    def log(table: int, context: str, base: str) -> float:
        value = 0.25
        for k in range(len(context) + 1):
            part = context[len(context) - k :]
            total = sum(counts[table].get((part, x), 0) for x in "ACGT")
            value = (counts[table].get((part, base), 0) + STRENGTH * value) / (total + STRENGTH)
        return math.log(value)

    def odds(bases: str, at: int) -> float:
        near = range(max(0, at - 10), min(len(bases), at + 11))
        sums = [
            sum(
                log((i + shift) % 3, bases[max(0, i - ORDER) : i], bases[i])
                - log(3, bases[max(0, i - ORDER) : i], bases[i])
                for i in near
            )
            for shift in range(3)
        ]
        return math.log(sum(map(math.exp, sums)) / 3)

    found = model.log_odds(codes(text))
    n = len(text)
    for at in (0, 1, 9, 150, 300, n - 12, n - 1):
        assert found[0, at] == pytest.approx(odds(text, at))
        assert found[1, at] == pytest.approx(odds(of_biopython(text), n - 1 - at))


def test_genes_are_found_on_their_strand() -> None:
    model = Periodic(reach=40)
    text, places = planted_genes(20, 0)
    model.count_sequence(codes(text), codons_of(len(text), places))
    text, places = planted_genes(10, 1)
    sequence, true = codes(text), codons_of(len(text), places) >= 0
    said = model.coding_probability(sequence)
    assert (said.sum(0) <= 1 + 1e-12).all()
    columns = {k: np.array(v) for k, v in coding.coding_columns(said > 0.5, true, 500).items()}
    every = np.ones((1, len(columns["hits"])))
    assert mcc_of("hits", "false", "missed", "rest")(columns, every)[0] > 0.8
    assert ratio_of("right strand", "judged")(columns, every)[0] > 0.99
    other = model.coding_probability(reverse_complement(sequence))
    np.testing.assert_allclose(other[::-1, ::-1], said, atol=1e-9)  # strands change places


def test_counts_over_pieces() -> None:
    said = np.array([[1, 1, 0, 0, 1], [0, 1, 0, 1, 0]], bool)
    true = np.array([[1, 0, 0, 1, 1], [0, 1, 0, 0, 0]], bool)
    assert coding.coding_columns(said, true, 3) == {
        "hits": [2, 1],
        "false": [1, 1],
        "missed": [0, 1],
        "rest": [3, 1],
        "right strand": [1, 1],
        "judged": [1, 2],
    }


# ---- the motif ----


def test_motif_on_both_strands() -> None:
    sequence = random_codes(500, letters=5)
    text = letters(sequence)
    around = text + text[:20]
    words = (motif.CHIP, of_biopython(motif.CHIP))
    expected = [
        max(
            sum(a == b for a, b in zip(word, around[at:], strict=False) if a != "N")
            for word in words
        )
        for at in range(500)
    ]
    assert motif.matches(sequence, motif.CHIP).tolist() == expected
    found = motif.bin_scores(sequence, motif.CHIP, 50, reach=20)
    for number in range(10):
        near = [expected[at % 500] for at in range(number * 50 - 20, number * 50 + 70)]
        assert found[number] == max(near)


# ---- contestants, on a small E. coli of our own ----


def outcome_of(contestants: list[Contestant], name: str, folder: Path) -> Outcome:
    [one] = [each for each in contestants if each.name == name]
    outcome = one.attempt(Attempt(0, folder, lambda _: None))
    assert len({len(column) for column in outcome.documents.values()}) == 1
    return outcome


def contestants(sets: list[classifying.Set]) -> list[Contestant]:
    return classifying.contestants(sets, classifying.BASELINES)


def columns_of(outcome: Outcome) -> tuple[dict[str, np.ndarray], np.ndarray]:
    columns = {name: np.array(x, float) for name, x in outcome.documents.items()}
    return columns, np.ones((1, len(next(iter(columns.values())))))


@pytest.mark.slow  # fits four models
def test_promoters_against_both_kinds_of_negatives(small: str, tmp_path: Path) -> None:
    around = small * 3
    for negatives, ratio in promoters.RATIOS.items():
        places = promoters.promoters(negatives, width=80)
        assert (~places.positive).sum() == ratio * places.positive.sum() == ratio * STARTS // 2
        read = promoters.examples(negatives)
        known = set(zip(*(x.tolist() for x in promoters.starts(experimental=False)), strict=True))
        for at, minus, positive, window in zip(
            places.at.tolist(),
            places.minus.tolist(),
            places.positive.tolist(),
            read.windows,
            strict=True,
        ):
            here = at + LENGTH
            before = around[here - 60 : here + 20]
            behind = of_biopython(around[here - 19 : here + 61])
            assert letters(window) == (behind if minus else before)
            if positive:
                assert (at, minus) in known
                assert letters(window)[47:53] == "TATAAT"
            else:
                near = range(at - 100, at + 101)
                assert not any((place % LENGTH, minus) in known for place in near)
                if negatives == "intergenic":
                    low, high = (at - 19, at + 60) if minus else (at - 60, at + 19)
                    assert all(not 99 <= x % LENGTH < 30_000 for x in range(low, high + 1))
        given = classifying.Set(negatives, lambda read=read: read)
        found = outcome_of(contestants([given]), "one-hot", tmp_path)
        columns, every = columns_of(found)
        assert auroc_of("score", "positive")(columns, every)[0] > 0.95
        assert columns["apart"].all()  # of random bases


def test_examples_know_their_twins() -> None:
    windows = random_codes(6, 80)
    windows[3] = reverse_complement(windows[0])
    windows[5, 20:] = windows[2, :60]
    sides = np.array([TRAIN, TEST, GAP, TEST, TEST, TEST], np.int8)
    given = Examples(windows, np.arange(6) < 3, sides, np.arange(6))
    assert given.likeness.tolist() == [0, 1, 0, 0]  # of the second, fourth, ...: gaps do not count
    assert given.held_out.group.tolist() == [1, 3, 4, 5]
    assert given.learned.group.tolist() == [0]


def test_a_scan_finds_starts(small: str, tmp_path: Path) -> None:
    given = classifying.Set("random", lambda: promoters.examples("random"))
    every = scanning.contestants(given, classifying.BASELINES)
    found = outcome_of(every, "one-hot", tmp_path)
    columns, every = columns_of(found)
    at, _ = promoters.starts(experimental=False)
    inside = int(((at >= LENGTH * 2 // 5) & (at < LENGTH * 3 // 5)).sum())
    assert columns["hit"].sum() == inside == found.facts["starts"]
    assert average_precision_of("score", "hit", found="found")(columns, every)[0] > 0.5
    assert found.facts["strand positions"] == 2 * LENGTH // 5
    assert found.facts["shift of log-odds"] < -1


def test_a_scan_is_the_same_on_the_other_strand(small: str) -> None:
    scorer = OneHot().fit(*planted(100, 0))
    sequence = codes(small[:2000])
    one = scanning.scan_strands(scorer, sequence, 0, 2000, 40, 20)
    other = scanning.scan_strands(scorer, reverse_complement(sequence), 0, 2000, 40, 20)
    np.testing.assert_allclose(other[::-1, ::-1], one)
    some = scanning.scan_strands(scorer, sequence, 700, 900, 40, 20)
    np.testing.assert_allclose(some, one[:, 700:900])
    for at, strand in ((0, 0), (1999, 1), (700, 1)):
        minus = np.array([bool(strand)])
        window = promoters.windows(sequence, np.array([at]), minus, 40, 20)
        assert one[strand, at] == pytest.approx(scorer.scores(window)[0])


def test_profiles(small: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(profile, "PEAKS", LENGTH // 2000)
    found = outcome_of(profiling.baselines(), "ACCCANGG search", tmp_path)
    columns, every = columns_of(found)
    assert columns["true ChIP peak"].sum() >= 6  # one in 2,000 bases, in bins of 200
    assert auroc_of("score ChIP peak", "true ChIP peak")(columns, every)[0] > 0.85
    bins = profile.profile(context=600)
    assert bins.labels[:, 0].sum() == 150
    assert bins.labels[:, 1].sum() == 50
    assert found.facts["reach"] in profiling.REACHES
    windows = profiling.bin_windows(codes(small), 200, 600)
    assert letters(windows[0]) == small[-200:] + small[:400]
    assert letters(windows[7]) == small[1200:1800]


def test_artificial_promoters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    count = 120
    bases = np.random.default_rng(0).choice(4, (count, 2000), p=[0.45, 0.05, 0.05, 0.45])
    chromosome = np.array(["chr2R", "chr2RHet", "chrX", "chrXHet", "chr3L"])[np.arange(count) % 5]
    every = artificial.Upstream(
        bases.astype(np.uint8), chromosome, np.arange(count) * 3000, np.zeros(count, bool)
    )
    monkeypatch.setattr(artificial, "upstream", lambda: every)
    artificial.examples.cache_clear()
    for recipe, low, high in (("uniform", 0.99, 1.0), ("composition", 0.2, 0.8)):
        given = classifying.Set(recipe, partial(artificial.examples, recipe, 300))
        found = outcome_of(contestants([given]), "5-mers", tmp_path)
        columns, weights = columns_of(found)
        assert found.facts[recipe] == {"positives": 48, "negatives": 48}
        assert low <= auroc_of("score", "positive")(columns, weights)[0] <= high
        right = (columns["said"] == columns["positive"]).mean()
        assert low - 0.05 <= right <= high
    artificial.examples.cache_clear()
