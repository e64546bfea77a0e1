"""What every encoder takes, as one value."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from longbird.nn.checks import check_tensor

TENSORS = (
    "input_ids", "attention_mask", "token_type_ids", "position_ids", "inputs_embeds",
    "global_attention_mask", "segment_ids", "encoder_hidden_states", "encoder_attention_mask",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of `LongbirdModel.forward`, which says what each is, in its order."""

    input_ids: Tensor | None = None
    attention_mask: Tensor | None = None
    token_type_ids: Tensor | None = None
    position_ids: Tensor | None = None
    inputs_embeds: Tensor | None = None
    global_attention_mask: Tensor | None = None
    segment_ids: Tensor | None = None
    past_key_values: Any = None
    use_cache: bool | None = None
    output_hidden_states: bool | None = None
    output_attentions: bool | None = None
    encoder_hidden_states: Tensor | None = None
    encoder_attention_mask: Tensor | None = None
    edges: Any = None

    def __post_init__(self) -> None:
        """Check the types, as a list or an array would fail somewhere inside."""
        for name in TENSORS:
            check_tensor(name, getattr(self, name))

    @property
    def given(self) -> Tensor:
        """The ids [rows, n], or the embeddings [rows, n, w]."""
        if (self.input_ids is None) == (self.inputs_embeds is None):
            raise ValueError("give either input_ids [batch, n] or inputs_embeds [batch, n, width]")
        return self.inputs_embeds if self.input_ids is None else self.input_ids  # type: ignore[return-value]

    def shape(self, width: int) -> tuple[int, int]:
        """Rows and columns of the batch, once the ids or embeddings have the shape they need."""
        given = self.given
        if given.ndim != (2 if self.inputs_embeds is None else 3) or (
            self.inputs_embeds is not None and given.shape[2] != width
        ):
            raise ValueError(
                "give either input_ids [batch, n] or inputs_embeds [batch, n, width], of width "
                f"{width}; received {list(given.shape)}"
            )
        return given.shape[0], given.shape[1]

    def flattened(self) -> Inputs:
        """The same with [batch, choices, ...] as [batch * choices, ...]."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        tensors = {name: x.flatten(0, 1) for name, x in values.items() if isinstance(x, Tensor)}
        return replace(self, **tensors)

    def ranks(self) -> Tensor:
        """The number of every token in its document, int64 [rows, n]; -1 for padding."""
        kept = torch.ones(self.given.shape[:2], dtype=torch.bool, device=self.given.device)
        kept = kept if self.attention_mask is None else self.attention_mask != 0
        return (kept.cumsum(1) - 1).masked_fill(~kept, -1)
