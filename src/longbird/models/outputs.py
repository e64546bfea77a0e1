"""The outputs of the models: those of transformers, with fields of Longbird's own.

`attentions` has one `SparseRows` for each layer: `.row(batch, head, token)` returns the keys and
weights of a token, and `.dense(n)` the matrix. `global_attentions` has the weights of Longformer's
global tokens as tensors [batch, heads, n, g], as in transformers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor
from transformers.modeling_outputs import (
    MaskedLMOutput,
    MultipleChoiceModelOutput,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
    Seq2SeqQuestionAnsweringModelOutput,
    Seq2SeqSequenceClassifierOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.utils.generic import ModelOutput

Floats: TypeAlias = Any
"""A tensor for a field that transformers annotates as `FloatTensor`, which torch never returns."""


@dataclass
class LongbirdModelOutput(ModelOutput):
    """Output of `LongbirdModel`; padding is zeros."""

    last_hidden_state: Tensor | None = None
    """[batch, n, width]."""
    pooler_output: Tensor | None = None
    """[batch, width]: the first token of every document after the pooling layer."""
    global_hidden_state: Tensor | None = None
    """[batch, g, width]: the added global tokens of BigBird-ETC."""
    past_key_values: Any = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Any, ...] | None = None
    """One `SparseRows` for each layer; `.dense(n)` returns the matrix."""
    global_attentions: tuple[Tensor, ...] | None = None
    """[batch, heads, n, g] for each layer: the weights of Longformer's global tokens."""
    cross_attentions: tuple[Tensor, ...] | None = None
    """[batch, heads, n, m] for each layer: the weights of a decoder over states of an encoder."""


@dataclass
class LongbirdMaskedLMOutput(MaskedLMOutput):
    """Output of `LongbirdForMaskedLM`."""

    global_attentions: tuple[Tensor, ...] | None = None


@dataclass
class LongbirdForPreTrainingOutput(ModelOutput):
    """Output of `LongbirdForPreTraining`."""

    loss: Tensor | None = None
    prediction_logits: Tensor | None = None
    seq_relationship_logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Any, ...] | None = None
    global_attentions: tuple[Tensor, ...] | None = None


@dataclass
class LongbirdSequenceClassifierOutput(SequenceClassifierOutput):
    """Output of `LongbirdForSequenceClassification`."""

    global_attentions: tuple[Tensor, ...] | None = None


@dataclass
class LongbirdTokenClassifierOutput(TokenClassifierOutput):
    """Output of `LongbirdForTokenClassification`."""

    global_attentions: tuple[Tensor, ...] | None = None


@dataclass
class LongbirdMultipleChoiceOutput(MultipleChoiceModelOutput):
    """Output of `LongbirdForMultipleChoice`."""

    global_attentions: tuple[Tensor, ...] | None = None


@dataclass
class LongbirdForQuestionAnsweringOutput(ModelOutput):
    """Output of `LongbirdForQuestionAnswering`."""

    loss: Tensor | None = None
    start_logits: Tensor | None = None
    """[batch, n]; -1e6 for padding, and for the question if it is hidden."""
    end_logits: Tensor | None = None
    answer_type_logits: Tensor | None = None
    """[batch, num_answer_types]."""
    sentence_logits: Tensor | None = None
    """[batch, sentences]: above 0 for a supporting sentence; -1e6 for padding."""
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Any, ...] | None = None
    global_attentions: tuple[Tensor, ...] | None = None


@dataclass
class LongbirdForEmbeddingOutput(ModelOutput):
    """Output of `LongbirdForEmbedding`."""

    embeddings: Tensor | None = None
    """[batch, width], of length 1."""
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Any, ...] | None = None
    global_attentions: tuple[Tensor, ...] | None = None


@dataclass
class LongbirdSeq2SeqModelOutput(Seq2SeqModelOutput):
    """Output of `LongbirdSeq2SeqModel`."""

    encoder_global_attentions: tuple[Tensor, ...] | None = None


@dataclass
class LongbirdSeq2SeqLMOutput(Seq2SeqLMOutput):
    """Output of `LongbirdForConditionalGeneration`."""

    encoder_global_attentions: tuple[Tensor, ...] | None = None


@dataclass
class LongbirdSeq2SeqSequenceClassifierOutput(Seq2SeqSequenceClassifierOutput):
    """Output of `LongbirdSeq2SeqForSequenceClassification`."""

    encoder_global_attentions: tuple[Tensor, ...] | None = None


@dataclass
class LongbirdSeq2SeqQuestionAnsweringOutput(Seq2SeqQuestionAnsweringModelOutput):
    """Output of `LongbirdSeq2SeqForQuestionAnswering`."""

    encoder_global_attentions: tuple[Tensor, ...] | None = None
