"""The checked arguments of one call of the operator.

`Call.checked` checks types, shapes, dtypes and devices, but never values, so that `torch.compile`
traces it without a graph break. Values (such as negative lengths) are checked in `sequences.py`
when an implementation runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from longbird.core.operator.graphs import GraphArgument, Graphs, as_graphs
from longbird.errors import InvalidTypeError, InvalidValueError

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


@dataclass(eq=False)  # a frozen dataclass takes 2 microseconds longer, as much as all the checks
class Call:
    """The arguments of an implementation; every field has been checked, and none ever changes."""

    q: Tensor
    """[batch, heads, n, head_dim], or packed: [tokens, heads, head_dim], as for k and v."""
    k: Tensor
    v: Tensor
    graph: Graphs
    lengths: Tensor | None
    """int64 [batch], for padded calls only; None if every row has n tokens."""
    cu_seqlens: Tensor | None
    """int64 [sequences + 1]; given if and only if the call is packed."""
    global_tokens: Tensor | None
    """bool [batch, n] or [tokens]."""
    relative_bias: Tensor | None
    """[heads, 2m + 1], of any floating dtype."""
    dropout_p: float
    dropout_seed: Tensor | None
    """int64, 0-d; given if and only if dropout_p > 0."""
    scale: float
    return_lse: bool = False
    """Whether to return the log-sum-exp; if not, anything of its shape may be returned."""

    @property
    def packed(self) -> bool:
        """Whether q, k and v are [tokens, heads, head_dim]."""
        return self.cu_seqlens is not None

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.q.shape[1]

    @property
    def head_dim(self) -> int:
        """Size of a head."""
        return self.q.shape[-1]

    @classmethod
    def checked(
        cls,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        graph: GraphArgument,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        cu_seqlens: Tensor | Sequence[int] | None = None,
        global_tokens: Tensor | None = None,
        relative_bias: Tensor | None = None,
        dropout_p: float = 0.0,
        dropout_seed: int | Tensor | None = None,
        scale: float | None = None,
        return_lse: bool = False,
    ) -> Call:
        """Return the call after checking everything but values; raise TypeError or ValueError."""
        packed = cu_seqlens is not None
        _check_qkv(q, k, v, packed)
        if lengths is not None:
            lengths = _integers("lengths", lengths, q)
            if lengths.shape[0] != q.shape[0]:
                raise InvalidValueError(
                    f"lengths must have one number for each of the {q.shape[0]} rows of the "
                    f"batch, received {lengths.shape[0]}"
                )
        if cu_seqlens is not None:
            cu_seqlens = _integers("cu_seqlens", cu_seqlens, q)
            if cu_seqlens.shape[0] == 0:
                raise InvalidValueError(
                    "cu_seqlens must start with 0, followed by the end of every sequence; "
                    "received an empty one"
                )
        if global_tokens is not None:
            _check_global_tokens(global_tokens, q, packed)
        if relative_bias is not None:
            _check_relative_bias(relative_bias, q)
        count = q.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
        length = q.shape[2] if cu_seqlens is None and lengths is None else None
        return cls(
            q,
            k,
            v,
            as_graphs(graph, count, length),
            lengths,
            cu_seqlens,
            global_tokens,
            relative_bias,
            _checked_dropout(dropout_p),
            _seed(dropout_seed) if dropout_p > 0 else None,
            _scale(scale, q),
            return_lse,
        )


def lse_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of log-sum-exps and of accumulation: float64 for float64, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _check_qkv(q: Tensor, k: Tensor, v: Tensor, packed: bool) -> None:
    form = "[tokens, heads, head_dim]" if packed else "[batch, heads, n, head_dim]"
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor):
            raise InvalidTypeError(f"{name} must be a torch.Tensor, received {_kind(x)}")
        if x.dtype not in DTYPES:
            raise InvalidTypeError(
                f"{name} must be float32, bfloat16, float16 or float64, received {x.dtype}"
            )
        _check_layout(name, x)
    if q.ndim != (3 if packed else 4):
        other = "attention" if packed else "attention_packed"
        hint = f"; {other} takes that" if q.ndim == (4 if packed else 3) else ""
        raise InvalidValueError(f"q must be {form}, received shape {tuple(q.shape)}{hint}")
    for name, x in (("k", k), ("v", v)):
        if x.shape != q.shape:
            raise InvalidValueError(
                f"q, k and v must have the same shape {form}, received q {tuple(q.shape)} and "
                f"{name} {tuple(x.shape)}; a sequence attends to itself, and where several heads "
                f"share their keys, call {name}.expand(...) first"
            )
        if x.dtype != q.dtype:
            raise InvalidTypeError(
                f"q, k and v must have the same dtype, received q {q.dtype} and {name} {x.dtype}; "
                f"convert one of them, for example {name}.to(q.dtype)"
            )
        if x.device != q.device:
            raise InvalidValueError(
                f"q, k and v must be on the same device, received q on {q.device} and {name} on "
                f"{x.device}; move one of them, for example {name}.to(q.device)"
            )
    if q.shape[1] == 0 or q.shape[-1] == 0:
        raise InvalidValueError(
            f"q, k and v need at least one head and a head_dim of at least 1, received {form} = "
            f"{tuple(q.shape)}"
        )


def _check_layout(name: str, x: Tensor) -> None:
    if x.is_nested:
        raise InvalidTypeError(
            f"{name} must be a dense tensor, received a nested one; attention_packed takes "
            "sequences of different lengths: all their tokens in one tensor, and cu_seqlens"
        )
    if x.layout != torch.strided:
        raise InvalidTypeError(
            f"{name} must be a dense (strided) tensor, received layout {x.layout}"
        )


def _integers(name: str, numbers: Tensor | Sequence[int], q: Tensor) -> Tensor:
    if not isinstance(numbers, Tensor):
        try:
            numbers = torch.tensor(numbers, dtype=None if len(numbers) else torch.int64)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InvalidTypeError(
                f"{name} must be an integer tensor or a list of integers, received {numbers!r:.80}"
            ) from error
    _check_layout(name, numbers)
    if name == "lengths" and (numbers.dtype == torch.bool or numbers.ndim == 2):
        error = TypeError if numbers.dtype == torch.bool else ValueError
        raise error(
            "lengths must hold one integer for each row, its number of tokens, received "
            f"{numbers.dtype} of shape {tuple(numbers.shape)}; if this is an attention mask with "
            "its padding on the right, pass mask.sum(-1)"
        )
    if numbers.dtype not in INTEGERS:
        raise InvalidTypeError(f"{name} must hold integers, received {numbers.dtype}")
    if numbers.ndim != 1:
        raise InvalidValueError(
            f"{name} must have one dimension, received shape {tuple(numbers.shape)}"
        )
    _check_device(name, numbers, q)
    return numbers.to(torch.int64)


def _check_global_tokens(global_tokens: Tensor, q: Tensor, packed: bool) -> None:
    if not isinstance(global_tokens, Tensor):
        raise InvalidTypeError(
            f"global_tokens must be a bool tensor, received {_kind(global_tokens)}"
        )
    if global_tokens.dtype != torch.bool:
        raise InvalidTypeError(
            f"global_tokens must be a bool tensor, received {global_tokens.dtype}; if 1 marks a "
            "global token, pass global_tokens.bool()"
        )
    _check_layout("global_tokens", global_tokens)
    form = "[tokens]" if packed else "[batch, n]"
    expected = q.shape[:1] if packed else (q.shape[0], q.shape[2])
    if global_tokens.shape != expected:
        raise InvalidValueError(
            f"global_tokens must be {form} = {tuple(expected)}, "
            f"received shape {tuple(global_tokens.shape)}"
        )
    _check_device("global_tokens", global_tokens, q)


def _check_relative_bias(relative_bias: Tensor, q: Tensor) -> None:
    if not isinstance(relative_bias, Tensor):
        raise InvalidTypeError(
            f"relative_bias must be a torch.Tensor, received {_kind(relative_bias)}"
        )
    if not relative_bias.dtype.is_floating_point:
        raise InvalidTypeError(
            f"relative_bias must have a floating dtype, received {relative_bias.dtype}"
        )
    _check_layout("relative_bias", relative_bias)
    heads = q.shape[1]
    shape = tuple(relative_bias.shape)
    if len(shape) != 2 or shape[0] != heads or shape[1] % 2 == 0:
        raise InvalidValueError(
            f"relative_bias must be [heads, 2m + 1] with heads = {heads}, a number for each "
            f"distance from -m to m; received shape {shape}"
        )
    if relative_bias.device != q.device:
        raise InvalidValueError(
            f"relative_bias must be on the device of q ({q.device}), received "
            f"{relative_bias.device}; move it with relative_bias.to(q.device)"
        )


def _check_device(name: str, x: Tensor, q: Tensor) -> None:
    if x.device != q.device and x.device.type != "cpu":
        raise InvalidValueError(
            f"{name} must be on the device of q ({q.device}) or on the CPU, received {x.device}"
        )


def _checked_dropout(dropout_p: float) -> float:
    if isinstance(dropout_p, Tensor) or not isinstance(dropout_p, (int, float)):
        raise InvalidTypeError(f"dropout_p must be a number, received {_kind(dropout_p)}")
    if not 0.0 <= dropout_p < 1.0:
        raise InvalidValueError(
            f"dropout_p must be at least 0 and less than 1, received {dropout_p}"
        )
    return float(dropout_p)


def _seed(seed: int | Tensor | None) -> Tensor:
    if seed is None:
        # As torch's dropout does. This is the only place that draws from torch's global state.
        return torch.randint(0, 2**63 - 1, (), dtype=torch.int64)
    if isinstance(seed, Tensor):
        if seed.dtype not in INTEGERS or seed.numel() != 1:
            raise InvalidTypeError(
                "dropout_seed must be an int or a tensor with one integer, received "
                f"{seed.dtype} of shape {tuple(seed.shape)}"
            )
        return seed.to(torch.int64).reshape(())
    if not isinstance(seed, int):
        raise InvalidTypeError(
            f"dropout_seed must be an int or a tensor with one integer, received {_kind(seed)}"
        )
    if not -(2**63) <= seed < 2**63:
        raise InvalidValueError(
            f"dropout_seed must fit into a signed 64-bit integer, received {seed}"
        )
    return torch.tensor(seed, dtype=torch.int64)


def _scale(scale: float | None, q: Tensor) -> float:
    if scale is None:
        return 1.0 / math.sqrt(q.shape[-1])
    if not isinstance(scale, (int, float)):
        raise InvalidTypeError(
            f"scale must be a number, received {_kind(scale)}; to learn a scale, multiply q by it"
        )
    if not math.isfinite(scale):
        raise InvalidValueError(f"scale must be finite, received {scale}")
    return float(scale)


def _kind(value: object) -> str:
    return type(value).__name__
