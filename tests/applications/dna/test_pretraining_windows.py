"""Which tokens are hidden, on which strand, and how many bits a base costs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from planting import other_strand, write_fasta
from transformers import AutoTokenizer

from longbird.applications.dna.genomes import DnaTokenizer
from longbird.applications.dna.pretraining import Pretraining
from longbird.applications.dna.settings import DnaPretrainingSettings

TOKENIZERS = {
    "base": DnaTokenizer.base,
    "kmer": lambda: DnaTokenizer.kmer(3),
    "bpe": lambda: DnaTokenizer.train(["".join(random.Random(1).choices("ACGT", k=5000))], 60),
}


def windows_of(folder: Path, kind: str) -> tuple[Pretraining, str, list[dict[str, Any]]]:
    bases = "".join(random.Random(0).choices("ACGT", k=900))
    bases = bases[:100] + "N" * 150 + bases[250:]
    genome = write_fasta(folder / "g.fa", c=bases)
    TOKENIZERS[kind]().save(folder / "tokenizer")
    task = Pretraining()
    settings = DnaPretrainingSettings(
        "dna-pretrain", (str(genome),), length=34, validation_on=("none",)
    )
    task.prepare(settings, AutoTokenizer.from_pretrained(folder / "tokenizer"))
    return task, bases, list(task.examples((), settings, lambda _: None))


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_windows_have_every_base_and_fit(tmp_path: Path, kind: str) -> None:
    task, bases, found = windows_of(tmp_path, kind)
    covered = np.zeros(len(bases), int)
    for each in found:
        place = each["place"].partition("(")[0].removeprefix("c:")
        start, end = map(int, place.split("-"))
        assert each["bases"] == bases[start - 1 : end]
        covered[start - 1 : end] += 1
        for strand in (each["bases"], other_strand(each["bases"])):
            assert 2 + len(task.tokens.encode(strand)) <= 34
    letters = np.array(list(bases))
    assert covered.max() == 1
    assert (covered[letters != "N"] == 1).all()
    assert (covered == 0).any()  # windows of nothing but N are left out


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_strands_and_masks_are_drawn_for_each_epoch(tmp_path: Path, kind: str) -> None:
    task, _, found = windows_of(tmp_path, kind)
    row = found[2]
    unknown, seen = task.tokens.unknown_base, set[str]()
    for epoch in range(12):
        inputs = task.inputs_of(row, 0, 5, epoch)
        assert inputs == task.inputs_of(row, 0, 5, epoch)
        ids, labels = np.array(inputs["input_ids"]), np.array(inputs["labels"])
        read = task.tokens.dna.decode(np.where(labels >= 0, labels, ids))
        seen.add(read)
        assert not np.isin(labels, [unknown, task.mask]).any()
    assert seen == {row["bases"], other_strand(row["bases"])}
    inputs = task.inputs_of(row, 0, 5, None)
    ids, labels = np.array(inputs["input_ids"]), np.array(inputs["labels"])
    assert ((ids == task.mask) == (labels >= 0)).all()  # nothing that is measured is told
    assert task.tokens.dna.decode(np.where(labels >= 0, labels, ids)) == row["bases"]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_bits_are_divided_by_the_bases_of_hidden_tokens(tmp_path: Path, kind: str) -> None:
    task, _, found = windows_of(tmp_path, kind)
    inputs = [task.inputs_of(row, 0, number, None) for number, row in enumerate(found)]
    batch = task.batch(inputs, task.pad)
    table = torch.randn(len(task.tokens.dna), generator=torch.Generator().manual_seed(0))

    class Model:
        config = type("Config", (), {})()

        def __call__(self, labels: torch.Tensor, **_: Any) -> Any:
            self.logits = table.expand(int((labels >= 0).sum()), -1)
            return self

    measured = task.measure(found, task.predictions(Model(), batch))
    chances = (table - table.logsumexp(0)).double().numpy() / np.log(2)
    hidden = [label for each in inputs for label in each["labels"] if label >= 0]
    bases = sum(len(task.tokens.dna.pieces[label]) for label in hidden)
    expected = -sum(chances[label] for label in hidden) / bases
    assert measured["pseudo_bits_per_base"] == pytest.approx(expected, rel=1e-5)
    assert measured["predicted_bases"] == bases
    assert measured["predicted_tokens"] == len(hidden)
