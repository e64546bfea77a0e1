"""The attention functions that are compared, each in its fastest form.

A peer is built for a case outside of all timing: masks, block masks and modules are ready when the
clock starts. The result is a function from q, k and v to the output, all of them contiguous
[batch, heads, n, head_dim]. Every peer names the graph that it computes, and `difference` checks
this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention, softmax

from experiments.speed.attention.case import Case
from experiments.speed.contest import Call, Peer, UnavailableError, refuse_without_memory
from experiments.speed.hugging_face import LONGFORMER_WINDOW, numpy_state_kept, transformers_module
from longbird.core.graph.base import Graph
from longbird.core.graph.legacy import LegacyBigBird
from longbird.core.graph.windows import Causal, Full, Window
from longbird.core.layout import Layout
from longbird.core.operator.api import attention

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

AttentionFunction = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class AttentionPeer(Peer):
    """A contestant.

    Attributes:
        build: Builds the function for a case, or raises `UnavailableError`.
        graph: Returns the graph that it computes for a case.
        no_backward: Reason why it has no backward pass on this device, or None.
        needed_bytes: Approximate memory of a call in addition to inputs and output, which is
            compared with the memory of the machine.
    """

    build: Callable[[Case], AttentionFunction]
    graph: Callable[[Case], Graph]
    no_backward: str | None = None
    needed_bytes: Callable[[Case], int] = lambda case: 0

    def calls(self, *cases: Case) -> list[Call]:
        """Return calls that are ready to be timed."""
        return [self.call(case) for case in cases]

    def call(self, case: Case) -> Call:
        """Return a call that computes the output, and the gradients of q, k and v if asked."""
        if case.backward and self.no_backward:
            raise UnavailableError(self.no_backward)
        refuse_without_memory(self.needed_bytes(case))
        q, k, v = case.inputs()
        function = self.build(case)
        if not case.backward:
            return torch.no_grad()(lambda: function(q, k, v))
        leaves = tuple(x.requires_grad_() for x in (q, k, v))
        gradient = torch.randn(q.shape, generator=torch.Generator().manual_seed(1))

        def forward_backward() -> tuple[Tensor, ...]:
            out = function(*leaves)
            return out, *torch.autograd.grad(out, leaves, gradient)

        return forward_backward

    def difference(self, case: Case) -> float:
        """Return the largest difference from Longbird's dense reference on its graph."""
        q, k, v = case.inputs()
        with torch.no_grad():
            out = self.build(case)(q, k, v)
            expected = attention(q, k, v, self.graph(case), impl="reference")
        if out.shape != q.shape:
            raise ValueError(f"{self.name} gave {tuple(out.shape)}, expected {tuple(q.shape)}")
        return float((out - expected).abs().max())


def longbird(implementation: str = "native") -> AttentionPeer:
    """Return Longbird with one of its implementations."""

    def build(case: Case) -> AttentionFunction:
        graph = case.graph
        return lambda q, k, v: attention(q, k, v, graph, impl=implementation)

    name = f"longbird {implementation}"
    return AttentionPeer(name=name, short=name, build=build, graph=lambda case: case.graph)


def _dense(case: Case) -> AttentionFunction:
    causal = case.pattern == "causal"
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=causal)


DENSE = AttentionPeer(
    name="dense SDPA",
    short="dense SDPA",
    build=_dense,
    graph=lambda case: Causal() if case.pattern == "causal" else Full(),
    growth=2,
)


def _flex(case: Case) -> AttentionFunction:
    try:
        from torch.nn.attention.flex_attention import flex_attention
    except ImportError as error:
        raise UnavailableError(f"this torch has no FlexAttention: {error}") from error
    block_mask = flex_block_mask(case.graph.layout(case.n, heads=case.heads))
    # Each length is compiled by itself, as static shapes give the faster kernel. Forgetting those
    # before it keeps below the number of recompilations after which torch stops compiling.
    torch.compiler.reset()
    compiled: Any = torch.compile(flex_attention, dynamic=False)
    return lambda q, k, v: compiled(q, k, v, block_mask=block_mask)


