"""The checked arguments of one call of the operator, and the sequences in it.

`Call.checked` looks at types, shapes, dtypes and devices only, never at values: it is traced by
`torch.compile` without a graph break. Values (is a length negative?) are looked at by `sequences`,
which the implementations call when they run.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.graph.base import Graph

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


@dataclass(frozen=True)
class Call:
    """What an implementation is given; every field has been checked."""

    q: Tensor
    """[batch, heads, n, head_dim], or packed: [tokens, heads, head_dim]; k and v are alike."""
    k: Tensor
    v: Tensor
    graph: Graph
    lengths: Tensor | None
    """int64 [batch], for padded calls only; None: every row has n tokens."""
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
    """Is the log-sum-exp wanted? If not, an implementation may return anything of its shape."""

    @property
    def packed(self) -> bool:
        """Are q, k and v [tokens, heads, head_dim]?"""
        return self.cu_seqlens is not None

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.q.shape[1]

    @property
    def head_dim(self) -> int:
        """The size of one head."""
        return self.q.shape[-1]

    @classmethod
    def checked(
        cls,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        graph: Graph,
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
        """Checks everything but values; raises TypeError or ValueError."""
        packed = cu_seqlens is not None
        _check_qkv(q, k, v, packed)
        if not isinstance(graph, Graph):
            raise TypeError(
                "graph must be a graph of longbird, such as longbird.bigbird(), "
                f"received {_kind(graph)}"
            )
        if lengths is not None:
            lengths = _integers("lengths", lengths, q)
            if lengths.shape[0] != q.shape[0]:
                raise ValueError(
                    f"lengths must have one number for each row of the batch ({q.shape[0]}), "
                    f"received {lengths.shape[0]}"
                )
        if cu_seqlens is not None:
            cu_seqlens = _integers("cu_seqlens", cu_seqlens, q)
            if cu_seqlens.shape[0] == 0:
                raise ValueError(
                    "cu_seqlens must start with 0 and have one more number for every sequence, "
                    "received no number at all"
                )
        if global_tokens is not None:
            _check_global_tokens(global_tokens, q, packed)
        if relative_bias is not None:
            _check_relative_bias(relative_bias, q)
        return cls(
            q=q,
            k=k,
            v=v,
            graph=graph,
            lengths=lengths,
            cu_seqlens=cu_seqlens,
            global_tokens=global_tokens,
            relative_bias=relative_bias,
            dropout_p=_checked_dropout(dropout_p),
            dropout_seed=_seed(dropout_seed) if dropout_p > 0 else None,
            scale=_scale(scale, q),
            return_lse=return_lse,
        )


def sequences(call: Call) -> list[tuple[int, int]]:
    """(start, length) of every sequence, after checking the values that say so.

    A padded sequence starts at row * n of the tokens of the whole batch, a packed one where
    `cu_seqlens` says.

    Raises:
        ValueError: A length is negative or over n, `cu_seqlens` does not climb from 0 to the
            number of tokens, or a global token lies in the padding.
    """
    if call.cu_seqlens is not None:
        bounds: list[int] = call.cu_seqlens.tolist()
        tokens = call.q.shape[0]
        if bounds[0] != 0 or bounds[-1] != tokens:
            raise ValueError(
                f"cu_seqlens must start with 0 and end with the number of tokens ({tokens}), "
                f"received {_some(bounds)}"
            )
        pairs = list(itertools.pairwise(bounds))
        for number, (start, end) in enumerate(pairs):
            if end < start:
                raise ValueError(
                    f"cu_seqlens must not descend, received {start} and then {end} "
                    f"for sequence {number}"
                )
        return [(start, end - start) for start, end in pairs]

    batch, n = call.q.shape[0], call.q.shape[2]
    if call.lengths is None:
        return [(row * n, n) for row in range(batch)]
    lengths: list[int] = call.lengths.tolist()
    for row, length in enumerate(lengths):
        if not 0 <= length <= n:
            raise ValueError(
                f"lengths must be between 0 and n = {n}, received {length} for row {row}"
            )
    if call.global_tokens is not None:
        padding = torch.arange(n) >= torch.tensor(lengths, dtype=torch.int64)[:, None]
        wrong = (padding & call.global_tokens.cpu()).nonzero().tolist()
        if wrong:
            row, token = wrong[0]
            raise ValueError(
                f"global_tokens marks token {token} of row {row}, which has {lengths[row]} "
                "tokens: padding cannot be global"
            )
    return [(row * n, length) for row, length in enumerate(lengths)]


Attend = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]
"""(q, k, v [b, heads, n, head_dim], sequence numbers [b], global tokens bool [n] or None) ->
(out [b, heads, n, head_dim], lse [b, heads, n])."""


def over_sequences(call: Call, attend: Attend) -> tuple[Tensor, Tensor]:
    """Runs `attend` over the sequences of a call and puts the results in their places.

    Neighbours of one length go together, others alone: padding never reaches `attend`. Where a
    sequence has no tokens, or a row is padding, the output is 0 and the log-sum-exp -inf.
    """
    ragged = call.packed or call.lengths is not None or call.global_tokens is not None
    if ragged or call.q.numel() == 0:
        return eagerly(_in_groups, call, attend)
    numbers = torch.arange(call.q.shape[0], device=call.q.device)
    return attend(call.q, call.k, call.v, numbers, None)


def _in_groups(call: Call, attend: Attend) -> tuple[Tensor, Tensor]:
    q, k, v = call.q, call.k, call.v
    outs: list[Tensor] = []
    lses: list[Tensor] = []
    found = sequences(call)
    # With global tokens of its own, each sequence has a graph of its own.
    alone = call.global_tokens is not None
    for _, group in itertools.groupby(
        range(len(found)), key=lambda number: number if alone else found[number][1]
    ):
        numbers = list(group)
        count, (start, length) = len(numbers), found[numbers[0]]
        if call.packed:
            tokens = slice(start, start + count * length)
            qs, ks, vs = (
                x[tokens].reshape(count, length, *x.shape[1:]).transpose(1, 2) for x in (q, k, v)
            )
        else:
            rows = slice(numbers[0], numbers[0] + count)
            qs, ks, vs = (x[rows, :, :length] for x in (q, k, v))
        if length == 0:
            out, lse = _nothing(call, qs, ks, vs)
        else:
            marked = globals_of(call, numbers[0], start, length)
            out, lse = attend(qs, ks, vs, torch.tensor(numbers, device=q.device), marked)
        if call.packed:
            outs.append(out.transpose(1, 2).flatten(0, 1))
            lses.append(lse.transpose(1, 2).flatten(0, 1))
        else:
            padding = q.shape[2] - length
            outs.append(F.pad(out, (0, 0, 0, padding)))
            lses.append(F.pad(lse, (0, padding), value=-math.inf))
    if not outs:
        return _nothing(call, q, k, v)
    return torch.cat(outs), torch.cat(lses)


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def eagerly(
    function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Calls a function that torch.compile cannot look into, as it uses NumPy or reads values."""
    if "torch._dynamo" not in sys.modules:  # nothing is being compiled, and it imports slowly
        return function(*args, **kwargs)
    disabled: Any = torch.compiler.disable(function)
    return disabled(*args, **kwargs)


