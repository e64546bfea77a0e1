"""Data sets and splits of DNA: positions by slices of strings, and no leaks."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from Bio.Seq import reverse_complement as of_biopython
from hypothesis import given
from hypothesis import strategies as st

from experiments.dna import artificial
from experiments.dna.artificial import RECIPES, Upstream, merged, overlapping, substituted
from experiments.dna.bases import codes, letters, read_fasta, reverse_complement
from experiments.dna.organisms import organism
from experiments.dna.profile import covered, highest, in_bins
from experiments.dna.promoters import clear_of, draw, whole, windows
from experiments.dna.splits import GAP, TEST, TRAIN, VALIDATION, by_fifth, by_name, stretches
from experiments.dna.twins import likeness
from experiments.sources import genomes


def random_dna(length: int, seed: int) -> str:
    return letters(np.random.default_rng(seed).integers(0, 4, length).astype(np.uint8))


# ---- splits ----


@given(
    st.integers(60, 400), st.integers(0, 4), st.integers(0, 5), st.booleans(), st.floats(0, 0.1)
)
def test_windows_of_two_sides_do_not_overlap(
    length: int, held_out: int, gap: int, circular: bool, validation: float
) -> None:
    sides = by_fifth(length, held_out, gap, circular=circular, validation=validation)
    tested = np.flatnonzero(sides == TEST)
    assert tested.tolist() == list(range(length * held_out // 5, length * (held_out + 1) // 5))
    assert (sides == VALIDATION).sum() == round(length * validation)
    assert (sides == TRAIN).sum() >= 0.8 * length - round(length * validation) - 4 * gap - 1
    for first in range(length):
        for step in range(1, gap + 1):
            second = first + step
            if second >= length and not circular:
                continue
            pair = {int(sides[first]), int(sides[second % length])} - {GAP}
            assert len(pair) < 2


def test_splits_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="held_out must be 0 to 4, received 5"):
        by_fifth(100, 5, 1, circular=True)
    with pytest.raises(ValueError, match="a gap of 20 bases is too long for a sequence of 100"):
        by_fifth(100, 1, 20, circular=True)
    with pytest.raises(ValueError, match=r"nothing is of 'chr9', only of \['chr1'\]"):
        by_name(np.array(["chr1"]), test=["chr9"])


@given(st.lists(st.booleans(), max_size=30))
def test_stretches(chosen: list[bool]) -> None:
    text = "".join("x" if each else "." for each in chosen)
    assert list(stretches(np.array(chosen, bool))) == [x.span() for x in re.finditer("x+", text)]


# ---- twins ----


def test_likeness_by_shared_words() -> None:
    origin = [random_dna(300, seed) for seed in range(3)]
    held = [
        origin[0][100:] + random_dna(100, 10),  # shares two thirds
        of_biopython(origin[1])[:250] + random_dna(50, 11),
        random_dna(240, 12) + origin[2][:60],
        origin[0][:150] + origin[1][:150],  # the better half counts, not both
        random_dna(300, 13),
        "N" * 300,
        "ACGT",
    ]

    def canonical(text: str) -> set[str]:
        found = {text[at : at + 21] for at in range(len(text) - 20)}
        return {min(each, str(of_biopython(each))) for each in found if "N" not in each}

    expected: list[float] = []
    for one in map(canonical, held):
        shared = max(len(one & canonical(other)) for other in origin)
        expected.append(shared / max(1, len(one)))
    mine, theirs = [codes(x) for x in held], [codes(x) for x in origin]
    np.testing.assert_allclose(likeness(mine, theirs), expected)
    np.testing.assert_allclose(likeness(mine, theirs, every=3), expected, atol=0.1)
    assert [round(x, 2) for x in expected] == [0.64, 0.82, 0.14, 0.46, 0, 0, 0]
    assert likeness(mine[-1:], theirs).tolist() == [0]
    assert len(likeness([], theirs)) == 0


# ---- promoters ----


@given(st.integers(0, 29), st.booleans(), st.integers(0, 40), st.integers(1, 20))
def test_windows_are_slices_of_either_strand(
    at: int, minus: bool, before: int, after: int
) -> None:
    text = random_dna(30, 0)
    around = text * 5  # the circle, many times round
    if minus:
        expected = of_biopython(around[60 + at - after + 1 : 60 + at + before + 1])
    else:
        expected = around[60 + at - before : 60 + at + after]
    [window] = windows(codes(text), np.array([at]), np.array([minus]), before, after)
    assert letters(window) == expected
    assert window.dtype == np.uint8


@given(st.lists(st.booleans(), min_size=9, max_size=30), st.booleans())
def test_where_a_whole_window_is_free(free: list[bool], minus: bool) -> None:
    n, before, after = len(free), 5, 2
    found = whole(np.array(free), minus, before, after)
    for at in range(n):
        places = (
            range(at - after + 1, at + before + 1) if minus else range(at - before, at + after)
        )
        assert found[at] == all(free[place % n] for place in places)


def test_places_away_from_starts() -> None:
    free = clear_of(np.array([1, 10]), np.array([False, True]), False, 20, clear=3)
    assert np.flatnonzero(~free).tolist() == [0, 1, 2, 3, 4, 18, 19]
    plus, minus = np.arange(50) % 2 == 0, np.arange(50) % 5 == 0
    at, strand = draw([plus, minus], 35, seed=0)
    pairs = set(zip(at.tolist(), strand.tolist(), strict=True))
    assert len(pairs) == 35
    assert all((minus if down else plus)[place] for place, down in pairs)
    with pytest.raises(ValueError, match="36 places are to be drawn from 35"):
        draw([plus, minus], 36, seed=0)


# ---- artificial negatives ----


@pytest.mark.parametrize("recipe", RECIPES)
def test_twelve_of_twenty_pieces(recipe: str) -> None:
    promoters = np.random.default_rng(0).choice(4, (200, 600), p=[0.4, 0.1, 0.2, 0.3])
    promoters = promoters.astype(np.uint8)
    made = substituted(promoters, recipe, seed=1)
    before, after = promoters.reshape(200, 20, 30), made.reshape(200, 20, 30)
    kept = (before == after).all(2).sum(1)
    assert (kept >= 8).all()
    assert kept.mean() < 9.5
    assert np.array_equal(made, substituted(promoters, recipe, seed=1))
    assert not np.array_equal(made, substituted(promoters, recipe, seed=2))
    changed = after[(before != after).any(2)]
    shares = np.bincount(changed.ravel(), minlength=4) / changed.size
    expected = [0.25] * 4 if recipe == "uniform" else [0.4, 0.1, 0.2, 0.3]
    np.testing.assert_allclose(shares, expected, atol=0.01)
    if recipe == "permuted":
        for one, other in zip(before, after, strict=True):
            assert sorted(map(bytes, one)) == sorted(map(bytes, other))


def test_negatives_that_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="a multiple of 20 bases, received 30"):
        substituted(np.zeros((1, 30), np.uint8), "uniform", 0)
    with pytest.raises(ValueError, match="no unknown bases"):
        substituted(np.full((1, 40), 4, np.uint8), "uniform", 0)
    with pytest.raises(ValueError, match="one of permuted, composition, uniform, received 'ours'"):
        substituted(np.zeros((1, 40), np.uint8), "ours", 0)


def test_upstream_sequences(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Read from a file of our own, cut from chromosomes that the stretches give back."""
    chromosomes = {"chr2L": random_dna(9000, 0), "chr2R": random_dna(5000, 1)}
    places = [("chr2L", 0, "f"), ("chr2L", 1999, "r"), ("chr2L", 6000, "r"), ("chr2R", 100, "f")]
    records: list[str] = []
    for number, (name, start, strand) in enumerate([*places, places[1]]):  # one of them twice
        text = chromosomes[name][start : start + 2000]
        text = (of_biopython(text) if strand == "r" else text).lower()
        title = (
            f"NM_{number}_up_2000_{name}_{start + 1}_{strand} {name}:{start + 1}-{start + 2000}"
        )
        records.append(f">{title}\n{text}\n")
    records.append(f">NM_9_up_2000_chr2R_-4_f chr2R:-4-10\n{'acgtacgtac'}\n")
    records.append(f">NM_8_up_2000_chr2R_1_f chr2R:1-2000\n{'n' * 2000}\n")
    path = tmp_path / "upstream.fa"
    path.write_text("".join(records))
    monkeypatch.setattr(genomes, "drosophila_upstream", lambda: path)
    every = artificial.upstream.__wrapped__()
    assert every.bases.shape == (4, 2000)
    assert every.chromosome.tolist() == [name for name, _, _ in places]
    assert every.start.tolist() == [start for _, start, _ in places]
    assert overlapping(every).tolist() == [0, 0, 1, 2]
    for name, start, bases in merged(every):
        assert letters(bases) == chromosomes[name][start : start + len(bases)]
    assert [len(bases) for _, _, bases in merged(every)] == [3999, 2000, 2000]


