"""From a genome to scores along it: every step, and each goes on after a kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from planting import Planted, other_strand, planted, write_fasta
from typer.testing import CliRunner

from longbird.applications.dna.genomes import Interval, open_genome, open_signal, read_features
from longbird.applications.dna.runs import evaluate, finetune, load, pretrain
from longbird.applications.dna.scanning import scan
from longbird.cli.app import app

SHORT: dict[str, Any] = {"tokens_per_batch": 1024, "say": lambda _: None}
WINDOW: dict[str, Any] = {"upstream": 24, "downstream": 8}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Planted, Path]:
    """A run that has seen next to nothing: what matters here is where scores lie."""
    folder = tmp_path_factory.mktemp("trained")
    genome = planted(folder, 2500)
    finetune(
        "promoter", genome.genome, [genome.labels], folder / "run", steps=2, **WINDOW, **SHORT
    )
    return genome, folder / "run"


@pytest.mark.slow  # trains
def test_pretraining_measures_bits_per_base(tmp_path: Path, genome: Planted) -> None:
    run = pretrain(
        [genome.genome], tmp_path / "run", length=66, steps=2, test_on=("1/5",), **SHORT
    )
    found = run.metrics["test"]
    # A new model hardly knows anything: about two bits for each base, and a little more.
    assert 1.9 < found["pseudo_bits_per_base"] < 4
    bits = found["loss"] / np.log(2)  # a token is a base
    assert found["pseudo_bits_per_base"] == pytest.approx(bits)
    said = evaluate(run.path, genome.genome, on=["1/5"], say=lambda _: None).metrics
    assert said["pseudo_bits_per_base"] == pytest.approx(found["pseudo_bits_per_base"])
    assert "pseudo-likelihood" in said["notes"][0]
    assert "15% of the tokens" in said["notes"][0]
    fewer = evaluate(run.path, genome.genome, on=["1/5"], mask=0.05, say=lambda _: None).metrics
    assert "5% of the tokens" in fewer["notes"][0]
    share = fewer["predicted_tokens"] / said["predicted_tokens"]
    assert share == pytest.approx(1 / 3, rel=0.2)
    assert (run.path / "report.html").exists()
    assert (run.path / "tokenizer").is_dir()


def test_scores_lie_where_the_model_says(trained: tuple[Planted, Path], tmp_path: Path) -> None:
    """Every score of a scan against the model alone with one window."""
    genome, run = trained
    scan(run, genome.genome, tmp_path / "s.parquet", step=7, say=lambda _: None)
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "s.parquet").to_pydict()
    model = load(run)
    assert table["start"][0] == 0
    assert table["end"][-1] == len(genome.bases)
    assert table["start"][1:] == table["end"][:-1]
    around = "N" * 40 + genome.bases + "N" * 40
    rows = len(table["start"])
    for row in (0, 1, 2, 100, rows // 2, rows - 2, rows - 1):
        # A bin has its start in the middle; the first and the last one reach to the ends.
        at = 40 + (table["end"][row] - 4 if row == 0 else table["start"][row] + 3)
        plus, minus = around[at - 24 : at + 8], other_strand(around[at - 7 : at + 25])
        for bases, name in ((plus, "promoter +"), (minus, "promoter -")):
            ids = torch.tensor([model.tokenizer(bases)["input_ids"]])
            with torch.no_grad():
                logits = model.model(ids).logits[0, 1:-1]  # of 32 bases and four stretches of 8
            score = sum(logits[8 * i : 8 * i + 8, i].mean() for i in range(4)).sigmoid()
            assert table[name][row] == pytest.approx(float(score), abs=1e-5)


@pytest.mark.slow  # trains
@pytest.mark.parametrize("length", [1500, 1501])
def test_scores_of_the_other_strand_are_the_same(
    trained: tuple[Planted, Path], tmp_path: Path, length: int
) -> None:
    genome, run = trained
    import pyarrow.parquet as pq

    found: list[Any] = []
    for name, bases in (
        ("one", genome.bases[:length]), ("other", other_strand(genome.bases[:length]))
    ):  # fmt: skip
        file = write_fasta(tmp_path / f"{name}.fa", c=bases)
        scan(run, file, tmp_path / f"{name}.parquet", step=5, say=lambda _: None)
        found.append(pq.read_table(tmp_path / f"{name}.parquet").to_pydict())
    one, other = found
    assert one["start"] == [length - end for end in other["end"][::-1]]
    np.testing.assert_allclose(one["promoter +"], other["promoter -"][::-1], atol=1e-5)
    np.testing.assert_allclose(one["promoter -"], other["promoter +"][::-1], atol=1e-5)


@pytest.mark.slow  # trains
def test_formats_say_the_same(trained: tuple[Planted, Path], tmp_path: Path) -> None:
    genome, run = trained
    import pyarrow.parquet as pq

    options: dict[str, Any] = {"step": 9, "say": lambda _: None}
    for name in ("s.parquet", "s.bedgraph", "s.bw"):
        scan(run, genome.genome, tmp_path / name, **options)
    table = pq.read_table(tmp_path / "s.parquet").to_pydict()
    highest = np.maximum(table["promoter +"], table["promoter -"])
    each = np.repeat(highest, np.subtract(table["end"], table["start"]))
    with open_genome(genome.genome) as opened:
        whole = Interval("chrA", 0, len(genome.bases))
        for name in ("s.bedgraph", "s.bw"):
            values = open_signal(tmp_path / name, opened).values(whole)
            np.testing.assert_allclose(values, each, atol=1e-4)
        level = float(np.quantile(highest, 0.9))
        for name in ("s.bed", "s.gff3"):
            scan(run, genome.genome, tmp_path / name, threshold=level, **options)
            features = read_features(tmp_path / name, opened)
            assert features
            assert {each.interval.strand for each in features} <= {"+", "-"}
            for (
                feature
            ) in features:  # a bin that reaches the threshold, and no neighbour is higher
                row = table["start"].index(feature.interval.start)
                scores = table[f"promoter {feature.interval.strand}"]
                assert table["end"][row] == feature.interval.end
                assert scores[row] >= level
                assert scores[row] >= max(scores[max(0, row - 1) : row + 2]) - 1e-9
            runs = 0
            for strand in "+-":
                over = np.array(table[f"promoter {strand}"]) >= level
                runs += int((np.diff(np.concatenate([[0], over.astype(int)])) > 0).sum())
            assert len(features) == runs


def test_prevalence_shifts_the_logits(trained: tuple[Planted, Path], tmp_path: Path) -> None:
    genome, run = trained
    import pyarrow.parquet as pq

    scan(run, genome.genome, tmp_path / "a.parquet", step=31, say=lambda _: None)
    scan(run, genome.genome, tmp_path / "b.parquet", step=31, prevalence=0.01, say=lambda _: None)
    before, after = (
        np.array(pq.read_table(tmp_path / name)["promoter +"])
        for name in ("a.parquet", "b.parquet")
    )
    share = json.loads((run / "model" / "dna.json").read_text())["prevalence"]
    assert share == pytest.approx(0.25, abs=0.01)
    shift = np.log(0.01 / 0.99) - np.log(share / (1 - share))
    np.testing.assert_allclose(
        np.log(after / (1 - after)), np.log(before / (1 - before)) + shift, atol=1e-3
    )


def test_prevalence_counts_the_weights_of_classes(
    trained: tuple[Planted, Path], tmp_path: Path
) -> None:
    """A model with balanced classes takes one half for granted, whatever the windows were."""
    genome, run = trained
    import pyarrow.parquet as pq

    file = tmp_path / "run" / "model" / "dna.json"
    shutil.copytree(run, tmp_path / "run")
    file.write_text(json.dumps({**json.loads(file.read_text()), "prior": 0.5}))
    for name, share in (("a", None), ("b", 0.5), ("c", 0.01)):
        out = tmp_path / f"{name}.parquet"
        scan(tmp_path / "run", genome.genome, out, step=31, prevalence=share, say=lambda _: None)
    as_is, same, rare = (
        np.array(pq.read_table(tmp_path / f"{name}.parquet")["promoter +"]) for name in "abc"
    )
    np.testing.assert_allclose(same, as_is, atol=1e-6)
    odds = rare / (1 - rare)
    np.testing.assert_allclose(odds, as_is / (1 - as_is) / 99, rtol=1e-3)


@pytest.mark.slow  # trains
def test_a_picture_has_the_scores_of_the_scan(
    trained: tuple[Planted, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longbird.applications.dna.scanning import genome_scan

    genome, run = trained
    drawn: list[Any] = []
    before = genome_scan.draw

    def watched(region: Interval, length: int, scores: Any, *more: Any) -> None:
        drawn.append((region, scores))
        before(region, length, scores, *more)

    monkeypatch.setattr(genome_scan, "draw", watched)
    options: dict[str, Any] = {
        "plot": "chrA:1201-1800", "labels": [genome.labels], "step": 5, "say": lambda _: None
    }  # fmt: skip
    alone = tmp_path / "alone.png"
    scan(run, genome.genome, picture=alone, **options)
    scan(run, genome.genome, tmp_path / "s.parquet", **options)
    import pyarrow.parquet as pq

    beside = tmp_path / "s.chrA-1201-1800.png"
    assert alone.read_bytes()[:4] == beside.read_bytes()[:4] == b"\x89PNG"
    table = pq.read_table(tmp_path / "s.parquet").to_pydict()
    for region, scores in drawn:
        assert region == Interval("chrA", 1200, 1800, "+")
        rows = [row for row in range(len(table["start"]))
                if table["end"][row] > 1200 and table["start"][row] < 1800]  # fmt: skip
        assert scores.starts.tolist() == [table["start"][row] for row in rows]
        assert scores.values[:, 1].tolist() == [table["promoter -"][row] for row in rows]


SCAN = """
import sys, time
from longbird.applications.dna.scanning import resume, scan
before = resume.score_chunk
def slowly(*arguments):
    time.sleep(0.2)
    return before(*arguments)
