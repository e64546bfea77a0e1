"""Several genomes at once: which labels are whose, and what is held out."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from planting import write_fasta
from typer.testing import CliRunner

from longbird.applications.dna.division import Division, stretches
from longbird.applications.dna.genome_files import Labelled, labelled, open_genomes_of
from longbird.applications.dna.genomes import Interval, open_genome, read_features
from longbird.applications.dna.runs import evaluate, finetune, load
from longbird.applications.dna.settings import DnaLabelSettings
from longbird.cli.app import app

QUICK = {
    "model": "scratch:tiny", "length": 130, "steps": 1, "tokens_per_batch": 520,
    "save_every": 1e9,
}  # fmt: skip


def quiet(_: str) -> None:
    """Says nothing."""


def species(folder: Path, name: str, seed: int, length: int = 3000) -> tuple[Path, Path]:
    """A genome with one sequence, and a gene on either strand."""
    bases = "".join(random.Random(seed).choices("ACGT", k=length))
    genome = write_fasta(folder / f"{name}.fa", **{f"{name}1": bases})
    labels = folder / f"{name}.gff"
    genes = [
        f"{name}1\tx\tCDS\t{first}\t{last}\t.\t{strand}\t0\tID={strand}\n"
        for first, last, strand in ((101, length // 2, "+"), (length - 300, length - 100, "-"))
    ]
    labels.write_text("##gff-version 3\n" + "".join(genes))
    return genome, labels


def genbank(folder: Path, name: str) -> str:
    from Bio import SeqIO
    from Bio.Seq import Seq
    from Bio.SeqFeature import SeqFeature, SimpleLocation
    from Bio.SeqRecord import SeqRecord

    record = SeqRecord(Seq("ACGT" * 50), id=name, name=name)
    record.annotations["molecule_type"] = "DNA"
    record.features.append(SeqFeature(SimpleLocation(3, 60, 1), type="CDS"))
    path = folder / f"{name}.gb"
    SeqIO.write(record, path, "genbank")
    return str(path)


def test_labels_follow_their_genome(tmp_path: Path) -> None:
    one, two = (species(tmp_path, name, 0) for name in ("one", "two"))
    paths = [str(each) for each in (*one, *two)]
    assert labelled(paths) == [
        Labelled(paths[0], (paths[1],)),
        Labelled(paths[2], (paths[3],)),
    ]
    for wrong, said in ((paths[:1], "has no labels"), ([*paths, *paths[:2]], "given twice")):
        with pytest.raises(ValueError, match=said):
            labelled(wrong)
    first, other = genbank(tmp_path, "first"), genbank(tmp_path, "other")
    (tmp_path / "again").mkdir()
    again = genbank(tmp_path / "again", "first")
    assert labelled([paths[0], first, other]) == [Labelled(paths[0], (first, other))]
    assert labelled([first, again, other]) == [
        Labelled(first, (again,)),
        Labelled(other, (other,)),
    ]


def test_a_file_means_all_of_its_genome(tmp_path: Path) -> None:
    path, _ = species(tmp_path, "one", 0)
    with open_genome(path) as genome:
        assert [str(x) for x in stretches("one.fa", genome)] == ["one1:1-3000(+)"]
        division = Division(genome, {"test": [str(path)]}, 100)
        assert division.spans["train"] == []


def settings_of(*files: Path, **options: Any) -> DnaLabelSettings:
    return DnaLabelSettings("dna-coding", tuple(map(str, files)), **options)


def test_each_genome_takes_its_own_names(tmp_path: Path) -> None:
    (a, _), (b, _) = (species(tmp_path, name, 0) for name in "ab")
    labels = [tmp_path / f"{name}.bed" for name in "ab"]
    for file, text in zip(labels, ("chr\t5\t9\t.\t0\t+\n", "chr\t7\t9\t.\t0\t-\n"), strict=True):
        file.write_text(text)
    settings = settings_of(alias=("chr=a1", "chr=b1"), circular=("b1",))
    given = labelled([str(each) for each in (a, labels[0], b, labels[1])])
    opened = open_genomes_of(settings, given)
    assert [each.circular for own in opened for each in own.sequences.values()] == [False, True]
    places = [read_features(*pair)[0].interval for pair in zip(labels, opened, strict=True)]
    assert places == [Interval("a1", 5, 9, "+"), Interval("b1", 7, 9, "-")]


def test_names_that_no_genome_has_are_said(tmp_path: Path) -> None:
    given = labelled([str(each) for name in "ab" for each in species(tmp_path, name, 0)])
    with pytest.raises(ValueError, match=r"`alias` names c1, which none of .*a.fa, .*b.fa has"):
        open_genomes_of(settings_of(alias=("x=a1", "y=c1")), given)
    with pytest.raises(ValueError, match=r"`circular` names c1, .* they have a1, b1"):
        open_genomes_of(settings_of(circular=("c1",)), given)
    every = open_genomes_of(settings_of(circular=("all",)), given)
    assert all(each.circular for own in every for each in own.sequences.values())


def test_labels_say_what_is_circular_where_no_name_was_given(tmp_path: Path) -> None:
    files = [species(tmp_path, name, 0) for name in "ab"]
    with files[1][1].open("a") as labels:
        labels.write("b1\tx\tregion\t1\t3000\t.\t+\t.\tID=b1;Is_circular=true\n")
    given = labelled([str(each) for pair in files for each in pair])
    opened = open_genomes_of(settings_of(circular=("a1",)), given)
    assert all(each.circular for own in opened for each in own.sequences.values())


@pytest.mark.slow  # trains
def test_names_of_several_genomes_reach_a_run_and_its_evaluation(tmp_path: Path) -> None:
    pairs = [species(tmp_path, name, seed) for seed, name in enumerate("ab")]
    for name, (_, labels) in zip("ab", pairs, strict=True):
        labels.write_text(labels.read_text().replace(f"{name}1", f"chr{name}"))
    (genome, *more) = (each for pair in pairs for each in pair)
    names = ("chra=a1", "chrb=b1")
    options: dict[str, Any] = {"alias": names, "circular": ("a1",), "say": quiet}
    run = finetune(
        "coding", genome, more, tmp_path / "run", validation_on=("none",), **QUICK, **options
    )
    assert run.finished
    assert evaluate(run.path, genome, more, **options).examples


@pytest.mark.slow  # trains
def test_one_species_is_held_out_of_three(tmp_path: Path) -> None:
    files = [species(tmp_path, name, seed) for seed, name in enumerate("abc")]
    (genome, labels), *more = files
    done = finetune(
        "coding",
        genome,
        [labels, *(each for pair in more for each in pair)],
        tmp_path / "run",
        say=quiet,
        validation_on=("b.fa",),
        test_on=("c.fa",),
        **QUICK,
    )
    parts = json.loads((done.path / "data.json").read_text())["parts"]
    assert parts == {
        "train": "a1:1-3000", "validation": "b1:1-3000", "test": "c1:1-3000",
    }  # fmt: skip
    assert {"validation", "test"} <= set(done.metrics)
    assert done.metrics["test"]["prevalence +"] == pytest.approx(1400 / 3000)
    both = evaluate(done.path, *[files[1][0], [files[1][1], *files[2]]], say=quiet)
    places = {each["place"].rsplit(" of ")[-1] for each in both.examples}
    assert places == {"b.fa", "c.fa"}
    alone = evaluate(done.path, files[1][0], [files[1][1], *files[2]], on=["c.fa"], say=quiet)
    assert len(alone.examples) == len(both.examples) / 2
    assert load(done.path).task.channels == ("+", "-")


def test_targets_of_several_genomes_are_as_many(tmp_path: Path) -> None:
    (one, labels), (two, others) = (species(tmp_path, name, 0) for name in ("one", "two"))
    with pytest.raises(ValueError, match="give one for each, in the same order"):
        finetune(
            "profile", one, [labels, two, others, others], tmp_path / "run", say=quiet,
            bin=10, validation_on=("none",), **QUICK,
        )  # fmt: skip


def test_the_command_names_what_is_not_there(tmp_path: Path) -> None:
    (one, labels), (two, others) = (species(tmp_path, name, 0) for name in ("one", "two"))
    given = ["dna", "finetune", "coding", *map(str, (one, labels, two, others))]
    found = CliRunner().invoke(
        app, [*given, "--test-on", "three.fa", "--out", str(tmp_path / "r")]
    )
    assert found.exit_code != 0
    assert "three.fa" in str(found.exception or found.output)
    assert not (tmp_path / "r").exists()