def flex_block_mask(layout: Layout) -> BlockMask:
    """Return the block mask of a layout with only full entries, which Flex runs fastest.

    If the same blocks are passed as partial blocks with a `mask_mod` that looks them up, Flex
    takes
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
        # Never asked: there are full blocks only.
        mask_mod=lambda batch, head, query, key: query >= 0,
    )


FLEX = AttentionPeer(
    name="compiled FlexAttention",
    short="Flex",
    build=_flex,
    graph=lambda case: case.graph,
    no_backward="FlexAttention has no backward pass on CPU",
)


def _hugging_face_bigbird(case: Case) -> AttentionFunction:
    modeling = transformers_module("transformers.models.big_bird.modeling_big_bird")
    least = (5 + 2 * case.random) * case.block
    if case.window != 3:
        raise UnavailableError(f"its window is always 3 blocks, not {case.window}")
    if case.n <= least:
        raise UnavailableError(f"it switches to full attention up to {least} tokens")
    if case.n % case.block:
        raise UnavailableError(f"it takes multiples of {case.block} tokens only")
    config = SimpleNamespace(
        hidden_size=case.heads * case.head_dim,
        num_attention_heads=case.heads,
        num_random_blocks=case.random,
        block_size=case.block,
        max_position_embeddings=max(4096, case.n),
        use_bias=True,
    )
    module = modeling.BigBirdBlockSparseAttention(config, seed=0)
    # In eval mode its random blocks are all block 0; train mode has the graph of the paper, and no
    # dropout is part of the core.
    module.train()
    blocked, band, rows, columns = modeling.BigBirdModel.create_masks_for_block_sparse_attn(
        torch.ones(case.batch, case.n), case.block
    )
    masks = (band, rows, columns, blocked, blocked)
    sizes = (case.heads, case.random, case.head_dim, case.block, case.block)
    sizes += (case.batch, case.n, case.n)
    options = {"seed": 0, "plan_from_length": None, "plan_num_rand_blocks": None}

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with numpy_state_kept():
            out, _ = module.bigbird_block_sparse_attention(q, k, v, *masks, *sizes, **options)
        return out.transpose(1, 2)

    return run


def _hugging_face_bytes(case: Case) -> int:
    # It fills a dense matrix of probabilities whether they are asked for or not. Gathered blocks
    # and scores come on top: a fifth of the matrix at 16,384 tokens, and more for backward.
    matrix = case.batch * case.heads * case.n * case.n * 4
    return matrix * (8 if case.backward else 6) // 5


def _hugging_face_graph(case: Case) -> Graph:
    sizes = {"block": case.block, "random": case.random, "max_length": max(4096, case.n)}
    return LegacyBigBird("huggingface", **sizes, full_up_to=0)


HUGGING_FACE_BIGBIRD = AttentionPeer(
    name="Hugging Face BigBird core",
    short="HF BigBird",
    build=_hugging_face_bigbird,
    graph=_hugging_face_graph,
    growth=2,
    needed_bytes=_hugging_face_bytes,
)


def _hugging_face_longformer(case: Case) -> AttentionFunction:
    modeling = transformers_module("transformers.models.longformer.modeling_longformer")
    if case.n % LONGFORMER_WINDOW:
        raise UnavailableError(f"it takes multiples of its window of {LONGFORMER_WINDOW} only")
    radius = LONGFORMER_WINDOW // 2
    config = SimpleNamespace(
        hidden_size=case.heads * case.head_dim,
        num_attention_heads=case.heads,
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


HUGGING_FACE_LONGFORMER = AttentionPeer(
    name=f"Hugging Face Longformer core (another graph: window {LONGFORMER_WINDOW})",
    short=f"HF Longformer ({LONGFORMER_WINDOW})",
    build=_hugging_face_longformer,
    graph=lambda case: Window(LONGFORMER_WINDOW // 2),
)

PEERS = (DENSE, FLEX, HUGGING_FACE_BIGBIRD, HUGGING_FACE_LONGFORMER)


def named(name: str) -> AttentionPeer:
    """Return the peer with this name, in a separate process."""
    here = {peer.name: peer for peer in PEERS}
    return here.get(name) or longbird(name.removeprefix("longbird "))
