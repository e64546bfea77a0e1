"""Experiments on DNA at the quick scale, on small genomes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.dna import artificial as of_flies
from experiments.dna import coding as of_genes
from experiments.dna import corpora
from experiments.dna import profile as of_bins
from experiments.dna.bases import letters
from experiments.dna.bits import PASSES, bits_of_model
from experiments.dna.classifying import Budget
from experiments.dna.experiments import artificial, bits, coding, profile, promoters, scan
from experiments.dna.experiments import dna_speed as speed
from experiments.dna.finetuned import Finetuned
from experiments.dna.linear import scan as scan_by
from experiments.dna.models import PRETRAINED, TINY, TWIN, pretrained, write_twin
from experiments.dna.organisms import Organism
from experiments.framework.report import Report
from experiments.framework.run import Found, run
from experiments.speed.run import run as run_steps
from longbird.applications.dna.genomes import open_genome, read_features
from longbird.applications.dna.runs import load


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGBIRD_CACHE", str(tmp_path_factory.mktemp("cache")))


def quiet(_: str) -> None:
    """Says nothing."""


def written(found: Found, folder: Path) -> tuple[str, dict]:
    page, data, _ = Report(found).write(folder)
    assert page.name.startswith(f"dna-{found.experiment.name}_")
    return page.read_text(), json.loads(data.read_text())


@pytest.mark.slow  # trains six models for a few steps
def test_promoters_and_scan_share_a_pretrained_model(
    small: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    every = replace(promoters.SIZES["quick"], share=1)  # the genome is small enough
    monkeypatch.setitem(promoters.SIZES, "quick", every)
    asked = promoters.experiment("quick")
    said: list[str] = []
    found = run(asked, (0,), tmp_path / "work", say=said.append)
    assert found.missing == []
    page, data = written(found, tmp_path)
    assert "Negatives: random are places" in page
    assert "Scale quick" in page
    assert set(data["figures"]) == {
        f"{what}, {name}" for what in ("AUROC", "AP") for name in ("random", "intergenic")
    }
    assert sum("pretraining, once" in line for line in said) == 1
    again: list[str] = []
    found = run(scan.experiment("quick"), (0,), tmp_path / "work", say=again.append)
    assert found.missing == []
    assert not any("pretraining, once" in line for line in again)
    page, data = written(found, tmp_path)
    assert data["figures"]["AP"]["one-hot"][0] > data["figures"]["AP"]["A+T content"][0]
    assert data["figures"]["false calls per Mb at recall 0.25"]["one-hot"][0] > 0


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A pretrained model of few bases."""
    draw = np.random.default_rng(0).integers(0, 4, 3000).astype(np.uint8)
    folder, _ = pretrained(tmp_path, TINY, [draw], 0, quiet)
    return folder


def test_bits_are_those_of_each_hidden_token(model: Path) -> None:
    """Against one token at a time, with the logits of the whole vocabulary."""
    import torch

    trained = load(model)
    stretch = np.random.default_rng(1).integers(0, 4, 300).astype(np.uint8)
    stretch[17] = 4
    found, bases = bits_of_model(trained, stretch)
    assert np.flatnonzero(np.isnan(found)).tolist() == [17]
    assert bases.sum() == 299
    assert set(bases.tolist()) == {0, 1}
    some, fewer = bits_of_model(trained, stretch, passes=1)
    assert fewer.sum() == pytest.approx(299 / PASSES, abs=4)
    np.testing.assert_allclose(some[fewer > 0], found[fewer > 0], atol=1e-5)
    window = trained.settings.length - 2
    ids = trained.tokenizer(letters(stretch[:window]))["input_ids"]
    turn = np.random.default_rng(0).permutation(len(ids)) % PASSES
    hidden = [i for i in range(1, window + 1) if turn[i] == turn[5] and i != 18]
    seen = torch.tensor([[trained.task.mask if i in hidden else x for i, x in enumerate(ids)]])
    with torch.no_grad():
        logits = trained.model(seen).logits[0].double().log_softmax(-1)
    expected = -logits[5, ids[5]] / np.log(2)
    assert found[4] == pytest.approx(float(expected), abs=1e-4)


