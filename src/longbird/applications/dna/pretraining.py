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
    """Some tokens are hidden, and predicted from those on both sides.

    In training, a window is read on one strand or the other, by a draw for each epoch. Where a
    model is measured, every token that is to be predicted is hidden: one that stays, as in
    training now and then, would be told.
    """

    name = "dna-pretrain"
    head = "masked-lm"
    best = "loss"
    more_is_better = False

    def genomes(self, paths: Sequence[str]) -> Sequence[Labelled]:
        """All of them."""
        check_once(paths)
        return [Labelled(path, ()) for path in paths]

    def prepare(self, settings: Settings, tokenizer: Any) -> None:
        """Also which token hides another, and which are never hidden."""
        super().prepare(settings, tokenizer)
        dna = self.tokens.dna
        self.mask = tokenizer.mask_token_id
        # N says nothing of the genome: it is not to be predicted.
        never = {*tokenizer.all_special_ids, self.tokens.unknown_base}
        self.special = np.array(sorted(never), dtype=np.int64)
        self.ordinary = np.setdiff1d(np.arange(len(dna)), self.special)

    def head_settings(self) -> dict[str, Any]:
        """Logits of the tokens that are to be predicted, and of no others."""
        return {"sparse_prediction": True}

    def windows(self, division: Division, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        """All of the genome but what is N."""
        for part in division.spans:
            for window in division.windows(part, self.window):
                bases = division.genome.bases(window)
                for piece in self.pieces(bases):
                    own = bases[piece]
                    if own.strip("N"):
                        place = str(window.part(piece.start, piece.stop))
                        yield {"place": place, "part": part, "bases": own}

    def learn(self, examples: Iterable[Example]) -> None:
        """Counts them."""
        self.check_learned(sum(1 for _ in examples))

    def inputs_of(self, row: Example, part: int, number: int, epoch: int | None) -> dict[str, Any]:
        """A strand and masks of this epoch; where a model is measured, those of no seed."""
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
        """The tokens to predict."""
        return int((batch["labels"] != IGNORED).sum())

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """The loss of each window, summed, and how many tokens and bases it is of."""
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
        """Bits per base of a window."""
        bits = prediction["nats"] / np.log(2) / max(prediction["bases"], 1)
        return {"pseudo_bits_per_base": float(bits)}

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """Loss and accuracy of tokens, and bits per base."""
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
        """The metrics of all samples at once."""
        return _rates(counts @ _sums(predictions))

    def notes(self) -> list[str]:
        """What kind of bits these are."""
        return [
            f"{100 * self.settings.mask:.3g}% of the tokens are hidden at once. "
            "Bits per base are the bits of all hidden tokens, divided by their bases, N left out. "
            "They are a pseudo-likelihood: each token is seen with what stands on both sides"
            + (
                ""
                if self.tokens.dna.k == 1
                else ", and where tokens begin and end tells the length of the hidden one"
            )
            + ". They are not to be compared with those of a model that reads in one direction."
        ]

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """Its bits per base."""
        return self.answer(prediction)["pseudo_bits_per_base"]

    def expected(self, example: Example) -> Any:
        """Its bases, which stand beside it."""
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
