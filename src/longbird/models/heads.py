"""What the heads share: an encoder, classification layers, and the tokens that are global.

Each head is a class of its own: `masked_lm.py` and `causal_lm.py` predict tokens,
`classification.py` chooses among labels, `question_answering.py` finds answers, and `embedding.py`
computes vectors of documents. All of them run on packed tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor, nn

from longbird.errors import InvalidValueError
from longbird.models.config import LongbirdConfig
from longbird.models.encoder import LongbirdModel
from longbird.models.inputs import Inputs
from longbird.models.layers.layer import activation
from longbird.models.pretrained import LongbirdPreTrainedModel


class Head(LongbirdPreTrainedModel):
    """A model with an encoder named `longbird`."""

    def __init__(self, config: LongbirdConfig, add_pooling_layer: bool = False) -> None:
        super().__init__(config)
        self.longbird = LongbirdModel(config, add_pooling_layer)
        self.dropout = nn.Dropout(config.head_dropout)

    def with_global_tokens(self, inputs: Inputs, chosen: Callable[[Inputs], Tensor]) -> Inputs:
        """Mark the tokens that Longformer makes global for the task, unless the caller did."""
        longformer = self.config.global_projections and not self.config.num_global_tokens
        if not longformer or inputs.global_attention_mask is not None:
            return inputs
        return replace(inputs, global_attention_mask=chosen(inputs))


def label_count(config: LongbirdConfig) -> int:
    """Return the number of labels of a classification head, and raise if there are none."""
    if not config.num_labels:
        raise InvalidValueError(
            f"a classification head needs at least one label, received num_labels="
            f"{config.num_labels}; give num_labels, or the names of labels as id2label"
        )
    return config.num_labels


class ClassificationHead(nn.Module):
    """Two layers over the vector of a document."""

    def __init__(self, config: LongbirdConfig, labels: int, dropout: nn.Module, act: str) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = activation(act)
        self.dropout = dropout
        self.out = nn.Linear(config.hidden_size, labels)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, w] to [rows, labels]."""
        return self.out(self.dropout(self.activation(self.dense(self.dropout(x)))))


def first_tokens(inputs: Inputs) -> Tensor:
    """Bool [rows, n]: the first token of every document."""
    return inputs.ranks() == 0


def separators(inputs: Inputs, rank: Tensor, sep: int | None) -> Tensor:
    """Bool [rows, n]: the separator tokens, or all tokens if the model has no separator."""
    kept = rank >= 0
    return kept & (inputs.given == sep) if sep is not None else kept


def first_number(rank: Tensor, marked: Tensor) -> Tensor:
    """The number of the first marked token of every document, [rows, 1]; 0 if there is none."""
    if rank.shape[1] == 0:
        return rank.new_zeros(len(rank), 1)
    return rank.gather(1, marked.int().argmax(1, keepdim=True)).clamp(min=0)


def around_separator(inputs: Inputs, sep: int | None, before: bool) -> Tensor:
    """Bool [rows, n]: the tokens before the first separator, or after the second."""
    if inputs.input_ids is None or sep is None:
        raise InvalidValueError(
            "with inputs_embeds, or without sep_token_id, global_attention_mask must say which "
            "tokens are global"
        )
    rank = inputs.ranks()
    marked = separators(inputs, rank, sep)
    counts = marked.sum(1)
    if bool((counts != 3).any()):
        raise InvalidValueError(
            f"the global tokens of a question are found by three separators (id {sep}) in every "
            f"document, received {counts.tolist()}; give global_attention_mask instead"
        )
    first = first_number(rank, marked)
    return (rank >= 0) & (rank < first) if before else rank > first + 1
