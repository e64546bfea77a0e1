"""Experiments on DNA at their tiny scale, on small genomes: that they run, and go on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from longbird.bench.dna import corpora
from longbird.bench.dna.bases import letters
from longbird.bench.dna.bits import PASSES, bits_of_model
from longbird.bench.dna.classifying import Budget
from longbird.bench.dna.experiments import EXPERIMENTS, bits, promoters, scan
from longbird.bench.dna.finetuned import Finetuned
from longbird.bench.dna.linear import scan as scan_by
from longbird.bench.dna.models import TINY, pretrained, write_twin
from longbird.bench.quality.report import Report
from longbird.bench.quality.run import Found, run
from longbird.dna.runs import load


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
    every = replace(promoters.SIZES["tiny"], share=1)  # the genome is small enough
    monkeypatch.setitem(promoters.SIZES, "tiny", every)
    asked = promoters.experiment("tiny")
    said: list[str] = []
    found = run(asked, (0,), tmp_path / "work", say=said.append)
    assert found.missing == []
    page, data = written(found, tmp_path)
    assert "Negatives: random are places" in page and "Scale tiny" in page
    assert set(data["figures"]) == {
        f"{what}, {name}" for what in ("AUROC", "AP") for name in ("random", "intergenic")
    }
    assert sum("pretraining, once" in line for line in said) == 1
    again: list[str] = []
    found = run(scan.experiment("tiny"), (0,), tmp_path / "work", say=again.append)
    assert found.missing == [] and not any("pretraining, once" in line for line in again)
    page, data = written(found, tmp_path)
    assert data["figures"]["AP"]["one-hot"][0] > data["figures"]["AP"]["A+T content"][0]
    assert data["figures"]["false calls per Mb at recall 0.25"]["one-hot"][0] > 0


def test_every_experiment_is_there() -> None:
    folder = Path(promoters.__file__).parent
    there = {file.stem for file in folder.glob("*.py")} - {"__init__", "sources", "speed"}
    assert there == set(EXPERIMENTS)


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
    assert bases.sum() == 299 and set(bases.tolist()) == {0, 1}
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
    found = run(bits.experiment("tiny"), (0,), tmp_path / "work", say=quiet)
    _, data = written(found, tmp_path)
    figures = {name: value for name, (value, _, _) in data["figures"]["bits per base"].items()}
    assert figures["two-sided table, 4 + 4"] == pytest.approx(2.0, abs=0.05)  # of random bases
    assert figures["single bases, 256 tokens"] > 1.9
    with pytest.raises(ValueError, match="leave --model out"):
        bits.experiment("tiny", tmp_path)
