"""Parts of a genome lie apart, on lines and on circles."""

from __future__ import annotations

import hashlib
import itertools
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from planting import write_fasta

from longbird.applications.dna.division import Division, names, stretches, usual
from longbird.applications.dna.genomes import Interval, open_genome


def bases_of(division: Division, part: str, length: int) -> set[int]:
    return {at % length for span in division.spans[part] for at in range(span.start, span.end)}


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("held", [["3/5"], ["5/5"], ["1/5"], ["c:101-150"]])
def test_a_gap_of_one_window_lies_between(tmp_path: Path, circular: bool, held: list[str]) -> None:
    length, gap = 500, 30
    genome = open_genome(write_fasta(tmp_path / "g.fa", c="ACGTA" * 100), circular=circular)
    division = Division(genome, {"validation": held}, gap)
    (stretch,) = stretches(held[0], genome)
    out = set(range(stretch.start, stretch.end))
    assert bases_of(division, "validation", length) == out

    def distance(a: int, b: int) -> int:
        return min(abs(a - b), length - abs(a - b)) if circular else abs(a - b)

    far = {at for at in range(length) if all(distance(at, b) > gap for b in out)}
    assert bases_of(division, "train", length) == far


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize(
    "held",
    [
        {"validation": ["1/5"], "test": ["5/5"]},
        {"validation": ["5/5"], "test": ["1/5"]},
        {"validation": ["2/5"], "test": ["3/5"]},
        {"validation": ["1/2"], "test": ["2/2"]},
        {"validation": ["1/5", "5/5"], "test": ["3/5"]},
    ],
)
def test_a_gap_lies_between_what_is_held_out_too(
    tmp_path: Path, circular: bool, held: dict[str, Sequence[str]]
) -> None:
    length, gap = 500, 30
    genome = open_genome(write_fasta(tmp_path / "g.fa", c="ACGTA" * 100), circular=circular)
    division = Division(genome, held, gap)
    parts = {part: bases_of(division, part, length) for part in division.spans}
    for one, other in itertools.combinations(parts.values(), 2):
        for a, b in itertools.product(one, other):
            apart = abs(a - b)
            assert (min(apart, length - apart) if circular else apart) > gap
    for part, texts in held.items():
        asked = {
            at for text in texts for x in stretches(text, genome) for at in range(x.start, x.end)
        }
        assert parts[part] <= asked
        assert len(asked - parts[part]) <= 2 * gap


def test_a_window_is_of_the_part_that_has_all_of_it(tmp_path: Path) -> None:
    genome = open_genome(write_fasta(tmp_path / "g.fa", c="ACGTA" * 100), circular=True)
    division = Division(genome, {"validation": ["3/5"]}, 10)
    assert division.part_of(Interval("c", 200, 300)) == "validation"
    assert division.part_of(Interval("c", 199, 300)) is None
    assert division.part_of(Interval("c", 495, 505)) == "train"  # over the origin
    assert division.part_of(Interval("c", -5, 5)) == "train"


def test_windows_cover_each_part_once(tmp_path: Path) -> None:
    genome = open_genome(write_fasta(tmp_path / "g.fa", a="ACGTA" * 20, b="TTGCA" * 30))
    division = Division(genome, {"validation": ["a"], "test": ["b:51-100"]}, 7)
    for part, spans in division.spans.items():
        bases = [(w.name, at) for w in division.windows(part, 16) for at in range(w.start, w.end)]
        assert len(bases) == len(set(bases)) == sum(map(len, spans))
    assert division.spans["train"] == [Interval("b", 0, 43, "+"), Interval("b", 107, 150, "+")]


def test_stretches_that_overlap_are_measured_once(tmp_path: Path) -> None:
    genome = open_genome(write_fasta(tmp_path / "g.fa", a="ACGTA" * 20, b="TTGCA" * 30))
    texts = ("b:51-100", "b:1-60", "a", "a:20-30", "b:101-150", "b:120-130")
    on = [each for text in texts for each in stretches(text, genome)]
    division = Division.measuring(genome, on)
    bases = [(w.name, at) for w in division.windows("test", 16) for at in range(w.start, w.end)]
    assert len(bases) == len(set(bases))
    assert set(bases) == {(each.name, at) for each in on for at in range(each.start, each.end)}


def test_whole_sequences_are_held_out_where_none_is_most_of_the_genome(tmp_path: Path) -> None:
    many = {f"c{number}": "ACGT" * 25 for number in range(10)}
    chosen = usual(open_genome(write_fasta(tmp_path / "many.fa", **many)), 0)
    assert len(chosen) == 2
    assert set(chosen) < set(many)
    assert usual(open_genome(write_fasta(tmp_path / "one.fa", c="ACGT" * 25, d="AC")), 0) == [
        "5/5"
    ]


def test_what_is_held_out_comes_first_by_its_hash(tmp_path: Path) -> None:
    """Against adding up all that was chosen, each time anew."""
    drawn = random.Random(0)
    many = {f"c{number}": "A" * drawn.randrange(1, 400) for number in range(60)}
    total = sum(map(len, many.values()))
    expected: list[str] = []
    for name in sorted(many, key=lambda own: hashlib.sha256(f"7:{own}".encode()).hexdigest()):
        held = sum(len(many[each]) for each in (*expected, name))
        if held <= 0.2 * total or not expected:
            expected.append(name)
    assert usual(open_genome(write_fasta(tmp_path / "many.fa", **many)), 7) == expected


def test_many_sequences_are_divided_in_a_moment(tmp_path: Path) -> None:
    """Where each looks at all others, 20,000 take a quarter of a minute."""
    many = {f"c{number}": "ACGT" for number in range(20_000)}
    genome = open_genome(write_fasta(tmp_path / "many.fa", **many))
    begun = time.process_time()
    held = [name for name in usual(genome, 0) if names(name, genome)]
    division = Division(genome, {"validation": held}, 2)
    parts = [division.part_of(Interval(name, 0, 4)) for name in many]
    assert time.process_time() - begun < 5
    assert parts.count("validation") == 4000
    assert parts.count("train") == 16_000


@pytest.mark.parametrize("text", ["chrZ", "c:0-10", "c:5-501", "c:9-5", "6/5"])
def test_what_is_not_there_is_said(tmp_path: Path, text: str) -> None:
    genome = open_genome(write_fasta(tmp_path / "g.fa", c="ACGTA" * 100))
    with pytest.raises(ValueError):
        stretches(text, genome)


def test_parts_must_not_overlap(tmp_path: Path) -> None:
    genome = open_genome(write_fasta(tmp_path / "g.fa", c="ACGTA" * 100))
    with pytest.raises(ValueError, match="both have base 101"):
        Division(genome, {"validation": ["c:1-150"], "test": ["c:101-200"]}, 5)
