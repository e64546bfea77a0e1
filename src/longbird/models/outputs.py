"""What the models return, where transformers has no class for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from transformers.utils.generic import ModelOutput


@dataclass
class LongbirdModelOutput(ModelOutput):
    """Output of `LongbirdModel`; padded places are zeros."""

    last_hidden_state: Tensor | None = None
    """[batch, n, width]."""
    pooler_output: Tensor | None = None
    """[batch, width]: the first token of every document through a layer of its own."""
    global_hidden_state: Tensor | None = None
    """[batch, g, width]: the added global tokens of BigBird-ETC."""
    past_key_values: Any = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Any, ...] | None = None
    """One `SparseRows` for each layer; `.dense(n)` gives the matrix."""


@dataclass
class LongbirdForPreTrainingOutput(ModelOutput):
    """Output of `LongbirdForPreTraining`."""

    loss: Tensor | None = None
    prediction_logits: Tensor | None = None
    seq_relationship_logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Any, ...] | None = None


@dataclass
class LongbirdForQuestionAnsweringOutput(ModelOutput):
    """Output of `LongbirdForQuestionAnswering`."""

    loss: Tensor | None = None
    start_logits: Tensor | None = None
    """[batch, n]; -1e6 where an answer cannot start: padding, and the question if it is hidden."""
    end_logits: Tensor | None = None
    answer_type_logits: Tensor | None = None
    """[batch, num_answer_types]."""
    sentence_logits: Tensor | None = None
    """[batch, sentences]: above 0 for a supporting sentence; -1e6 where there is no sentence."""
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Any, ...] | None = None


@dataclass
class LongbirdForEmbeddingOutput(ModelOutput):
    """Output of `LongbirdForEmbedding`."""

    embeddings: Tensor | None = None
    """[batch, width], of length 1."""
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Any, ...] | None = None