def test_overlapping_goes_by_chromosome() -> None:
    every = Upstream(
        np.zeros((4, 2000), np.uint8),
        np.array(["a", "b", "a", "a"]),
        np.array([5000, 5001, 0, 1999]),
        np.zeros(4, bool),
    )
    assert overlapping(every).tolist() == [1, 2, 0, 0]


# ---- genes ----


def write_annotated(folder: Path, sequence: str, lines: list[str]) -> tuple[Path, Path]:
    genome, features = folder / "g.fasta", folder / "g.gff3"
    genome.write_text(f">one two\n{sequence[:40]}\n{sequence[40:]}\n")
    rows = ["##gff-version 3", *("one\tx\t" + line.replace(" ", "\t") for line in lines), ""]
    features.write_text("\n".join(rows))
    return genome, features


def test_codons_of_both_strands(tmp_path: Path) -> None:
    text = random_dna(60, 0)
    lines = [
        "gene 1 9 . + . ID=a",
        "CDS 1 9 . + 0 ID=c;Parent=a",
        "CDS 21 27 . - 1 ID=d",
        "CDS 31 36 . + 0 ID=e;pseudo=true",
        "pseudogene 31 36 . + . ID=p",
        "CDS 59 64 . + 2 ID=origin",
    ]
    read = organism("o", *write_annotated(tmp_path, text, lines), circular=True)
    assert letters(read.sequences["one"]) == text
    codons = read.codons["one"]
    assert codons[0, :9].tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2]
    assert codons[1, 20:27].tolist() == [2, 1, 0, 2, 1, 0, 2]
    assert codons[0, [58, 59, 0, 1, 2, 3]].tolist() == [1, 2, 0, 1, 2, 0]
    assert (codons[0, 30:36] == -1).all()
    assert (codons[1, :20] == -1).all()
    assert np.flatnonzero(read.genic["one"]).tolist() == [*range(9), *range(30, 36)]


