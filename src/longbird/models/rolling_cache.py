"""The key and value cache of a causal decoder over a sparse graph.

If tokens see at most the last `reach` tokens and the first `sinks` tokens, no other keys are
needed, so that generation takes constant memory however long it runs.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from longbird.core.graph import Graph, stream
from longbird.core.operator.weights import rows_of
from longbird.errors import UnsupportedError
from longbird.models.layers.context import Context
from longbird.models.layers.packing import Documents

NOWHERE = -1
"""The position of an empty slot."""


def last_of(positions: Tensor) -> Tensor:
    """Return the last position of every row of [rows, slots]; NOWHERE for an empty row."""
    if positions.shape[1] == 0:
        return positions.new_full((len(positions),), NOWHERE)
    return positions.amax(1)


class RollingLayer(CacheLayerMixin):
    """The keys and values of a layer that later tokens see, [rows, heads, slots, head_dim]."""

    is_sliding, is_croppable = True, True

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph, self.stream = graph, stream(graph)
        self.positions: Tensor | None = None  # [rows, slots]
        self.lengths: Tensor | None = None  # [rows]: number of tokens of each document so far
        self.absent: Tensor | None = None  # [rows]: number of tokens without a position
        self.seen = 0  # columns of the batch, padding included
        self.record_past = False  # keep everything until `crop`, for tokens that may be taken back

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Append keys and values [rows, heads, t, head_dim] at `positions` [rows, t]."""
        positions: Tensor = kwargs["positions"]
        lengths = last_of(positions) + 1  # 0 where there is no token
        if self.positions is not None:
            lengths = lengths.maximum(self.lengths)  # type: ignore[arg-type]
            key_states = torch.cat([self.keys, key_states], 2)  # type: ignore[list-item]
            value_states = torch.cat([self.values, value_states], 2)  # type: ignore[list-item]
            positions = torch.cat([self.positions, positions], 1)
        self.keys, self.values, self.positions = key_states, value_states, positions
        self.lengths = lengths
        self.seen += kwargs["positions"].shape[1]
        self.is_initialized = True
        return key_states, value_states

    def activate_past_recording(self) -> None:
        """Keep everything until `crop`, for tokens that may be taken back."""
        self.record_past = True

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last tokens (a negative number), then what is out of reach."""
        if tokens_to_remove and not self.record_past:
            raise UnsupportedError(
                "a rolling cache no longer has what older tokens need: call "
                "activate_past_recording() before the tokens that may be taken back"
            )
        if self.positions is None:
            return
        if count := abs(tokens_to_remove):
            self.keys, self.values = self.keys[:, :, :-count], self.values[:, :, :-count]  # type: ignore[index]
            self.positions, self.seen = self.positions[:, :-count], self.seen - count
            self.lengths = self.lengths - count  # type: ignore[operator]
        self.drop()

    def drop(self) -> None:
        """Keep the sinks and the last `reach` tokens, which later tokens can see."""
        assert self.positions is not None
        if self.stream.reach is None:
            return
        last = last_of(self.positions)[:, None]
        kept = (self.positions > last - self.stream.reach) | (self.positions < self.stream.sinks)
        kept &= self.positions != NOWHERE
        slots = int(kept.sum(1).max()) if len(kept) else 0
        if slots == self.positions.shape[1]:
            return
        # Kept slots first, in their order; rows with fewer keep slots without a token.
        order = (~kept).to(torch.int8).argsort(dim=1, stable=True)[:, :slots]
        self.positions = self.positions.masked_fill(~kept, NOWHERE).gather(1, order)
        rows = torch.arange(len(order), device=order.device)[:, None]
        self.keys = self.keys.transpose(1, 2)[rows, order].transpose(1, 2)  # type: ignore[union-attr]
        self.values = self.values.transpose(1, 2)[rows, order].transpose(1, 2)  # type: ignore[union-attr]

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Select rows, for beam search."""
        self.batch_select_indices(beam_idx)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Select rows."""
        if self.positions is not None:
            self.keys, self.values = self.keys[indices], self.values[indices]  # type: ignore[index]
            self.positions, self.lengths = self.positions[indices], self.lengths[indices]  # type: ignore[index]
            self.absent = None if self.absent is None else self.absent[indices]

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row."""
        if self.positions is not None:
            rows = torch.arange(len(self.positions), device=self.positions.device)
            self.batch_select_indices(rows.repeat_interleave(repeats))

    def reset(self) -> None:
        """Remove everything."""
        self.keys = self.values = self.positions = self.lengths = self.absent = None
        self.seen, self.is_initialized = 0, False

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Do nothing: layers are initialized by their first update."""

    def get_seq_length(self) -> int:
        """Return the number of columns of the batch so far, padding included."""
        return self.seen

    def get_max_length(self) -> int:
        """Return -1, for no limit."""
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the sizes that transformers asks for; the mask itself comes from the graph."""
        return self.seen + query_length, 0


