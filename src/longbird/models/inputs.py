"""The inputs of the models, declared once as dataclasses.

A model writes its forward pass as `forward(self, inputs, labels=None)` and decorates it with
`takes(Inputs)` (or `takes(Seq2SeqInputs)`). Callers pass the fields of the dataclass as arguments:
`model(input_ids, attention_mask=mask, labels=labels)`. They also stand in the signature of
`forward`, where the `Trainer`, `generate` and sentence-transformers look for the names of inputs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor
from transformers import EncoderDecoderCache
from transformers.utils.generic import can_return_tuple

from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.document_edges import choice_edges
from longbird.models.layers.checks import check_device, check_tensor

Output = TypeVar("Output")

Edges = Tensor | Sequence[Any] | None
"""Pairs (query, key) of columns: a tensor [batch, e, 2], or an array or None for each document."""

TENSORS = (
    "input_ids", "attention_mask", "token_type_ids", "position_ids", "inputs_embeds",
    "global_attention_mask", "segment_ids", "encoder_hidden_states", "encoder_attention_mask",
)  # fmt: skip
"""The fields of `Inputs` that are tensors with a row for each document."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of an encoder or a causal decoder, with or without a head."""

    input_ids: Tensor | None = None
    """[batch, n]: the tokens."""
    attention_mask: Tensor | None = None
    """[batch, n]: 0 for padding, which is not computed."""
    token_type_ids: Tensor | None = None
    """[batch, n]: all 0 by default."""
    position_ids: Tensor | None = None
    """[batch, n]: rows of the position table; by default each document counts its own tokens."""
    inputs_embeds: Tensor | None = None
    """[batch, n, width]: embeddings instead of `input_ids`."""
    global_attention_mask: Tensor | None = None
    """[batch, n]: 1 for tokens that see all tokens and are seen by all tokens."""
    segment_ids: Tensor | None = None
    """[batch, n]: the segment of each token, -1 for none (BigBird-ETC)."""
    past_key_values: Any = None
    """The cache of the preceding tokens (causal models)."""
    use_cache: bool | None = None
    """Whether to return a cache that includes these tokens (causal models)."""
    output_hidden_states: bool | None = None
    """Whether to return the hidden states of every layer."""
    output_attentions: bool | None = None
    """Whether to return the attention weights of every layer."""
    encoder_hidden_states: Tensor | None = field(default=None, kw_only=True)
    """[batch, m, width]: the states of an encoder (causal models with `add_cross_attention`)."""
    encoder_attention_mask: Tensor | None = field(default=None, kw_only=True)
    """[batch, m]: 0 for padding in `encoder_hidden_states`."""
    edges: Edges = field(default=None, kw_only=True)
    """[batch, e, 2]: pairs (query, key) of columns that are added to the graph of every layer for
    their document, (-1, -1) for none; or a list with an array [e, 2] for each document."""

    def __post_init__(self) -> None:
        """Check that tensors are tensors, and that all of them are on one device."""
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
        if self.input_ids is not None and self.inputs_embeds is None:
            return self.input_ids
        if self.inputs_embeds is not None and self.input_ids is None:
            return self.inputs_embeds
        raise InvalidValueError(
            "give either input_ids [batch, n] or inputs_embeds [batch, n, width]"
        )

    def shape(self, width: int) -> tuple[int, int]:
        """Return the rows and columns of the batch, after checking the axes of the input."""
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
        """Turn inputs of shape [batch, choices, ...] into inputs [batch * choices, ...]."""
        given = self.given
        if given.ndim != (3 if self.inputs_embeds is None else 4):
            raise InvalidValueError(
                "multiple choice takes input_ids [batch, choices, n] or inputs_embeds [batch, "
                f"choices, n, width], received {list(given.shape)}"
            )
        tensors = {name: x for name, x in self._by_row().items() if isinstance(x, Tensor)}
        for name, x in tensors.items():
            shared = name == "position_ids" and x.shape[:2] == (1, 1)
            axes = 4 if name in ("inputs_embeds", "edges") else 3
            if x.ndim != axes or (x.shape[:2] != given.shape[:2] and not shared):
                raise InvalidValueError(
                    f"{name} must have {axes} axes and start with the shape [batch, choices] = "
                    f"{list(given.shape[:2])}, received {list(x.shape)}"
                )
        flat: dict[str, Any] = {name: x.flatten(0, 1) for name, x in tensors.items()}
        if self.edges is not None and not isinstance(self.edges, Tensor):
            flat["edges"] = choice_edges(self.edges, *given.shape[:2])
        return replace(self, **flat)

    def parts(self, tokens: int) -> list[Inputs]:
        """Split the batch into runs of rows with at most this many tokens, padding not counted.

        A row that has more tokens than that is a part of its own.
        """
        if tokens < 1:
            raise InvalidValueError(f"tokens_at_once must be at least 1, received {tokens}")
        starts, taken = [0], 0
        for row, size in enumerate((self.ranks() >= 0).sum(1).tolist()):
            if taken and taken + size > tokens:
                starts.append(row)
                taken = 0
            taken += size
        ends = [*starts[1:], self.given.shape[0]]
        return [self._rows(start, end) for start, end in zip(starts, ends, strict=True)]

    def ranks(self) -> Tensor:
        """Number the tokens of every document, int64 [rows, n]; padding has -1."""
        kept = torch.ones(self.given.shape[:2], dtype=torch.bool, device=self.given.device)
        kept = kept if self.attention_mask is None else self.attention_mask != 0
        return (kept.cumsum(1) - 1).masked_fill(~kept, -1)

    def _by_row(self) -> dict[str, Any]:
        """The inputs that have a row for each document."""
        values = {name: getattr(self, name) for name in (*TENSORS, "edges")}
        return {name: x for name, x in values.items() if x is not None}

    def _rows(self, start: int, end: int) -> Inputs:
        rows = {
            name: x if name == "position_ids" and len(x) == 1 else x[start:end]
            for name, x in self._by_row().items()
        }
        return replace(self, **rows)


