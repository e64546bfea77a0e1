"""The recipe of the included DNA models does not train on what the experiments hold out."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments.dna.corpora import GAP
from experiments.dna.splits import TEST, TRAIN, VALIDATION, by_fifth

RECIPE = Path(__file__).parents[2] / "recipes" / "dna"
LENGTH = 4_641_652


@pytest.fixture
def prepare(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("dna_prepare", RECIPE / "prepare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def places(records: list[tuple[str, np.ndarray]]) -> dict[str, list[tuple[int, int]]]:
    """Where records say that they lie, 0-based and half open, by what they are for."""
    found: dict[str, list[tuple[int, int]]] = {}
    for name, _ in records:
        own = re.fullmatch(r"circle:(\d+)-(\d+):(\w+)", name)
        assert own is not None
        found.setdefault(own[3], []).append((int(own[1]) - 1, int(own[2])))
    return found


def test_what_is_held_out_is_not_learned_from(
    prepare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    circle = np.arange(LENGTH) % 4
    circle = circle.astype(np.uint8)
    own = SimpleNamespace(sequences={"circle": circle})
    monkeypatch.setattr(prepare, "bacterium", lambda name: own)
    made = prepare.coli()
    for _, bases in made["train"] + made["test"]:
        assert 0 < len(bases) <= LENGTH
    learned = places(made["train"])
    bits, starts = (by_fifth(LENGTH, fifth, GAP, circular=True) for fifth in (4, 2))
    for first, last in learned["train"]:
        assert (bits[first:last] == TRAIN).all()
        assert (starts[first:last] == TRAIN).all()
    for first, last in learned["validation"]:
        assert (bits[first:last] == VALIDATION).all()
    [(first, last)] = places(made["test"])["test"]
    assert (bits[first:last] == TEST).all()
    assert last - first == (bits == TEST).sum()
    learned_bases = sum(last - first for first, last in learned["train"])
    assert learned_bases > 0.4 * LENGTH

    # A record has the bases that its name says; a copy begins later, and has nothing to choose by.
    for name, bases in made["train"]:
        first = int(name.split(":")[1].split("-")[0]) - 1
        assert np.array_equal(bases, circle[first : first + len(bases)])
    copies = list(prepare.again(made["train"], 2))
    originals = [each for each in made["train"] if each[0].endswith(":train")]
    assert [name for name, _ in copies] == [f"{name}:3" for name, _ in originals]
    for (_, copy), (_, original) in zip(copies, originals, strict=True):
        assert np.array_equal(copy, original[2 * prepare.SHIFT :])


@pytest.mark.slow  # a whole model
def test_the_first_weights_look_at_neighbours(prepare: Any, tmp_path: Path) -> None:
    import torch

    from longbird.applications.dna.genomes import DnaTokenizer
    from longbird.models import LongbirdForMaskedLM

    prepare.start(tmp_path)
    model = LongbirdForMaskedLM.from_pretrained(tmp_path).eval()
    parameters = sum(x.numel() for x in model.parameters())
    assert 2 * 2 * parameters < 9_000_000  # both models, in half precision
    drawn = np.random.default_rng(0).integers(0, 4, 200)
    ids = DnaTokenizer.load(tmp_path).encode("".join("ACGT"[each] for each in drawn)).ids
    with torch.no_grad():
        first: Any = model(torch.tensor(ids)[None], output_attentions=True).attentions[0]
    for head, distance in enumerate((-1, 1, -2, 2, -3, 3)):
        for at in range(80, 120):
            keys, weights = first.row(0, head, at)
            assert float(weights[keys == at + distance]) > 0.5
