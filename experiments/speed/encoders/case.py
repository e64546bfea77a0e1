"""Cases of the experiments `encoders` and `int8`: documents through an encoder of one shape."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from experiments.speed.contest import Contest
from experiments.speed.timing import Samples

# A real vocabulary would make a step mostly AdamW's, over embeddings of tokens that do not occur.
VOCABULARY = 1024
CHUNK = 512  # what a BERT can read at once

Inputs = dict[str, Tensor]


@dataclass(frozen=True)
class Shape:
    """The sizes that all encoders of a comparison share."""

    name: str
    layers: int
    width: int
    heads: int
    inner: int

    def __str__(self) -> str:
        """Return a line for reports."""
        return (
            f"{self.name}: {self.layers} layers of {self.width}, {self.heads} heads of "
            f"{self.width // self.heads}, feed-forward {self.inner}"
        )


SHAPES = {
    "base": Shape("BigBird-base", layers=12, width=768, heads=12, inner=3072),
    "minilm": Shape("MiniLM", layers=6, width=384, heads=12, inner=1536),
}


@dataclass(frozen=True)
class Case:
    """Documents through an encoder, as a forward pass or as a training step.

    Attributes:
        shape: Sizes of the whole encoder.
        lengths: Number of tokens of each document of a batch.
        layers: Number of layers that run.
        training: Whether to run a training step.
    """

    shape: Shape
    lengths: tuple[int, ...]
    layers: int
    training: bool = False

    @property
    def n(self) -> int:
        """Number of tokens of the longest document."""
        return max(self.lengths)

    @property
    def kind(self) -> Hashable:
        """A value that is equal for cases that differ only in tokens and layers."""
        return self.shape, self.training, len(self.lengths)

    @property
    def mode(self) -> str:
        """Description of the passes."""
        return "training step" if self.training else "forward"

    def __str__(self) -> str:
        """Return a line for the progress display."""
        tokens = " and ".join(f"{n:,}" for n in self.lengths)
        layers = f"{self.layers} of {self.shape.layers} layers"
        return f"{self.shape.name}, {layers}, {tokens} tokens, {self.mode}"

    @property
    def sizes(self) -> dict[str, Any]:
        """The sizes by the names that configurations of transformers and Longbird share."""
        return {
            "num_hidden_layers": self.layers,
            "hidden_size": self.shape.width,
            "num_attention_heads": self.shape.heads,
            "intermediate_size": self.shape.inner,
            "vocab_size": VOCABULARY,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        }

    def documents(self) -> list[Tensor]:
        """Return token ids, the same in every call."""
        generator = torch.Generator().manual_seed(0)
        return [torch.randint(5, VOCABULARY, (n,), generator=generator) for n in self.lengths]


def padded(texts: Sequence[Tensor]) -> Inputs:
    """Return a padded batch, with a mask if there is padding."""
    ids = pad_sequence(list(texts), batch_first=True)
    lengths = torch.tensor([len(text) for text in texts])
    mask = torch.arange(ids.shape[1]) < lengths[:, None]
    return {"input_ids": ids} | ({} if bool(mask.all()) else {"attention_mask": mask.long()})


def chunked(texts: Sequence[Tensor]) -> Inputs:
    """Return the same tokens in chunks of `CHUNK`, which a BERT can read."""
    return padded([chunk for text in texts for chunk in text.split(CHUNK)])


def without_layers(name: str) -> str:
    """Return the name of a contestant whose model has no layers."""
    return f"{name}, no layers"


def whole(held: Contest) -> Samples:
    """Return seconds of whole encoders, computed from models with some layers and with none."""
    case, samples = held.case, held.samples
    if case.layers == case.shape.layers:
        return samples
    times = case.shape.layers / case.layers
    return {
        name: [
            once + times * (some - once)
            for some, once in zip(taken, samples[without_layers(name)], strict=True)
        ]
        for name, taken in samples.items()
        if without_layers(name) in samples
    }