def test_a_twin_differs_in_its_weights_alone(model: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    source = model / "model"
    write_twin(source, 1, tmp_path / "twin")
    write_twin(source, 2, tmp_path / "other")
    kept = json.loads((source / "config.json").read_text())
    new = json.loads((tmp_path / "twin" / "config.json").read_text())
    assert {x: new[x] for x in ("hidden_size", "graph", "vocab_size")} == {
        x: kept[x] for x in ("hidden_size", "graph", "vocab_size")
    }
    words = [
        load_file(tmp_path / x / "model.safetensors")["embeddings.tokens.weight"]
        for x in ("twin", "other")
    ]
    assert not words[0].equal(words[1])


@pytest.mark.slow  # trains
def test_a_model_as_a_scorer_learns_and_scans(model: Path, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    windows = draw.integers(0, 4, (400, 40)).astype(np.uint8)
    positive = np.arange(400) % 2 == 0
    windows[positive, 10:30] = 3  # what any network can see
    budget = Budget(steps=12, batch=2048, learning_rate=1e-2, step=4)
    scorer = Finetuned(model / "model", tmp_path / "scorer", 0, budget, quiet)
    scorer.fit(windows, positive, np.arange(400) // 10)
    scores = scorer.scores(windows)
    assert scores[positive].mean() > scores[~positive].mean()
    sequence = draw.integers(0, 4, 99).astype(np.uint8)
    along = scan_by(scorer, sequence, 40)
    for at in (0, 4, 56, 59):
        assert along[at] == pytest.approx(scorer.scores(sequence[None, at : at + 40])[0], abs=1e-4)
    assert along[2] == pytest.approx((along[0] + along[4]) / 2, abs=1e-5)
    again = Finetuned(model / "model", tmp_path / "scorer", 0, budget, quiet)
    again.fit(windows, positive, np.arange(400) // 10)  # is there already
    np.testing.assert_allclose(again.scores(windows), scores, atol=1e-5)
    assert scorer.cost["steps"] == 12


@pytest.mark.slow  # trains five models for a step or two
def test_bits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    draw = np.random.default_rng(0).integers(0, 4, 30_000).astype(np.uint8)
    own = corpora.of_one(draw, circular=True, gap=256)
    monkeypatch.setattr(bits, "corpus", lambda name: own)
    found = run(bits.experiment("quick"), (0,), tmp_path / "work", say=quiet)
    _, data = written(found, tmp_path)
    figures = {name: value for name, (value, _, _) in data["figures"]["bits per base"].items()}
    assert figures["two-sided table, 4 + 4"] == pytest.approx(2.0, abs=0.05)  # of random bases
    assert figures["single bases, 256 tokens"] > 1.9
    with pytest.raises(ValueError, match="leave --model out"):
        bits.experiment("quick", tmp_path)


def bacteria(seed: int, length: int = 12_000) -> Organism:
    """Every other stretch of 300 bases codes, on alternating strands, and has its own bases."""
    draw = np.random.default_rng(seed)
    sequence = draw.integers(0, 4, length).astype(np.uint8)
    codons = np.full((2, length), -1, np.int8)
    for number, begin in enumerate(range(300, length - 300, 600)):
        codons[number % 2, begin : begin + 300] = np.arange(300) % 3
        sequence[begin : begin + 300] = (0, 3)[number % 2]
    name = f"o. {seed}"
    return Organism(
        name,
        {f"chr{seed}": sequence},
        False,
        {f"chr{seed}": codons},
        {f"chr{seed}": codons[0] >= 0},
    )


@pytest.mark.slow  # trains three models for a few steps
def test_coding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = {name: bacteria(seed) for seed, name in enumerate((*coding.TRAIN, coding.TEST))}
    for module in (coding, of_genes):
        monkeypatch.setattr(module, "bacterium", known.__getitem__)
    every = replace(coding.SIZES["quick"], most=None, budget=Budget(30, 4096, 3e-3), every=1)
    monkeypatch.setitem(coding.SIZES, "quick", every)
    found = run(coding.experiment("quick"), (0,), tmp_path / "work", say=quiet)
    page, data = written(found, tmp_path)
    assert "Matthews' correlation" in page
    mcc = {name: value for name, (value, _, _) in data["figures"]["MCC"].items()}
    assert mcc["3-periodic table"] > 0.8  # what is planted is easy
    assert mcc[PRETRAINED] > 0.3
    assert mcc[TWIN] > 0.3
    assert mcc["all coding"] < 0.2


def test_genes_as_files_are_those_of_the_genome(tmp_path: Path) -> None:
    genome, genes = of_genes.write_genes(bacteria(1), tmp_path, most=5000)
    with open_genome(genome) as opened:
        assert opened.sequences["chr1"].length == 5000
        found = read_features(genes, opened)
    codons = bacteria(1).codons["chr1"]
    for each in found:
        row = codons["+-".index(each.interval.strand)]
        assert (row[each.interval.start : each.interval.end] >= 0).all()
    assert sum(len(each.interval) for each in found) == (codons[:, :5000] >= 0).sum()


@pytest.mark.slow  # trains three models for a step or two
def test_profile(small: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(of_bins, "PEAKS", 30)
    wanted = [PRETRAINED, TWIN, profile.SEARCH]
    found = run(profile.experiment("quick"), (0,), tmp_path / "work", wanted, quiet)
    # For the words there are too few peaks.
    assert found.missing == [f"{PRETRAINED}, 256 tokens (seed 0)", "5-mers of the bin"]
    _, data = written(found, tmp_path)
    figures = data["figures"]["AP, ChIP peak"]
    assert set(figures) == set(wanted)
    assert figures[profile.SEARCH][0] > 0.5
    [one] = found.findings[PRETRAINED]
    assert len(set(one.documents["score coding +"])) > 1
    assert set(one.documents["true coding +"]) == {0, 1}
    assert all("documents" not in each for each in data["attempts"])


def test_tracks_as_files_are_those_of_the_bins(
    small: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(of_bins, "PEAKS", 30)
    folder = tmp_path / "tracks"
    folder.mkdir()
    files = of_bins.write_tracks(folder)
    assert [file.stem for file in files] == list(of_bins.TARGETS)
    for file, track in zip(files, of_bins.tracks().values(), strict=True):
        begins, ends = of_bins.read_bed(file)
        assert np.array_equal(of_bins.covered(begins, ends, len(track)), track)


@pytest.mark.slow  # trains nine models for a step or two
def test_artificial(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    count = 200
    bases = np.random.default_rng(0).choice(4, (count, 2000), p=[0.45, 0.05, 0.05, 0.45])
    every = of_flies.Upstream(
        bases.astype(np.uint8),
        np.array(["chr2R", "chrX", "chr3L", "chr2RHet", "chrXHet"])[np.arange(count) % 5],
        np.arange(count) * 3000,
        np.zeros(count, bool),
    )
    monkeypatch.setattr(of_flies, "upstream", lambda: every)
    own = corpora.Corpus(list(bases[:4].astype(np.uint8)), [], [])
    monkeypatch.setattr(artificial, "corpus", lambda name: own)
    of_flies.examples.cache_clear()
    artificial.examples.cache_clear()
    found = run(artificial.experiment("quick"), (0,), tmp_path / "work", say=quiet)
    page, data = written(found, tmp_path)
    assert "uniform has random bases there" in page
    assert data["figures"]["AUROC, uniform 2,000"]["5-mers"][0] > 0.95
    assert data["figures"]["AUROC, permuted 2,000"]["A+T content"][0] == pytest.approx(0.5)
    of_flies.examples.cache_clear()
    artificial.examples.cache_clear()


@pytest.mark.slow  # three models, with a check against dense attention
def test_speed(small: str, tmp_path: Path) -> None:
    speed.tokenizer_of.cache_clear()
    speed.task_of.cache_clear()
    asked = speed.experiment("quick")
    given = asked.settings
    result = run_steps(asked.name, given, asked.steps)
    speed.task_of.cache_clear()
    assert [held.case.training for held in result.contests] == [False, True]
    for held in result.contests:
        assert set(held.samples) == {peer.name for peer in given.everybody}, held.skipped
        assert held.facts["bases"] == 2 * (1024 - 2)
    page, _, _ = speed.report(result).write(result, (), tmp_path)
    assert "Bases a second" in page.read_text()
    assert "## Targets" not in page.read_text()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["genes"], "expected one of attention"),
        (["promoters", "--model", "./nowhere"], "there is no folder"),
        (["dna-speed", "--only", "x"], "leave out `only`"),
        (["dna-speed", "--model", "default"], "does not start from a model"),
    ],
)
def test_the_command_says_what_is_wrong(cli, line: list[str], message: str) -> None:
    found = cli(*line)
    assert found.exit_code != 0
    assert message in str(found.exception) + found.output