def test_codons_are_where_the_protein_is(tmp_path: Path) -> None:
    """On each strand the first bases of codons, put together, spell what was planted."""
    gene = "ATGCATGAATAA"
    text = "CC" + gene + "CCCC" + of_biopython(gene) + "C"
    lines = ["CDS 3 14 . + 0 ID=a", "CDS 19 30 . - 0 ID=b"]
    read = organism("o", *write_annotated(tmp_path, text, lines), circular=False)
    bases, codons = read.sequences["one"], read.codons["one"]
    firsts = letters(bases[codons[0] == 0])
    assert firsts == gene[::3]
    assert letters(reverse_complement(bases[codons[1] == 0])) == gene[::3]


def test_genes_that_do_not_fit(tmp_path: Path) -> None:
    text = random_dna(60, 0)
    files = write_annotated(tmp_path, text, ["CDS 59 64 . + 0 ID=a"])
    with pytest.raises(ValueError, match=r"g\.gff3.* 64"):
        organism("o", *files, circular=False)
    files[1].write_text("two\tx\tCDS\t1\t3\t.\t+\t0\tID=a\n")
    with pytest.raises(ValueError, match=r"g\.gff3 has labels on two"):
        organism("o", *files, circular=False)
    assert [title for title, _ in read_fasta(files[0])] == ["one two"]


# ---- bins ----


def test_bins() -> None:
    track = covered(np.array([3, 18]), np.array([5, 22]), 20)
    assert np.flatnonzero(track).tolist() == [0, 1, 3, 4, 18, 19]
    assert in_bins(track, 4).tolist() == [True, True, False, False, True]
    assert in_bins(track, 6).tolist() == [True, False, False]  # the last two bases are in none


def test_highest_peaks() -> None:
    signal = np.zeros(10_000)
    for at, height in ((0, 5.0), (3000, 9.0), (3400, 8.0), (7000, 7.0)):
        along = np.abs(np.arange(10_000) - at)
        signal += height * np.maximum(0, 1 - np.minimum(along, 10_000 - along) / 100)
    found = highest(signal, 3)  # 3400 is too near to 3000
    assert found.tolist() == [3000, 7000, 0]
