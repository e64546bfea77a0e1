"""What layers know about one forward pass: how the tokens of its documents see each other.

A context is built once, at the entry of a model. Layers only write into its record of attention
weights and into its cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from longbird.core.graph import Graph
from longbird.core.operator.api import attention, attention_packed
from longbird.core.operator.weights import SparseRows, attention_weights
from longbird.models.layers.packing import Documents


@dataclass(frozen=True, eq=False)
class AddedTokens:
    """The global tokens that BigBird-ETC adds to the documents of a batch."""

    total: int
    """Number of added tokens of all documents."""
    counts: tuple[int, ...] | None
    """Number for each document; None in an exported program, where all have the same number."""
    present: Tensor | None = None
    """bool [rows, g]: which of them a document has, if there is room for more."""
    segments: Tensor | None = None
    """int64 [tokens]: the segment of each token of the text, -1 for none."""

    def rows(self, x: Tensor, documents: int) -> Tensor:
        """Pad [total, ...] to [documents, most of a document, ...] with zeros."""
        if self.counts == ():  # no documents
            return x.new_zeros(0, 0, *x.shape[1:])
        if self.counts is not None:
            return pad_sequence(list(x.split(list(self.counts))), batch_first=True)
        x = x.unflatten(0, (documents, -1))
        if self.present is not None:
            x = x * self.present.reshape(*self.present.shape, *[1] * (x.ndim - 2))
        return x

    def first(self, x: Tensor, documents: int) -> Tensor:
        """Return the first added token of every document, [documents, ...]."""
        if self.counts is None:
            return x.unflatten(0, (documents, -1))[:, 0]
        counts = torch.tensor(self.counts, dtype=torch.int64, device=x.device)
        return x[counts.cumsum(0) - counts]

    def mean(self, x: Tensor, documents: int) -> Tensor:
        """Return the mean over the added tokens of every document, [documents, ...]."""
        if self.counts == ():
            return x
        if self.counts is not None:
            return torch.stack([part.mean(0) for part in x.split(list(self.counts))])
        rows = self.rows(x, documents)
        if self.present is None:
            return rows.mean(1)
        return rows.sum(1) / self.present.sum(1).to(x.dtype).reshape(-1, *[1] * (x.ndim - 1))


@dataclass(frozen=True, eq=False)
class Memory:
    """The states of an encoder, for a decoder with cross attention."""

    states: Tensor
    """[rows, m, w], or [tokens, w] if there are `documents`."""
    mask: Tensor | None = None
    """bool [rows, 1, 1, m]: the states that are not padding."""
    cache: Any = None
    """The `EncoderDecoderCache` of its keys and values."""
    documents: Documents | None = None
    """The places of the documents, if the states are packed."""


@dataclass(frozen=True, eq=False)
class Record:
    """The attention weights of every layer, if the caller asks for them."""

    weights: dict[int, SparseRows] = field(default_factory=dict)
    """The weights of all tokens, by the number of the layer."""
    of_globals: dict[int, Tensor] = field(default_factory=dict)
    """[rows, h, n, g]: the weights of Longformer's global tokens, in columns of the batch."""
    of_memory: dict[int, Tensor] = field(default_factory=dict)
    """[rows, h, n, m]: the weights of cross attention."""


@dataclass(frozen=True, eq=False)
class Context:
    """What every layer of one forward pass knows."""

    documents: Documents
    impl: str = "auto"
    """The implementation of attention."""
    relative_bias: Tensor | None = None
    """[h, 2m + 1], added to the scores of every layer."""
    global_tokens: Tensor | None = None
    """bool [tokens]: the tokens that see and are seen by all."""
    edges: tuple[Graph | None, ...] | None = None
    """The edges of each document beyond the graph of every layer."""
    added: AddedTokens | None = None
    """The added global tokens of BigBird-ETC."""
    memory: Memory | None = None
    """The states of an encoder, for decoders with cross attention."""
    cache: Any = None
    """The `RollingCache` of a decoder that generates."""
    record: Record | None = None
    """Where layers store attention weights, if the caller asks for them."""

    @property
    def carried(self) -> tuple[Tensor | None, ...]:
        """The tensors with gradients that come from outside the layers."""
        if self.relative_bias is None and self.memory is None:
            return ()
        return self.relative_bias, None if self.memory is None else self.memory.states

    def carrying(self, relative_bias: Tensor | None, states: Tensor | None) -> Context:
        """Return the context with these tensors instead of those in `carried`."""
        memory = self.memory
        if memory is not None and states is not None:
            memory = replace(memory, states=states)
        return replace(self, relative_bias=relative_bias, memory=memory)

    def graphs(self, graph: Graph) -> Graph | list[Graph]:
        """Return the graph of a layer, joined with the edges of each document."""
        if self.edges is None:
            return graph
        return [graph if edges is None else graph | edges for edges in self.edges]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, **options: Any) -> Any:
        """Compute `longbird.attention` of [tokens, h, d] within every document."""
        rows, n, ends = self.documents.rows, self.documents.n, self.documents.cu_seqlens
        marked = self.global_tokens
        options = {"relative_bias": self.relative_bias, "impl": self.impl, **options}
        if ends is not None:
            return attention_packed(
                q, k, v, self.graphs(graph), ends, global_tokens=marked, **options
            )
        q, k, v = (x.unflatten(0, (rows, n)).transpose(1, 2) for x in (q, k, v))
        marked = None if marked is None else marked.unflatten(0, (rows, n))
        lengths = self.documents.lengths
        out: Any = attention(
            q, k, v, self.graphs(graph), lengths=lengths, global_tokens=marked, **options
        )
        if options.get("return_lse"):
            return tuple(x.transpose(1, 2).flatten(0, 1) for x in out)
        return out.transpose(1, 2).flatten(0, 1)

    def attention_weights(self, q: Tensor, k: Tensor, graph: Graph) -> SparseRows:
        """Return the attention weights of every token, in token numbers of its document."""
        align, marked, ends = (
            self.documents.align,
            self.global_tokens,
            self.documents.cu_seqlens,
        )
        return attention_weights(
            align(q).transpose(1, 2),
            align(k).transpose(1, 2),
            self.graphs(graph),
            lengths=None if ends is None else ends.diff(),
            global_tokens=None if marked is None else align(marked),
            relative_bias=self.relative_bias,
        )
