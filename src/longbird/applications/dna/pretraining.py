"""Masked language modelling of genomes, on both strands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.applications.dna.division import Division
from longbird.applications.dna.genome_files import Labelled, check_once
from longbird.applications.dna.genomes.letters import opposite
from longbird.applications.dna.genomic import Genomic
from longbird.applications.training.settings.groups import Settings
from longbird.applications.training.tasks.language_modelling.masking import masked
from longbird.applications.training.tasks.task import Example, Prediction
from longbird.models.layers.checks import IGNORED

SUMS = ("nats", "predicted", "right", "bases")


class Pretraining(Genomic):
    """Masked tokens are predicted from those on both sides.

    In training, the strand on which a window is read is drawn in each epoch. In evaluation, every
    token to predict is masked; in training, some of them are visible.
    """

    name = "dna-pretrain"
    head = "masked-lm"
    best = "loss"
    more_is_better = False

    def genomes(self, paths: Sequence[str]) -> Sequence[Labelled]:
        """Return all files as genomes without labels."""
        check_once(paths)
        return [Labelled(path, ()) for path in paths]

    def prepare(self, settings: Settings, tokenizer: Any) -> None:
        """Set the mask token, and the tokens that are never masked."""
        super().prepare(settings, tokenizer)
        dna = self.tokens.dna
        self.mask = tokenizer.mask_token_id
        # N is no information about the genome, and is not predicted.
        never = {*tokenizer.all_special_ids, self.tokens.unknown_base}
        self.special = np.array(sorted(never), dtype=np.int64)
        self.ordinary = np.setdiff1d(np.arange(len(dna)), self.special)

    def head_settings(self) -> dict[str, Any]:
        """Return the configuration: logits are computed for masked tokens alone."""
        return {"sparse_prediction": True}

    def windows(self, division: Division, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        """Yield the windows of a genome that have bases other than N."""
        for part in division.spans:
            for window in division.windows(part, self.window):
                bases = division.genome.bases(window)
                for piece in self.pieces(bases):
                    own = bases[piece]
                    if own.strip("N"):
                        place = str(window.part(piece.start, piece.stop))
                        yield {"place": place, "part": part, "bases": own}

    def learn(self, examples: Iterable[Example]) -> None:
        """Check that there are training examples."""
        self.check_learned(sum(1 for _ in examples))

    def inputs_of(self, row: Example, part: int, number: int, epoch: int | None) -> dict[str, Any]:
        """Return a window with the strand and the mask of an epoch (None: evaluation)."""
        key = (0, 0, number) if epoch is None else (self.settings.seed, 1 + epoch, number)
        draw = np.random.default_rng(key)
        bases = row["bases"]
        if epoch is not None and draw.random() < 0.5:
            bases = opposite(bases)
        ids = np.array(self.tokens.inputs(self.tokens.encode(bases)))
        every = np.ones(len(ids), dtype=bool)
        seen, labels = masked(
            ids, every, self.special, self.ordinary, self.mask, self.settings.mask, draw
        )
        if epoch is None:
            seen = np.where(labels == IGNORED, ids, self.mask)
        return {"input_ids": seen.tolist(), "labels": labels.tolist()}

    def items(self, batch: Mapping[str, Tensor]) -> int:
        """Return the number of tokens to predict."""
        return int((batch["labels"] != IGNORED).sum())

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """Return the summed loss of each window, and its number of predicted tokens and bases."""
        model.config.sparse_prediction = True
        counted = batch["labels"] != IGNORED
        logits, targets = model(**batch).logits, batch["labels"][counted]
        each = counted.sum(1).tolist()
        losses = [
            F.cross_entropy(some.float(), right, reduction="none")
            for some, right in zip(logits.split(4096), targets.split(4096), strict=True)
        ]
        nats = torch.cat([*losses, torch.zeros(0, device=logits.device)]).double().split(each)
        found = (logits.argmax(-1) == targets).split(each)
        return [
            {
                "nats": float(some.sum()),
                "predicted": count,
                "right": int(right.sum()),
                "bases": int(self.tokens.dna.lengths[own.cpu().numpy()].sum()),
            }
            for some, right, own, count in zip(nats, found, targets.split(each), each, strict=True)
        ]

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """Return the bits per base of a window."""
        bits = prediction["nats"] / np.log(2) / max(prediction["bases"], 1)
        return {"pseudo_bits_per_base": float(bits)}

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """Return loss and accuracy per token, and bits per base."""
        sums = _sums(predictions).sum(0)
        rates = _rates(sums)
        return {
            "windows": len(predictions),
            "predicted_tokens": int(sums[1]),
            "predicted_bases": int(sums[3]),
            **{name: float(value) for name, value in rates.items()},
        }

    def resampled(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], counts: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the metrics of all samples."""
        return _rates(counts @ _sums(predictions))

    def notes(self) -> list[str]:
        """Return notes on the meaning of bits per base."""
        return [
            f"{100 * self.settings.mask:.3g}% of the tokens are masked at once. "
            "Bits per base are the bits of all masked tokens, divided by their bases without N. "
            "They are a pseudo-likelihood: each token is predicted from those on both sides"
            + (
                ""
                if self.tokens.dna.k == 1
                else ", and the bounds of these tell the length of the masked token"
            )
            + ". They cannot be compared with those of a model that reads in one direction."
        ]

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """Return the bits per base."""
        return self.answer(prediction)["pseudo_bits_per_base"]

    def expected(self, example: Example) -> Any:
        """Return nothing, since the bases are shown anyway."""
        return ""


def _sums(predictions: Sequence[Prediction]) -> np.ndarray:
    return np.array([[each[name] for name in SUMS] for each in predictions], dtype=float)


def _rates(sums: np.ndarray) -> dict[str, np.ndarray]:
    nats, predicted, right, bases = np.moveaxis(sums, -1, 0)
    return {
        "loss": nats / np.maximum(predicted, 1),
        "accuracy": right / np.maximum(predicted, 1),
        "pseudo_bits_per_base": nats / np.log(2) / np.maximum(bases, 1),
    }
