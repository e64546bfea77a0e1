"""The sequences of a call: their places, their global tokens, and a loop over all of them.

This is where values, such as lengths, are checked when an implementation runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.core.layout import Layout
from longbird.core.operator.call import Call, lse_dtype
from longbird.core.operator.tracing import eagerly
from longbird.errors import InvalidValueError


def sequences(call: Call) -> list[tuple[int, int]]:
    """Return (start, length) of every sequence, after checking the values of the call.

    A padded sequence starts at row * n among the tokens of the whole batch, a packed sequence
    where `cu_seqlens` specifies.

    Raises:
        ValueError: A length is negative or exceeds n, `cu_seqlens` does not increase from 0 to the
            number of tokens, or a global token lies in the padding.
    """
    if call.cu_seqlens is not None:
        bounds: list[int] = call.cu_seqlens.tolist()
        tokens = call.q.shape[0]
        if bounds[0] != 0 or bounds[-1] != tokens:
            raise InvalidValueError(
                f"cu_seqlens must start with 0 and end with the number of tokens ({tokens}), "
                f"received {_some(bounds)}"
            )
        pairs = list(itertools.pairwise(bounds))
        for number, (start, end) in enumerate(pairs):
            if end < start:
                raise InvalidValueError(
                    f"cu_seqlens must not decrease, but it goes from {start} to {end} at sequence "
                    f"{number}"
                )
        return [(start, end - start) for start, end in pairs]

    batch, n = call.q.shape[0], call.q.shape[2]
    if call.lengths is None:
        return [(row * n, n) for row in range(batch)]
    lengths: list[int] = call.lengths.tolist()
    for row, length in enumerate(lengths):
        if not 0 <= length <= n:
            raise InvalidValueError(
                f"lengths must be between 0 and n = {n}, received {length} for row {row}"
            )
    if call.global_tokens is not None:
        padding = torch.arange(n) >= torch.tensor(lengths, dtype=torch.int64)[:, None]
        wrong = (padding & call.global_tokens.cpu()).nonzero().tolist()
        if wrong:
            row, token = wrong[0]
            raise InvalidValueError(
                f"global_tokens marks token {token} of row {row}, but this row has only "
                f"{lengths[row]} tokens, and padding cannot be global"
            )
    return [(row * n, length) for row, length in enumerate(lengths)]


Attend = Callable[[Tensor, Tensor, Tensor, Tensor, int, Tensor | None], tuple[Tensor, Tensor]]
"""(q, k, v [b, heads, n, head_dim], sequence numbers [b], the first of them, tokens marked as
global bool [n] or None) -> (out [b, heads, n, head_dim], lse [b, heads, n])."""


def over_sequences(call: Call, attend: Attend) -> tuple[Tensor, Tensor]:
    """Run `attend` over the sequences of a call and put the results in their places.

    Consecutive sequences of the same length and graph run together, others alone; padding never
    reaches `attend`. For padding, the output is 0 and the log-sum-exp -inf.
    """
    ragged = call.packed or call.lengths is not None or call.global_tokens is not None
    if ragged or call.q.numel() == 0:
        return eagerly(_in_groups, call, attend)
    if len(call.graph.each) > 1:
        return _in_groups(call, attend)
    numbers = torch.arange(call.q.shape[0], device=call.q.device)
    return attend(call.q, call.k, call.v, numbers, 0, None)


def _in_groups(call: Call, attend: Attend) -> tuple[Tensor, Tensor]:
    q, k, v = call.q, call.k, call.v
    outs: list[Tensor] = []
    lses: list[Tensor] = []
    found = sequences(call)
    for numbers in _groups(call, found):
        first, count = numbers[0], len(numbers)
        start, length = found[first]
        if call.packed:
            tokens = slice(start, start + count * length)
            qs, ks, vs = (
                x[tokens].reshape(count, length, *x.shape[1:]).transpose(1, 2) for x in (q, k, v)
            )
        else:
            rows = slice(first, first + count)
            qs, ks, vs = (x[rows, :, :length] for x in (q, k, v))
        if length == 0:
            out, lse = _nothing(call, qs, ks, vs)
        else:
            marked = marked_tokens(call, first, start, length)
            out, lse = attend(qs, ks, vs, torch.tensor(numbers, device=q.device), first, marked)
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


def _groups(call: Call, found: list[tuple[int, int]]) -> list[list[int]]:
    """Return groups of consecutive sequences with the same length and graph."""
    groups: list[list[int]] = []
    last = None
    for number, (_, length) in enumerate(found):
        # With its own global tokens, each sequence has its own graph.
        this = (number if call.global_tokens is not None else length, call.graph.key_of(number))
        if this == last:
            groups[-1].append(number)
        else:
            groups.append([number])
        last = this
    return groups


def marked_tokens(call: Call, number: int, start: int, length: int) -> Tensor | None:
    """Return which tokens of a sequence the call marks as global: bool [length]."""
    if call.global_tokens is None:
        return None
    if call.packed:
        return call.global_tokens[start : start + length]
    return call.global_tokens[number, :length]


def all_global_tokens(layout: Layout, marked: Tensor | None) -> npt.NDArray[np.integer]:
    """Return the global tokens of a sequence, ascending: those of its graph and those marked."""
    if marked is None:
        return layout.global_tokens
    return np.union1d(layout.global_tokens, marked.nonzero()[:, 0].cpu().numpy())


def check_edges_count_once(impl: str, layout: Layout, marked: Tensor | None) -> None:
    """Raise a ValueError if global tokens are marked and edges count more than once."""
    if layout.multiset and marked is not None and bool(marked.any()):
        raise InvalidValueError(
            f'impl="{impl}" cannot run this call: the graph counts some edges more than once, and '
            'only impl="reference" can add global_tokens to such a graph'
        )


def _nothing(call: Call, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return an empty output that depends on its inputs, so that they have gradients."""
    out = q + k + v
    if call.relative_bias is not None:
        out = out + call.relative_bias.sum().to(q.dtype)
    return out, out.sum(-1, dtype=lse_dtype(q.dtype))


def _some(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:3]))
    return f"[{shown}]" if len(numbers) <= 3 else f"[{shown}, ..., {numbers[-1]}]"
