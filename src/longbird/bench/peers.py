"""The attention functions that are compared, each in its fastest form that is still itself.

A peer is built for a length, outside of all timing: masks, block masks and modules are ready when
the clock starts. What comes out is a function from q, k, v to the output, all of them
[batch, heads, n, head_dim] and contiguous at the entry. Every peer names the graph that it
computes, and `difference` holds it to that.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention, softmax

from longbird.bench.contest import UnavailableError, refuse_without_memory
from longbird.bench.work import Work
from longbird.graph.base import Graph
from longbird.graph.legacy import LegacyBigBird
from longbird.graph.windows import Full, Window
from longbird.layout import Layout
from longbird.ops.api import attention

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

AttentionFunction = Callable[[Tensor, Tensor, Tensor], Tensor]

LONGFORMER_WINDOW = 512  # Longformer's default, and about as many keys as BigBird's eight blocks


@dataclass(frozen=True)
class Peer:
    """One contestant.

    Attributes:
        name: As it is called in reports.
        short: The same at the head of a column.
        build: Makes the function for a work and a length, or raises `UnavailableError`.
        graph: What it computes: the graph of a work at a length.
        growth: Its time grows as the length to this power, which predicts the next length.
        backward: Why it has no backward pass on this device; None if it has one.
        peak_bytes: About the memory that a call takes besides inputs and output, given whether
            backward follows; it is asked only whether the machine can hold that.
    """

    name: str
    short: str
    build: Callable[[Work, int], AttentionFunction]
    graph: Callable[[Work, int], Graph]
    growth: int = 1
    backward: str | None = None
    peak_bytes: Callable[[Work, int, bool], int] = lambda work, n, backward: 0

    def refuse_if_impossible(self, work: Work, n: int, *, backward: bool) -> None:
        """Raise `UnavailableError` if there is no backward, or not enough memory for it."""
        if backward and self.backward:
            raise UnavailableError(self.backward)
        refuse_without_memory(self.peak_bytes(work, n, backward))


def longbird(implementation: str = "native") -> Peer:
    """Longbird itself, by one of its implementations."""

    def build(work: Work, n: int) -> AttentionFunction:
        graph = work.graph
        return lambda q, k, v: attention(q, k, v, graph, impl=implementation)

    name = f"longbird {implementation}"
    return Peer(name, name, build, lambda work, n: work.graph)


def _dense(work: Work, n: int) -> AttentionFunction:
    return scaled_dot_product_attention


DENSE = Peer("dense SDPA", "dense SDPA", _dense, lambda work, n: Full(), growth=2)


def _flex(work: Work, n: int) -> AttentionFunction:
    try:
        from torch.nn.attention.flex_attention import flex_attention
    except ImportError as error:
        raise UnavailableError(f"this torch has no FlexAttention: {error}") from error
    block_mask = flex_block_mask(work.graph.layout(n, heads=work.heads))
    # Each length is compiled for itself, as static shapes give the faster kernel; forgetting the
    # lengths before keeps below the number of recompilations after which torch stops compiling.
    torch.compiler.reset()
    compiled = torch.compile(flex_attention, dynamic=False)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = compiled(q, k, v, block_mask=block_mask)
        assert isinstance(out, Tensor)
        return out

    return run


def flex_block_mask(layout: Layout) -> BlockMask:
    """The block mask of a layout whose entries are all full, which is the form Flex is fastest on.

    Handing the same blocks to Flex as partial ones, with a `mask_mod` that looks them up, takes
    twice as long.
    """
    from torch.nn.attention.flex_attention import BlockMask

    size = layout.queries.size
    if (layout.mask_ids >= 0).any() or layout.global_tokens.size or layout.queries.tokens % size:
        raise UnavailableError(
            f"not every block of this layout is full ({layout.queries.tokens} tokens in tiles of "
            f"{size}); the comparison takes lengths that are multiples of the block"
        )
    counts = np.diff(layout.row_ptr, axis=1)
    listed = np.arange(counts.max(initial=0)) < counts[..., None]
    indices = np.zeros((*counts.shape, layout.keys.count), dtype=np.int32)
    indices[..., : listed.shape[-1]][listed] = layout.columns
    count = torch.from_numpy(counts.astype(np.int32))[None]
    index = torch.from_numpy(indices)[None]
    return BlockMask.from_kv_blocks(
        torch.zeros_like(count),
        torch.zeros_like(index),
        count,
        index,
        BLOCK_SIZE=(size, size),
        mask_mod=lambda batch, head, query, key: (
            query >= 0
        ),  # never asked: there are full blocks only
    )


FLEX = Peer(
    "compiled FlexAttention",
    "Flex",
    _flex,
    lambda work, n: work.graph,
    backward="FlexAttention has no backward pass on CPU",
)


def _hugging_face_bigbird(work: Work, n: int) -> AttentionFunction:
    modeling = _transformers("big_bird")
    least = (5 + 2 * work.random) * work.block
    if work.window != 3:
        raise UnavailableError(f"its window is always 3 blocks, not {work.window}")
    if n <= least:
        raise UnavailableError(
            f"Hugging Face's model switches to full attention up to {least} tokens"
        )
    if n % work.block:
        raise UnavailableError(f"it takes multiples of {work.block} tokens only")
    module = modeling.BigBirdBlockSparseAttention(_bigbird_config(work, n), seed=0)
    # In eval mode its random blocks are all block 0; train mode has the graph of the paper, and no
    # dropout is part of the core.
    module.train()
    ones = torch.ones(work.batch, n)
    blocked, band, rows, columns = modeling.BigBirdModel.create_masks_for_block_sparse_attn(
        ones, work.block
    )

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with numpy_state_kept():
            out, _ = module.bigbird_block_sparse_attention(
                q,
                k,
                v,
                band,
                rows,
                columns,
                blocked,
                blocked,
                work.heads,
                work.random,
                work.head_dim,
                work.block,
                work.block,
                work.batch,
                n,
                n,
                seed=0,
                plan_from_length=None,
                plan_num_rand_blocks=None,
            )
        return out.transpose(1, 2)

    return run


def _bigbird_config(work: Work, n: int) -> SimpleNamespace:
    return SimpleNamespace(
        hidden_size=work.heads * work.head_dim,
        num_attention_heads=work.heads,
        num_random_blocks=work.random,
        block_size=work.block,
        max_position_embeddings=max(4096, n),
        use_bias=True,
    )


@contextmanager
def numpy_state_kept() -> Generator[None, None, None]:
    """Hugging Face's BigBird seeds NumPy's global generator at every call; this puts it back."""
    state = np.random.get_state()
    try:
        yield
    finally:
        np.random.set_state(state)


def _hugging_face_peak(work: Work, n: int, backward: bool) -> int:
    # It fills a dense matrix of probabilities whether they are asked for or not. Gathered blocks
    # and scores come on top: a fifth of the matrix at 16,384 tokens, and more for backward.
    matrix = work.batch * work.heads * n * n * 4
    return matrix * 8 // 5 if backward else matrix * 6 // 5


def _hugging_face_graph(work: Work, n: int) -> Graph:
    return LegacyBigBird(
        "huggingface",
        block=work.block,
        random=work.random,
        max_length=max(4096, n),
        full_up_to=0,
    )


HUGGING_FACE_BIGBIRD = Peer(
    "Hugging Face BigBird core",
    "HF BigBird",
    _hugging_face_bigbird,
    _hugging_face_graph,
    growth=2,
    peak_bytes=_hugging_face_peak,
)


def _hugging_face_longformer(work: Work, n: int) -> AttentionFunction:
    modeling = _transformers("longformer")
    if n % LONGFORMER_WINDOW:
        raise UnavailableError(f"it takes multiples of its window of {LONGFORMER_WINDOW} only")
    radius = LONGFORMER_WINDOW // 2
    config = SimpleNamespace(
        hidden_size=work.heads * work.head_dim,
        num_attention_heads=work.heads,
        attention_probs_dropout_prob=0.0,
        attention_window=[LONGFORMER_WINDOW],
    )
    module = modeling.LongformerSelfAttention(config, layer_id=0)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        # The local part of LongformerSelfAttention.forward without its padding mask, which the
        # model computes even where nothing is padded. Its own layout is [batch, n, heads, dim];
        # these views spare it the copy that it makes on the way.
        scaled = q * q.shape[-1] ** -0.5
        scores = module._sliding_chunks_query_key_matmul(
            scaled.transpose(1, 2), k.transpose(1, 2), radius
        )
        weights = softmax(scores, dim=-1, dtype=torch.float32)
        out = module._sliding_chunks_matmul_attn_probs_value(weights, v.transpose(1, 2), radius)
        return out.transpose(1, 2)

    return run


HUGGING_FACE_LONGFORMER = Peer(
    f"Hugging Face Longformer core (another graph: window {LONGFORMER_WINDOW})",
    f"HF Longformer ({LONGFORMER_WINDOW})",
    _hugging_face_longformer,
    lambda work, n: Window(LONGFORMER_WINDOW // 2),
)


def _transformers(model: str) -> Any:
    try:
        return importlib.import_module(f"transformers.models.{model}.modeling_{model}")
    except ImportError as error:
        raise UnavailableError(
            f"transformers cannot be imported ({error}): pip install transformers"
        ) from error


PEERS = (DENSE, FLEX, HUGGING_FACE_BIGBIRD, HUGGING_FACE_LONGFORMER)


def difference(peer: Peer, work: Work, n: int) -> float:
    """Largest difference of a peer's output from Longbird's dense reference on its own graph.

    Raises:
        UnavailableError: The peer cannot run here.
        ValueError: Its output has another shape than its queries.
    """
    q, k, v = work.inputs(n)
    with torch.no_grad():
        out = peer.build(work, n)(q, k, v)
        if out.shape != q.shape:
            raise ValueError(f"{peer.name} gave {tuple(out.shape)}, expected {tuple(q.shape)}")
        expected = attention(q, k, v, peer.graph(work, n), impl="reference")
    return float((out - expected).abs().max())