resume.score_chunk = slowly
scan(sys.argv[1], sys.argv[2], sys.argv[3], step=3, say=print)
"""


@pytest.mark.slow  # a process of its own
def test_a_killed_scan_goes_on_to_the_same_file(
    trained: tuple[Planted, Path], tmp_path: Path
) -> None:
    genome, run = trained
    scan(run, genome.genome, tmp_path / "whole.bedgraph", step=3, say=lambda _: None)
    out = tmp_path / "killed.bedgraph"
    process = subprocess.Popen(
        [sys.executable, "-c", SCAN, str(run), str(genome.genome), str(out)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    raw = tmp_path / ".killed.bedgraph.scan" / "scores.f32"
    while not (raw.exists() and raw.stat().st_size):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    done = raw.stat().st_size
    assert 0 < done < 4 * 2 * 833
    with raw.open("ab") as file:  # a part of the next chunk, as a kill in the middle leaves it
        file.write(b"\1" * 100)
    said: list[str] = []
    scan(run, genome.genome, out, step=3, say=said.append)
    assert any("resuming" in line for line in said)
    assert out.read_bytes() == (tmp_path / "whole.bedgraph").read_bytes()
    assert not raw.parent.exists()


TRAIN = """
import sys
from longbird.applications.dna.runs import finetune
finetune("promoter", sys.argv[1], [sys.argv[2]], sys.argv[3], steps=9, upstream=24, downstream=8,
         tokens_per_batch=1024, save_every=0, say=print)