@dataclass(frozen=True, eq=False)
class Seq2SeqInputs:
    """The inputs of an encoder-decoder, with or without a head."""

    input_ids: Tensor | None = None
    """[batch, n]: the tokens of the input."""
    attention_mask: Tensor | None = None
    """[batch, n]: 0 for padding of the input."""
    decoder_input_ids: Tensor | None = None
    """[batch, s]: the tokens of the output; by default the input shifted to the right (BART)."""
    decoder_attention_mask: Tensor | None = None
    """[batch, past + s]: 0 for padding of the output."""
    encoder_outputs: Any = None
    """The output of the encoder, or a tuple of it, if the input has been encoded before."""
    past_key_values: EncoderDecoderCache | None = None
    """The cache of the preceding tokens of the output."""
    inputs_embeds: Tensor | None = None
    """[batch, n, width]: embeddings instead of `input_ids`."""
    decoder_inputs_embeds: Tensor | None = None
    """[batch, s, width]: embeddings instead of `decoder_input_ids`."""
    global_attention_mask: Tensor | None = None
    """[batch, n]: 1 for tokens of the input that see and are seen by all of its tokens."""
    use_cache: bool | None = None
    """Whether to return a cache that includes these tokens of the output."""
    output_hidden_states: bool | None = None
    """Whether to return the hidden states of every layer."""
    output_attentions: bool | None = None
    """Whether to return the attention weights of every layer."""
    edges: Edges = field(default=None, kw_only=True)
    """[batch, e, 2]: pairs (query, key) of columns of the input, as in `Inputs`."""


def takes(
    inputs: type[Inputs] | type[Seq2SeqInputs],
) -> Callable[[Callable[..., Output]], Callable[..., Output]]:
    """Let callers pass the fields of a dataclass to a method `forward(self, inputs, ...)`.

    The result also accepts `return_dict=False`, as all models of transformers do.

    Args:
        inputs: The dataclass. Its fields come first in the signature, in their order; parameters
            of the method itself follow them.
    """
    shared = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY
            if each.kw_only
            else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=each.type,
        )
        for each in fields(inputs)
    ]
    names = tuple(each.name for each in shared)

    def decorate(forward: Callable[..., Output]) -> Callable[..., Output]:
        written = inspect.signature(forward)
        this, _, *own = written.parameters.values()
        shown = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
        parameters = sorted([this, *shared, *shown], key=lambda each: each.kind)
        positional = [
            each.name
            for each in parameters[1:]
            if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        ]

        @wraps(forward)
        def called(self: Any, *args: Any, **given: Any) -> Output:
            name = f"{type(self).__name__}.forward()"
            if len(args) > len(positional):
                raise InvalidTypeError(
                    f"{name} takes at most {len(positional)} positional arguments, received "
                    f"{len(args)}"
                )
            for parameter, value in zip(positional, args, strict=False):
                if parameter in given:
                    raise InvalidTypeError(
                        f"{name} got multiple values for argument {parameter!r}"
                    )
                given[parameter] = value
            values: dict[str, Any] = {each: given.pop(each) for each in names if each in given}
            return forward(self, inputs(**values), **given)

        # Parameters that take any name are not shown: the `Trainer` would wait for a column of it.
        setattr(called, "__signature__", written.replace(parameters=parameters))  # noqa: B010
        result: Any = can_return_tuple(called)
        return result

    return decorate


def last_columns(logits_to_keep: int) -> slice:
    """Return the slice of the last columns, where 0 stands for all columns."""
    if not isinstance(logits_to_keep, int):
        raise InvalidTypeError(
            f"logits_to_keep must be an int, received {type(logits_to_keep).__name__}"
        )
    if logits_to_keep < 0:
        raise InvalidValueError(
            f"logits_to_keep must be 0 (all) or more, received {logits_to_keep}"
        )
    return slice(-logits_to_keep, None)
