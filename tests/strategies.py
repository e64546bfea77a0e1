"""Hypothesis strategies: random graphs, and random calls of the operator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

import longbird as lb

BLOCKS = (16, 64, 84)
HEAD_DIMS = (1, 8, 32, 40, 64, 80, 128, 256)


@dataclass(frozen=True)
class Alternating:
    """A graph that is a function of the length."""

    even: lb.Graph
    odd: lb.Graph

    def __call__(self, n: int) -> lb.Graph:
        """The graph over n tokens."""
        return self.odd if n % 2 else self.even


@dataclass(frozen=True)
class Case:
    """The arguments of one call of `attention`, or of `attention_packed` if it has cu_seqlens."""

    q: Tensor
    k: Tensor
    v: Tensor
    graph: Any
    """One graph, one for each sequence, or a function of the length."""
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, impl: str) -> tuple[Tensor, Tensor]:
        """The output and the log-sum-exp by one implementation."""
        function = lb.attention_packed if "cu_seqlens" in self.options else lb.attention
        return function(
            self.q, self.k, self.v, self.graph, **self.options, impl=impl, return_lse=True
        )

    def to(self, dtype: torch.dtype) -> Case:
        """The same in another dtype."""
        bias = self.options.get("relative_bias")
        options = self.options | ({} if bias is None else {"relative_bias": bias.to(dtype)})
        q, k, v = (x.to(dtype) for x in (self.q, self.k, self.v))
        return replace(self, q=q, k=k, v=v, options=options)

    def __repr__(self) -> str:
        """Short enough for hypothesis to print."""
        options = {
            name: tuple(x.shape) if isinstance(x, Tensor) and x.numel() > 9 else x
            for name, x in self.options.items()
        }
        return f"Case({tuple(self.q.shape)}, {self.graph!r:.300}, {options})"


def lengths(most: int = 300) -> st.SearchStrategy[int]:
    """Lengths around blocks and odd ones."""
    near = sorted({n for b in BLOCKS for n in (b - 1, b, b + 1, 2 * b + 1) if n <= most})
    return st.one_of(st.just(1), st.sampled_from(near), st.integers(1, most))


@st.composite
def pieces(draw: st.DrawFn, shortest: int) -> lb.Graph:
    """One piece that exists at every length from `shortest` on."""
    block = draw(st.sampled_from(BLOCKS))
    seed = draw(st.integers(0, 5))
    radius = draw(st.integers(0, 40))
    token = draw(st.integers(-shortest, shortest - 1))
    pairs = st.tuples(st.integers(0, shortest - 1), st.integers(0, shortest - 1))
    return draw(
        st.one_of(
            st.sampled_from([lb.Full(), lb.Causal(), lb.Window(radius), lb.BlockWindow(3, block)]),
            st.builds(lb.Window, st.just(radius), st.integers(2, 5)),
            st.just(lb.GlobalTokens([token])),
            st.just(lb.GlobalBlocks(1, draw(st.integers(0, 1)), block)),
            st.just(lb.RandomBlocks(draw(st.integers(1, 3)), block, seed)),
            st.just(lb.ErdosRenyi(draw(st.sampled_from([0.005, 0.05])), seed)),
            st.just(lb.WattsStrogatz(4, 0.3, seed)),
            st.lists(pairs, max_size=20).map(lambda p: lb.Edges(p)),
            st.just(lb.Edges([(0, 0), (shortest, 1), (2, 400)], clip=True)),
            st.just(lb.ByLength({block: lb.Full()}, lb.BlockWindow(3, block))),
        )
    )


def graphs(shortest: int = 1) -> st.SearchStrategy[lb.Graph]:
    """Pieces, presets, and unions and intersections of them."""
    piece = pieces(shortest)
    whole = st.sampled_from(BLOCKS).flatmap(
        lambda block: st.sampled_from([lb.bigbird(block=block), lb.bigbird(block=block, random=1)])
    )
    return st.one_of(
        piece,
        whole,
        st.builds(lambda a, b: a | b, piece, piece),
        st.builds(lambda a, b: a & b, piece, piece),
        st.builds(lambda a, b, c: (a & b) | c, piece, piece, piece),
    )


@st.composite
def multiset_graphs(draw: st.DrawFn) -> lb.Graph:
    """Graphs that count some edges more than once."""
    block = draw(st.sampled_from((8, 16)))
    random = draw(st.integers(1, 2))
    if draw(st.booleans()):
        return lb.LegacyBigBird("huggingface", block=block, random=random)
    return lb.LegacyBigBird("huggingface_eval", block, random, full_up_to=4 * block)


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    most: int = 300,
    head_dims: tuple[int, ...] = HEAD_DIMS,
    dropout: bool = True,
) -> Case:
    """Calls of every kind, in float32, with values of about unit size."""
    packed = draw(st.booleans())
    batch = draw(st.integers(1, 3))
    heads = draw(st.integers(1, 3))
    head_dim = draw(st.sampled_from(head_dims))
    n = draw(lengths(most))
    options: dict[str, Any] = {}

    counts = [n] * batch
    if packed or draw(st.booleans()):
        counts = draw(st.lists(st.integers(0, n), min_size=batch, max_size=batch))
        options["lengths"] = torch.tensor(counts)
    multiset = draw(st.sampled_from([False, False, False, True]))
    shortest = min((count for count in counts if count), default=1)
    chosen = multiset_graphs() if multiset else graphs(shortest)
    graph: Any = draw(chosen)
    form = draw(st.sampled_from(["one", "one", "heads", "each", "function"]))
    if form == "heads":
        graph = lb.PerHead([graph, *(draw(chosen) for _ in range(heads - 1))])
    elif form == "each":
        graph = [draw(multiset_graphs() if multiset else graphs(max(n, 1))) for n in counts]
    elif form == "function":
        graph = Alternating(graph, draw(chosen))

    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    exists = torch.arange(n) < torch.tensor(counts)[:, None]
    if not multiset and draw(st.booleans()):
        share = draw(st.sampled_from([0.02, 0.3]))
        options["global_tokens"] = (torch.rand(batch, n, generator=generator) < share) & exists
    if draw(st.booleans()):
        m = draw(st.sampled_from([0, 3, 50]))
        options["relative_bias"] = torch.randn(heads, 2 * m + 1, generator=generator)
    if dropout and draw(st.booleans()):
        options["dropout_p"] = draw(st.sampled_from([0.1, 0.5, 0.9]))
        options["dropout_seed"] = draw(st.integers(-(2**63), 2**63 - 1))
    if draw(st.booleans()):
        options["scale"] = 0.7 * head_dim**-0.5

    q, k, v = torch.randn(3, batch, heads, n, head_dim, generator=generator).unbind()
    if packed:
        options["cu_seqlens"] = torch.tensor([0, *counts]).cumsum(0)
        del options["lengths"]
        q, k, v = (x.transpose(1, 2)[exists] for x in (q, k, v))
        if "global_tokens" in options:
            options["global_tokens"] = options["global_tokens"][exists]
    return Case(q, k, v, graph, options)