def _nothing(call: Call, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output of no tokens: empty, but a function of its inputs, whose gradients are zeros."""
    out = q + k + v
    if call.relative_bias is not None:
        out = out + call.relative_bias.sum().to(q.dtype)
    return out, out.sum(-1, dtype=lse_dtype(q.dtype))


def lse_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of log-sum-exps and of arithmetic inside: float64 for float64, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def globals_of(call: Call, number: int, start: int, length: int) -> Tensor | None:
    """The global tokens of one of the `sequences` of a call, bool [length]."""
    if call.global_tokens is None:
        return None
    if call.packed:
        return call.global_tokens[start : start + length]
    return call.global_tokens[number, :length]


def _check_qkv(q: Tensor, k: Tensor, v: Tensor, packed: bool) -> None:
    form = "[tokens, heads, head_dim]" if packed else "[batch, heads, n, head_dim]"
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, received {_kind(x)}")
        if x.dtype not in DTYPES:
            raise TypeError(
                f"{name} must be float32, bfloat16, float16 or float64, received {x.dtype}"
            )
        if x.layout != torch.strided:
            raise TypeError(f"{name} must be a dense (strided) tensor, received layout {x.layout}")
    if q.ndim != (3 if packed else 4):
        raise ValueError(f"q must be {form}, received shape {tuple(q.shape)}")
    for name, x in (("k", k), ("v", v)):
        if x.shape != q.shape:
            raise ValueError(
                f"q, k and v must have one shape {form}, received q {tuple(q.shape)} and "
                f"{name} {tuple(x.shape)}; attention is within one sequence, and grouped heads "
                f"need {name}.expand() first"
            )
        if x.dtype != q.dtype:
            raise TypeError(
                f"q, k and v must have one dtype, received q {q.dtype} and {name} {x.dtype}"
            )
        if x.device != q.device:
            raise ValueError(
                f"q, k and v must be on one device, received q on {q.device} and {name} on "
                f"{x.device}"
            )
    if q.shape[1] == 0 or q.shape[-1] == 0:
        raise ValueError(
            f"q, k and v must have at least one head and a head_dim of at least 1, "
            f"received {form} = {tuple(q.shape)}"
        )


def _integers(name: str, numbers: Tensor | Sequence[int], q: Tensor) -> Tensor:
    if not isinstance(numbers, Tensor):
        try:
            numbers = torch.tensor(numbers, dtype=None if len(numbers) else torch.int64)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"{name} must be an integer tensor, received {numbers!r}") from error
    if name == "lengths" and (numbers.dtype == torch.bool or numbers.ndim == 2):
        error = TypeError if numbers.dtype == torch.bool else ValueError
        raise error(
            "lengths must have one dimension, the number of tokens of each row, received "
            f"{numbers.dtype} of shape {tuple(numbers.shape)}; "
            "for a right-padded attention mask give mask.sum(-1)"
        )
    if numbers.dtype not in INTEGERS:
        raise TypeError(f"{name} must be an integer tensor, received {numbers.dtype}")
    if numbers.ndim != 1:
        raise ValueError(f"{name} must have one dimension, received shape {tuple(numbers.shape)}")
    _check_device(name, numbers, q)
    return numbers.to(torch.int64)


def _check_global_tokens(global_tokens: Tensor, q: Tensor, packed: bool) -> None:
    if not isinstance(global_tokens, Tensor):
        raise TypeError(f"global_tokens must be a bool tensor, received {_kind(global_tokens)}")
    if global_tokens.dtype != torch.bool:
        raise TypeError(
            f"global_tokens must be a bool tensor, received {global_tokens.dtype}; "
            "use global_tokens.bool() if 1 marks a global token"
        )
    form = "[tokens]" if packed else "[batch, n]"
    expected = q.shape[:1] if packed else (q.shape[0], q.shape[2])
    if global_tokens.shape != expected:
        raise ValueError(
            f"global_tokens must be {form} = {tuple(expected)}, "
            f"received shape {tuple(global_tokens.shape)}"
        )
    _check_device("global_tokens", global_tokens, q)


def _check_relative_bias(relative_bias: Tensor, q: Tensor) -> None:
    if not isinstance(relative_bias, Tensor):
        raise TypeError(f"relative_bias must be a torch.Tensor, received {_kind(relative_bias)}")
    if not relative_bias.dtype.is_floating_point:
        raise TypeError(
            f"relative_bias must have a floating dtype, received {relative_bias.dtype}"
        )
    heads = q.shape[1]
    shape = tuple(relative_bias.shape)
    if len(shape) != 2 or shape[0] != heads or shape[1] % 2 == 0:
        raise ValueError(
            f"relative_bias must be [heads, 2m + 1] with heads = {heads}: one number for each "
            f"distance from -m to m, received shape {shape}"
        )
    if relative_bias.device != q.device:
        raise ValueError(
            f"relative_bias must be on the device of q ({q.device}), "
            f"received {relative_bias.device}"
        )


def _check_device(name: str, x: Tensor, q: Tensor) -> None:
    if x.device != q.device and x.device.type != "cpu":
        raise ValueError(
            f"{name} must be on the device of q ({q.device}) or on the CPU, received {x.device}"
        )


def _checked_dropout(dropout_p: float) -> float:
    if isinstance(dropout_p, Tensor) or not isinstance(dropout_p, (int, float)):
        raise TypeError(f"dropout_p must be a number, received {_kind(dropout_p)}")
    if not 0.0 <= dropout_p < 1.0:
        raise ValueError(f"dropout_p must be at least 0 and less than 1, received {dropout_p}")
    return float(dropout_p)


def _seed(seed: int | Tensor | None) -> Tensor:
    if seed is None:
        # As torch's own dropout does, and the only place where Longbird draws from torch's state.
        return torch.randint(0, 2**63 - 1, (), dtype=torch.int64)
    if isinstance(seed, Tensor):
        if seed.dtype not in INTEGERS or seed.numel() != 1:
            raise TypeError(
                f"dropout_seed must be an int or an integer tensor of one element, "
                f"received {seed.dtype} of shape {tuple(seed.shape)}"
            )
        return seed.to(torch.int64).reshape(())
    if not isinstance(seed, int):
        raise TypeError(f"dropout_seed must be an int, received {_kind(seed)}")
    if not -(2**63) <= seed < 2**63:
        raise ValueError(f"dropout_seed must fit into 64 bits, received {seed}")
    return torch.tensor(seed, dtype=torch.int64)


def _scale(scale: float | None, q: Tensor) -> float:
    if scale is None:
        return 1.0 / math.sqrt(q.shape[-1])
    if not isinstance(scale, (int, float)):
        raise TypeError(
            f"scale must be a number, received {_kind(scale)}; multiply q by a learned one"
        )
    if not math.isfinite(scale):
        raise ValueError(f"scale must be finite, received {scale}")
    return float(scale)


def _kind(value: object) -> str:
    return type(value).__name__


def _some(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:3]))
    return f"[{shown}]" if len(numbers) <= 3 else f"[{shown}, ..., {numbers[-1]}]"
