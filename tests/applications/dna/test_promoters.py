"""Windows of promoters base by base, and the recipes of negatives."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from planting import MOTIF, Planted, other_strand, planted, write_fasta
from transformers import AutoTokenizer

from longbird.applications.dna.genomes import DnaTokenizer, open_genome
from longbird.applications.dna.labels import features_of
from longbird.applications.dna.negatives import artificial
from longbird.applications.dna.promoters import Promoters
from longbird.applications.dna.settings import DnaLabelSettings


def task_of(folder: Path, *files: Path, **options: Any) -> Promoters:
    DnaTokenizer.base().save(folder / "tokenizer")
    tokenizer = AutoTokenizer.from_pretrained(folder / "tokenizer")
    values = {"upstream": 20, "downstream": 10, "length": 64, **options}
    task = Promoters()
    files_ = tuple(str(each) for each in files)
    task.prepare(DnaLabelSettings("dna-promoter", files_, **values), tokenizer)
    return task


def examples(task: Promoters) -> list[dict[str, Any]]:
    return list(task.examples((), task.settings, lambda _: None))


def start_of(place: str) -> tuple[int, str]:
    """Where a window says that its start lies; it may reach beyond the end of the sequence."""
    start, end, strand = re.fullmatch(r"chrA:(-?\d+)-(\d+)\((.)\)", place).groups()  # type: ignore
    return int(start) - 1 + 20 if strand == "+" else int(end) - 21, strand


def test_windows_lie_around_starts_on_their_strand(tmp_path: Path, genome: Planted) -> None:
    found = examples(task_of(tmp_path, genome.genome, genome.labels))
    true = [each for each in found if each["truth"]]
    assert len(true) >= len(genome.starts) - 2  # one or two lie in the gap
    by_place = {each["place"]: each["bases"] for each in true}
    for at, strand in genome.starts:
        if strand == "+":
            place, bases = f"chrA:{at - 19}-{at + 10}(+)", genome.bases[at - 20 : at + 10]
        else:
            place = f"chrA:{at - 8}-{at + 21}(-)"
            bases = other_strand(genome.bases[at - 9 : at + 21])
        if place in by_place:
            assert by_place[place] == bases
            assert bases[20 - len(MOTIF) : 20] == MOTIF


def test_random_negatives_lie_away_from_starts(tmp_path: Path, genome: Planted) -> None:
    task = task_of(tmp_path, genome.genome, genome.labels, per_positive=2)
    found = examples(task)
    assert Counter(each["part"] for each in found if not each["truth"]) == {
        part: 2 * number
        for part, number in Counter(each["part"] for each in found if each["truth"]).items()
    }
    for each in (each for each in found if not each["truth"]):
        at, strand = start_of(each["place"])
        near = [abs(at - other) for other, own in genome.starts if own == strand]
        assert min(near) >= 30
    assert found == examples(task)  # always the same


@pytest.mark.parametrize("circular", [(), ("all",)])
def test_windows_of_intergenic_negatives_have_no_base_in_a_gene(
    tmp_path: Path, genome: Planted, circular: tuple[str, ...]
) -> None:
    genes = tmp_path / "genes.gff3"
    genes.write_text(
        "##gff-version 3\n"
        + "".join(
            f"chrA\tx\tgene\t{at}\t{at + 299}\t.\t+\t.\tID=g{at}\n" for at in range(1, 12_000, 600)
        )
    )
    task = task_of(
        tmp_path, genome.genome, genome.labels, genes, negatives="intergenic", per_positive=1,
        circular=circular,
    )  # fmt: skip
    found = [each for each in examples(task) if not each["truth"]]
    assert len(found) > 50
    strands: set[str] = set()
    for each in found:
        at, strand = start_of(each["place"])
        window = range(at - 20, at + 10) if strand == "+" else range(at - 9, at + 21)
        here = [base % 12_000 if circular else base for base in window]
        assert all(base % 600 >= 300 for base in here if 0 <= base < 12_000)
        strands.add(strand)
    assert strands == {"+", "-"}
    with pytest.raises(ValueError, match="has no genes"):
        examples(task_of(tmp_path, genome.genome, genome.labels, negatives="intergenic"))


@pytest.mark.parametrize("recipe", ["permuted", "shuffled", "uniform"])
def test_artificial_negatives_keep_eight_of_twenty_pieces(recipe: str) -> None:
    drawn = np.random.default_rng(0)
    bases = "".join(drawn.choice(list("ACGT"), 400))
    made = artificial(bases, recipe, drawn)
    pieces = [[text[at : at + 20] for at in range(0, 400, 20)] for text in (bases, made)]
    same = sum(one == two for one, two in zip(*pieces, strict=True))
    assert 8 <= same <= 10
    if recipe == "permuted":
        assert Counter(pieces[0]) == Counter(pieces[1])
        assert made != bases
    elif recipe == "shuffled":
        assert all(Counter(a) == Counter(b) for a, b in zip(*pieces, strict=True))
    else:
        assert Counter(bases) != Counter(made)


def test_a_start_without_a_strand_is_refused(tmp_path: Path) -> None:
    bed = tmp_path / "odd.bed"
    bed.write_text("c\t5\t6\n")
    genome = write_fasta(tmp_path / "g.fa", c="ACGTA" * 100)
    with pytest.raises(ValueError, match="no strand"):
        examples(task_of(tmp_path, genome, bed))


@pytest.mark.parametrize("row", ["c\t500\t500\tp\t0\t+", "c\t0\t0\tp\t0\t-", "c\t9\t9\tp\t0\t+"])
def test_a_start_without_a_base_is_refused(tmp_path: Path, row: str) -> None:
    bed = tmp_path / "odd.bed"
    bed.write_text(f"c\t5\t6\tp\t0\t+\n{row}\n")
    genome = write_fasta(tmp_path / "g.fa", c="ACGTA" * 100)
    with pytest.raises(ValueError, match=r"begins and ends at .* has no bases"):
        examples(task_of(tmp_path, genome, bed))


def test_kinds_are_named_where_none_is_usual(tmp_path: Path) -> None:
    genome = write_fasta(tmp_path / "g.fa", c="ACGTA" * 100)
    gff = tmp_path / "g.gff3"
    gff.write_text("##gff-version 3\nc\tx\tgene\t100\t200\t.\t-\t.\tID=a\n")
    with pytest.raises(ValueError, match=r"it has gene\. Select others with `kind`"):
        examples(task_of(tmp_path, genome, gff))
    task = task_of(
        tmp_path, genome, gff, kind=("gene",), negatives="shuffled", validation_on=("none",)
    )
    first = examples(task)[0]
    assert first["place"] == "c:191-220(-)"  # the start of a gene on minus is its right end


def test_promoters_of_ncbi_are_regulatory(tmp_path: Path) -> None:
    genome = write_fasta(tmp_path / "g.fa", c="ACGTA" * 100)
    gff = tmp_path / "g.gff3"
    gff.write_text(
        "##gff-version 3\n"
        "c\tx\tregulatory\t100\t200\t.\t+\t.\tID=a;regulatory_class=promoter\n"
        "c\tx\tregulatory\t300\t310\t.\t+\t.\tID=b;regulatory_class=terminator\n"
    )
    options: dict[str, Any] = {"negatives": "shuffled", "validation_on": ("none",)}
    true = [each for each in examples(task_of(tmp_path, genome, gff, **options)) if each["truth"]]
    assert [each["place"] for each in true] == ["c:80-109(+)"]


def test_windows_go_over_the_origin_and_beyond_the_ends(tmp_path: Path) -> None:
    bases = "ACGTTGCAAT" * 10
    genome = write_fasta(tmp_path / "g.fa", c=bases)
    bed = tmp_path / "s.bed"
    bed.write_text("c\t5\t6\tp\t0\t+\n")
    options: dict[str, Any] = {"negatives": "shuffled", "validation_on": ("none",)}
    line = examples(task_of(tmp_path, genome, bed, **options))[0]
    assert line["bases"] == "N" * 15 + bases[:15]
    circle = examples(task_of(tmp_path, genome, bed, circular=("all",), **options))[0]
    assert circle["bases"] == bases[-15:] + bases[:15]


def test_planting_is_what_it_says(tmp_path: Path) -> None:
    one = planted(tmp_path)
    for at, strand in one.starts:
        own = one.bases[at - 12 : at] if strand == "+" else one.bases[at + 1 : at + 13]
        assert (own if strand == "+" else other_strand(own)) == MOTIF


class Says:
    """A model that says something else of every token and stretch."""

    def __init__(self, stretches: int) -> None:
        self.stretches = stretches

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        drawn = torch.Generator().manual_seed(0)
        self.logits = torch.randn(*input_ids.shape, self.stretches, generator=drawn)
        return self


@pytest.mark.parametrize(("length", "stretches"), [(64, 4), (9, 4), (64, 1)])
def test_a_base_counts_with_the_logit_of_its_stretch(
    tmp_path: Path, length: int, stretches: int
) -> None:
    """Of pieces of any length, base by base in a loop; what is beyond the model is left out."""
    drawn = np.random.default_rng(0)
    windows = ["".join(drawn.choice([*"ACGT"], 30)) for _ in range(3)]
    tokenizer = DnaTokenizer.train(["".join(drawn.choice([*"ACGT"], 3000))], 60)
    tokenizer.save(tmp_path / "pieces")
    task = Promoters()
    task.window = 30
    settings = DnaLabelSettings("dna-promoter", (), length=length, upstream=20, downstream=10)
    task.prepare(settings, AutoTokenizer.from_pretrained(tmp_path / "pieces"))
    model = Says(stretches)
    batch = task.batch([task.read(each) for each in windows], task.pad)
    assert batch["input_ids"].shape[1] <= length
    found = task.run(model, batch)
    for row, bases in enumerate(windows):
        expected, base = 0.0, 0
        for at, token in enumerate(tokenizer.encode(bases).ids.tolist()):
            for _ in tokenizer.pieces[token]:
                stretch = base * stretches // 30
                own = [each for each in range(30) if each * stretches // 30 == stretch]
                if at < length - 2:
                    expected += float(model.logits[row, 1 + at, stretch]) / len(own)
                base += 1
        assert base == 30
        assert float(found[row]) == pytest.approx(expected, abs=1e-5)


def test_stretches_are_called_by_their_bases() -> None:
    """As biologists count: the start is 1, and there is no 0."""
    task = Promoters()
    task.upstream, task.downstream, task.window = 10, 14, 24
    assert task.head_settings()["id2label"] == {0: "-10..-3", 1: "-2..6", 2: "7..14"}
    task.upstream, task.downstream, task.window = 4000, 1000, 5000
    settings = task.head_settings()
    assert settings["num_labels"] == len(settings["label2id"]) == 64


def test_the_line_of_the_whole_sequence_is_no_promoter(tmp_path: Path) -> None:
    """Annotations begin with a `region` that is the sequence; only what is in BED has no kind."""
    genome = write_fasta(tmp_path / "g.fa", c="ACGGT" * 200)
    gff = tmp_path / "g.gff3"
    line = "c\tme\t{}\t{}\t{}\t.\t+\t.\tID={}\n"
    gff.write_text(
        "##gff-version 3\n" + line.format("region", 1, 1000, "c") + line.format("gene", 5, 90, "g")
    )
    bed = tmp_path / "starts.bed"
    bed.write_text("c\t499\t500\tp\t0\t-\n")
    with open_genome(genome) as opened:
        task = task_of(tmp_path, genome, bed, gff)
        assert task.starts([str(bed), str(gff)], opened) == [("c", 499, "-")]
        assert task.starts([str(bed), str(bed)], opened) == [("c", 499, "-")]
        with pytest.raises(ValueError, match=r"has no features of kind .*it has gene, region"):
            task.starts([str(gff)], opened)
        chosen = features_of([gff], opened, ["region"], ())
        assert [str(each.interval) for each in chosen] == ["c:1-1000(+)"]
