"""What every encoder takes, as one value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.layers.checks import check_device, check_tensor
from longbird.models.structure import choice_edges

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
        """Check types and devices, which would fail somewhere inside."""
        first, device = "", None
        for name in TENSORS:
            x = getattr(self, name)
            check_tensor(name, x)
            if x is None:
                continue
            if device is None:
                first, device = name, x.device
            check_device(name, x, first, device)

    @property
    def given(self) -> Tensor:
        """The ids [rows, n], or the embeddings [rows, n, w]."""
        if (self.input_ids is None) == (self.inputs_embeds is None):
            raise InvalidValueError(
                "give either input_ids [batch, n] or inputs_embeds [batch, n, width]"
            )
        return self.inputs_embeds if self.input_ids is None else self.input_ids  # type: ignore[return-value]

    def shape(self, width: int) -> tuple[int, int]:
        """Rows and columns of the batch, once the ids or embeddings have the shape they need."""
        given = self.given
        if given.ndim != (2 if self.inputs_embeds is None else 3) or (
            self.inputs_embeds is not None and given.shape[2] != width
        ):
            raise InvalidValueError(
                "give either input_ids [batch, n] or inputs_embeds [batch, n, width], of width "
                f"{width}; received {list(given.shape)}"
            )
        return given.shape[0], given.shape[1]

    def flattened(self) -> Inputs:
        """The same with [batch, choices, ...] as [batch * choices, ...]."""
        given = self.given
        if given.ndim != (3 if self.inputs_embeds is None else 4):
            raise InvalidValueError(
                "multiple choice takes input_ids [batch, choices, n] or inputs_embeds [batch, "
                f"choices, n, width], received {list(given.shape)}"
            )
        values = {name: getattr(self, name) for name in (*TENSORS, "edges")}
        tensors = {name: x for name, x in values.items() if isinstance(x, Tensor)}
        for name, x in tensors.items():
            alike = name == "position_ids" and x.shape[:2] == (1, 1)  # the same for all
            axes = 4 if name in ("inputs_embeds", "edges") else 3
            if x.ndim != axes or (x.shape[:2] != given.shape[:2] and not alike):
                raise InvalidValueError(
                    f"{name} must have {axes} axes and start with the shape [batch, choices] = "
                    f"{list(given.shape[:2])}, received {list(x.shape)}"
                )
        flat: dict[str, Any] = {name: x.flatten(0, 1) for name, x in tensors.items()}
        if self.edges is not None and not isinstance(self.edges, Tensor):
            flat["edges"] = choice_edges(self.edges, *given.shape[:2])
        return replace(self, **flat)

    def parts(self, tokens: int) -> list[Inputs]:
        """Consecutive rows with at most that many tokens, or one row that has more.

        Padding is not counted.
        """
        if tokens < 1:
            raise InvalidValueError(f"tokens_at_once must be at least 1, received {tokens}")
        rows = self.given.shape[0]
        sizes = (self.ranks() >= 0).sum(1).tolist()
        begins, taken = [0], 0
        for row, size in enumerate(sizes):
            if taken and taken + size > tokens:
                begins.append(row)
                taken = 0
            taken += size
        names = [name for name in (*TENSORS, "edges") if getattr(self, name) is not None]

        def part(begin: int, end: int) -> Inputs:
            values = {name: getattr(self, name) for name in names}
            return replace(
                self,
                **{
                    name: x if name == "position_ids" and len(x) == 1 else x[begin:end]
                    for name, x in values.items()
                },
            )

        return [part(*ends) for ends in zip(begins, [*begins[1:], rows], strict=True)]

    def ranks(self) -> Tensor:
        """The number of every token in its document, int64 [rows, n]; -1 for padding."""
        kept = torch.ones(self.given.shape[:2], dtype=torch.bool, device=self.given.device)
        kept = kept if self.attention_mask is None else self.attention_mask != 0
        return (kept.cumsum(1) - 1).masked_fill(~kept, -1)


def last_columns(logits_to_keep: int) -> slice:
    """The last columns, this many of them; 0 for all."""
    if not isinstance(logits_to_keep, int):
        raise InvalidTypeError(
            f"logits_to_keep must be an int, received {type(logits_to_keep).__name__}"
        )
    if logits_to_keep < 0:
        raise InvalidValueError(
            f"logits_to_keep must be 0 (all) or more, received {logits_to_keep}"
        )
    return slice(-logits_to_keep, None)
