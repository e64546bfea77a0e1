"""Attention through torch's FlexAttention, for CUDA and, forward only, for CPUs.

The block mask is built directly from the layout, with Flex's block size of 128, without evaluating
a function for every pair of tokens. Flex itself keeps tables of blocks x blocks: 5 MB at 65,536
tokens for each head that differs from the others.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longbird.core.layout.layout import Layout
from longbird.core.operator.call import Call
from longbird.core.operator.sequences import all_global_tokens, over_sequences
from longbird.core.operator.tracing import eagerly
from longbird.errors import InvalidValueError

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

NAME = "flex"

BLOCK = 128
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def missing() -> str | None:
    """Return why this implementation is not available: it needs a compiler at run time."""
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if importlib.util.find_spec("triton") is None and shutil.which(compiler) is None:
        return (
            "FlexAttention compiles at run time, and neither triton (for CUDA) nor "
            f"{compiler} (for CPUs) is installed"
        )
    return None


def unsupported(call: Call) -> list[str]:
    """Return why it cannot run a call."""
    reasons: list[str] = []
    device = call.q.device.type
    bias = call.relative_bias
    grad = torch.is_grad_enabled()
    if device not in ("cuda", "cpu"):
        reasons.append(f"FlexAttention runs on CUDA and CPU, received device {device}")
    if device == "cpu" and not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        reasons.append("FlexAttention needs AVX2 on a CPU")
    if device == "cpu" and grad and any(x.requires_grad for x in (call.q, call.k, call.v)):
        reasons.append("FlexAttention has no backward on a CPU; use torch.no_grad()")
    if device == "cpu" and call.return_lse:
        reasons.append("FlexAttention gives no log-sum-exp on a CPU")
    if call.q.dtype not in DTYPES:
        reasons.append(
            f"FlexAttention takes float32, bfloat16 and float16, received {call.q.dtype}"
        )
    if call.dropout_p > 0.0:
        reasons.append("FlexAttention has no dropout")
    if bias is not None and grad and bias.requires_grad:
        reasons.append("FlexAttention's gradient of relative_bias is not reproducible")
    return reasons


def run(call: Call) -> tuple[Tensor, Tensor]:
    """Run sequences of the same length together, and others one after the other."""

    def attend(
        q: Tensor, k: Tensor, v: Tensor, _numbers: Tensor, first: int, marked: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        n, heads = q.shape[2], q.shape[1]
        layout = call.graph.of(first, n).layout(n, heads, BLOCK)
        if layout.multiset:
            raise InvalidValueError(
                'impl="flex" cannot run this call: the graph counts some edges more than once, '
                'and FlexAttention knows masks only; use impl="native" or impl="gather"'
            )
        hubs = tuple(all_global_tokens(layout, marked).tolist())
        return _attend(q, k, v, _arranged(layout, hubs, q.device), call)

    return eagerly(over_sequences, call, attend)


def _attend(q: Tensor, k: Tensor, v: Tensor, slots: _Slots, call: Call) -> tuple[Tensor, Tensor]:
    from torch.nn.attention.flex_attention import AuxRequest

    token, place = slots.token, slots.place
    if not slots.in_order:
        q, k, v = (x.index_select(2, token) for x in (q, k, v))

    score_mod = None
    if call.relative_bias is not None:
        bias = call.relative_bias.detach().float()
        m = bias.shape[1] // 2

        def biased(score: Tensor, _b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score + bias[h, (token[j] - token[i]).clamp(-m, m) + m]

        score_mod = biased

    # Every new length or graph is compiled; torch's default limit of 8 would raise an error.
    with torch._dynamo.config.patch(recompile_limit=256, accumulated_recompile_limit=4096):
        result = _compiled(q.device.type)(
            q,
            k,
            v,
            score_mod=score_mod,
            block_mask=slots.block_mask,
            scale=call.scale,
            return_aux=AuxRequest(lse=True) if call.return_lse else None,
        )
    out, lse = (result[0], result[1].lse) if call.return_lse else (result, result[..., 0])
    if not slots.in_order:
        out, lse = out.index_select(2, place), lse.index_select(2, place)
    return out, lse


@functools.cache
def _compiled(device: str) -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    # torch 2.13 generates C++ that does not compile for symbolic lengths on a CPU.
    dynamic = False if device == "cpu" else None
    return torch.compile(flex_attention, fullgraph=True, dynamic=dynamic)


@dataclass(frozen=True, eq=False)
class _Slots:
    """A layout and its global tokens in the form of Flex, over slots of complete tiles."""

    block_mask: BlockMask
    token: Tensor
    """int64 [tiles * 128]: token in each slot; the last token again in empty slots."""
    place: Tensor
    """int64 [n]: slot of each token."""
    in_order: bool
    """Whether every slot has the token of its number."""


@functools.lru_cache(maxsize=64)
def _arranged(layout: Layout, hubs: tuple[int, ...], device: torch.device) -> _Slots:
    from torch.nn.attention.flex_attention import BlockMask

    tiling = layout.queries
    n, size, tiles = tiling.tokens, tiling.size, tiling.count
    token, exists = tiling.slots
    place = np.empty(n, np.int64)
    place[token[exists]] = np.flatnonzero(exists)
    is_hub = np.isin(token, hubs) & exists

    # The number of the mask of each tile of queries and keys: 0 hides all keys, 1 shows all.
    heads = len(layout.row_ptr)
    number = np.zeros((heads * tiles, tiles), np.int32)
    row = np.repeat(np.arange(heads * tiles), np.diff(layout.row_ptr, axis=1).reshape(-1))
    number[row, layout.columns] = np.where(layout.mask_ids < 0, 1, layout.mask_ids + 2)
    number = number.reshape(heads, tiles, tiles)
    # The number of masks is a power of two, because every new shape is compiled.
    pool = 1 << max(4, (len(layout.masks) + 1).bit_length())
    masks = np.zeros((pool, size, size), bool)
    masks[1] = True
    unpacked = np.unpackbits(layout.masks, axis=2, count=size, bitorder="little")
    masks[2 : 2 + len(unpacked)] = unpacked

    full = (number == 1) & exists.all(axis=1)
    hub_tile = np.logical_or.reduce(is_hub, axis=1)
    partial = ((number > 0) | hub_tile[:, None] | hub_tile) & ~full
    number_t, masks_t = torch.from_numpy(number).to(device), torch.from_numpy(masks).to(device)
    exists_t = torch.from_numpy(exists.reshape(-1)).to(device)
    hub_t = torch.from_numpy(is_hub.reshape(-1)).to(device)
    per_head = int(heads > 1)

    def mask_mod(_b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        mask = number_t[h * per_head, i // size, j // size]
        return (masks_t[mask, j % size, i % size] | hub_t[i] | hub_t[j]) & exists_t[j]

    block_mask = BlockMask.from_kv_blocks(
        *_ordered(partial, device), *_ordered(full, device), BLOCK_SIZE=size, mask_mod=mask_mod
    )
    return _Slots(
        block_mask=block_mask,
        token=torch.from_numpy(token.reshape(-1)).to(device),
        place=torch.from_numpy(place).to(device),
        in_order=np.array_equal(token.reshape(-1), np.arange(n)),
    )


def _ordered(tiles: npt.NDArray[np.bool_], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return how many tiles of keys each row has, and their numbers first, for a batch of 1."""
    count = tiles.sum(-1, dtype=np.int32)[None]
    index = np.argsort(~tiles, axis=-1, kind="stable").astype(np.int32)[None]
    return torch.from_numpy(count).to(device), torch.from_numpy(index).to(device)