"""


@pytest.mark.slow  # two runs in processes of their own
def test_a_killed_run_ends_with_the_same_weights(tmp_path: Path, genome: Planted) -> None:
    options: dict[str, Any] = {**WINDOW, **SHORT, "steps": 9, "save_every": 0.0}
    whole = finetune("promoter", genome.genome, [genome.labels], tmp_path / "whole", **options)
    files = [str(each) for each in (genome.genome, genome.labels, tmp_path / "killed")]
    command = [sys.executable, "-c", TRAIN, *files]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list((tmp_path / "killed" / "checkpoints").glob("checkpoint-*")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "result.json").exists()
    finetune("promoter", genome.genome, [genome.labels], tmp_path / "killed", **options)
    one, other = (
        safetensors.torch.load_file(tmp_path / name / "model" / "model.safetensors")
        for name in ("whole", "killed")
    )
    assert whole.finished
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.slow  # learns
def test_a_planted_motif_is_found(tmp_path: Path, genome: Planted) -> None:
    """The contract of the command, from a genome to figures."""
    run = CliRunner()

    def call(*words: Any) -> str:
        done = run.invoke(app, ["dna", *map(str, words)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    os.chdir(tmp_path)
    call("pretrain", genome.genome, "--tokens", "base", "--length", 66, "--steps", 2,
         "--tokens-per-batch", 1024, "--out", "pre")  # fmt: skip
    call("finetune", "promoter", genome.genome, genome.labels, "--model", "pre", "--upstream", 24,
         "--downstream", 8, "--steps", 150, "--learning-rate", 2e-3, "--tokens-per-batch", 1024,
         "--negatives", "random", "--out", "prom")  # fmt: skip
    said = json.loads(
        call("evaluate", "prom", genome.genome, genome.labels, "--on", "5/5", "--json")
    )
    assert said["negatives"] == "random"
    assert "random" in said["notes"][0]
    low, high = said["intervals"]["auroc"]
    assert low <= said["auroc"] <= high
    assert said["auroc"] > 0.9
    part = write_fasta(tmp_path / "part.fa", chrA=genome.bases[:4000])
    call("scan", "prom", part, "--out", "found.bed", "--threshold", 0.5, "--step", 1)
    with open_genome(part) as opened:
        found = {
            (each.interval.start, each.interval.strand)
            for each in read_features("found.bed", opened)
        }
    starts = [(at, strand) for at, strand in genome.starts if at < 3950]
    right = sum(any((at + off, strand) in found for off in range(-3, 4)) for at, strand in starts)
    assert right > 0.7 * len(starts)
    assert "Negatives: random" in Path("prom/report.html").read_text()
    assert "Negatives: random" in Path("prom/model/README.md").read_text()