class RollingCache(Cache):
    """The caches of all layers.

    Examples:
        >>> import longbird as lb
        >>> cache = lb.RollingCache([lb.Window(128) & lb.Causal()] * 2)
        >>> cache.get_seq_length()
        0
    """

    def __init__(self, graphs: list[Graph]) -> None:
        """Take the causal graph of every layer; a ValueError says why one cannot be streamed."""
        super().__init__(layers=[RollingLayer(graph) for graph in graphs])

    @property
    def rolling_layers(self) -> list[RollingLayer]:
        """The caches of the layers."""
        layers: Any = self.layers
        return layers

    @property
    def lengths(self) -> Tensor | None:
        """Number of tokens of each document that all layers have seen, [rows]; None at first."""
        return self.rolling_layers[-1].lengths

    @property
    def absent(self) -> Tensor | int:
        """Number of these tokens without a position of their own (RoBERTa's padding), [rows]."""
        absent = self.rolling_layers[0].absent
        return 0 if absent is None else absent

    def count_absent(self, documents: Documents, absent: Tensor) -> None:
        """Count new tokens without a position, bool [t]."""
        counts = [int(absent[a:b].sum()) for a, b in documents.bounds]
        new = torch.tensor(counts, dtype=torch.int64)
        self.rolling_layers[0].absent = self.absent + new.to(absent.device)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, context: Context, layer: int, dropout_p: float
    ) -> Tensor:
        """Attend from new tokens [t, h, d] to themselves and to the cache."""
        state, documents = self.rolling_layers[layer], context.documents
        past = state.lengths
        place = documents.counted(torch.ones(len(q), dtype=torch.bool, device=q.device)) - 1
        if past is not None:
            place = place + documents.spread(past)
        place = documents.pad(place, NOWHERE)  # [rows, n]
        keys, values = (documents.pad(x).transpose(1, 2) for x in (k, v))
        keys, values = state.update(keys, values, positions=place)
        positions = state.positions
        assert positions is not None
        if past is None:  # the first tokens: nothing was kept before
            out = context.attend(q, k, v, state.graph, dropout_p=dropout_p)
        else:
            i, j = place[:, None, :, None], positions[:, None, None, :]
            # Padding sees everything, so that its rows are not empty; they are not used.
            head = torch.arange(q.shape[1], device=q.device)[:, None, None]
            seen = state.stream.sees(i, j, head)  # [rows, 1 or heads, n, slots]
            mask = seen & (j != NOWHERE) | (i == NOWHERE)
            if (bias := context.relative_bias) is not None:
                m = bias.shape[1] // 2
                bias = bias[:, (j - i).clamp(-m, m)[:, 0] + m].transpose(0, 1)
                mask = bias.to(q.dtype).masked_fill(~mask, -torch.inf)
            q = documents.pad(q).transpose(1, 2)
            if context.record is not None:
                scores = q @ keys.mT / q.shape[-1] ** 0.5
                scores = torch.where(mask, scores, -torch.inf) if bias is None else scores + mask
                scores = scores.masked_fill((i == NOWHERE) | (j == NOWHERE), -torch.inf)
                context.record.weights[layer] = rows_of(scores, positions, last_of(place.T))
            out = F.scaled_dot_product_attention(q, keys, values, mask, dropout_p)
            out = documents.pack(out.transpose(1, 2))
        if not state.record_past:
            state.drop()
        return out
