"""The encoder: packed documents, any graph; BigBird, BigBird-ETC, Longformer, BERT in one.

A forward pass gathers its `Inputs`, `encode` runs them through the layers, and what comes of it,
`Encoded`, is padded again. The heads do the same with a step for their task before and after.
"""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, DynamicCache, EncoderDecoderCache
from transformers.utils.generic import can_return_tuple

from longbird.core.graph import Graph
from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.config import LongbirdConfig
from longbird.models.inputs import Inputs
from longbird.models.layers.attention import SelfAttention
from longbird.models.layers.checks import (
    as_floats,
    check_device,
    check_integers,
    check_marks,
    check_tensor,
    readable,
)
from longbird.models.layers.context import AddedTokens, Context, Memory, Record
from longbird.models.layers.cross import CrossAttention
from longbird.models.layers.etc import EtcAttention
from longbird.models.layers.layers import CrossLayer, Embeddings, Layer, relative_table
from longbird.models.layers.packing import Documents
from longbird.models.outputs import LongbirdModelOutput
from longbird.models.pretrained import LongbirdPreTrainedModel
from longbird.models.rolling import RollingCache
from longbird.models.structure import document_edges


@dataclass(frozen=True, eq=False)
class Encoded:
    """Documents after the encoder."""

    context: Context
    x: Tensor
    """[t, w]: the text tokens of all documents."""
    added: Tensor
    """[g, w]: the added global tokens of all documents (BigBird-ETC)."""
    hidden: list[Tensor] | None
    """[t, w] before the first and after every layer, if asked for."""

    @property
    def documents(self) -> Documents:
        """Where the tokens are."""
        return self.context.documents

    def pad(self, x: Tensor, value: float = 0.0) -> Tensor:
        """[t, ...] to [rows, n, ...]."""
        return self.documents.pad(x, value)

    @property
    def first(self) -> Tensor:
        """[rows, w]: the first added global token of every document, or its first token.

        Zeros for a document that has neither.
        """
        if self.context.added is None:
            return self.documents.first(self.x)
        return self.context.added.first(self.added, self.documents.rows)

    def first_of_each(self) -> Tensor:
        """`first`, for heads that say something about every document; raises if it has none."""
        if self.context.added is None:
            self.documents.check_tokens()
        return self.first

    @property
    def global_hidden_state(self) -> Tensor | None:
        """[rows, most global tokens of a document, w]: those that BigBird-ETC adds."""
        if self.context.added is None:
            return None
        return self.context.added.rows(self.added, self.documents.rows)

    @property
    def past_key_values(self) -> Any:
        """The cache with these tokens in it; with what an encoder read, if there is one."""
        memory = self.context.memory
        return self.context.cache if memory is None or memory.cache is None else memory.cache

    @property
    def hidden_states(self) -> tuple[Tensor, ...] | None:
        """[rows, n, w] each."""
        return None if self.hidden is None else tuple(map(self.pad, self.hidden))

    @property
    def attentions(self) -> tuple[Any, ...] | None:
        """The weights of every layer, as sparse rows."""
        record = self.context.record
        return None if record is None else _by_layer(record.weights)

    @property
    def global_attentions(self) -> tuple[Tensor, ...] | None:
        """[rows, h, n, g] of every layer: what Longformer's global tokens look at."""
        record = self.context.record
        return None if record is None or not record.of_globals else _by_layer(record.of_globals)

    @property
    def cross_attentions(self) -> tuple[Tensor, ...] | None:
        """[rows, h, n, m] of every layer: what tokens look at of what an encoder read."""
        record = self.context.record
        return None if record is None or not record.of_memory else _by_layer(record.of_memory)


def _by_layer(weights: dict[int, Any]) -> tuple[Any, ...]:
    return tuple(weights[layer] for layer in sorted(weights))


class LongbirdModel(LongbirdPreTrainedModel):
    """The encoder without a head.

    Examples:
        >>> import longbird as lb, torch
        >>> graph = lb.bigbird(block=16)
        >>> config = lb.LongbirdConfig(
        ...     hidden_size=32, num_attention_heads=2, num_hidden_layers=2, graph=graph
        ... )
        >>> model = lb.LongbirdModel(config).eval()
        >>> ids = torch.randint(100, (2, 300))
        >>> mask = torch.arange(300) < torch.tensor([[300], [170]])
        >>> model(ids, attention_mask=mask).last_hidden_state.shape
        torch.Size([2, 300, 32])
    """

    def __init__(self, config: LongbirdConfig, add_pooling_layer: bool | None = None) -> None:
        super().__init__(config)
        if add_pooling_layer is None:
            add_pooling_layer = not config.is_encoder_decoder
        width, attention, self.graph = config.hidden_size, SelfAttention, config.graph
        self.embeddings = Embeddings(config)
        if config.num_global_tokens:
            attention = EtcAttention
            self.global_embeddings = nn.Embedding(config.num_global_tokens, width)
        if config.relative_buckets:
            self.relative_bias = nn.Embedding(config.relative_buckets, config.num_attention_heads)
        if config.add_cross_attention and not config.causal:
            raise InvalidValueError(
                "add_cross_attention=True needs is_decoder=True: an encoder has no other encoder "
                "to look at"
            )
        self.layers = nn.ModuleList(
            self._layer(config, layer, attention(config, graph, layer))
            for layer, graph in enumerate(config.layer_graphs)
        )
        if config.norm == "pre":
            self.final_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.pooler = nn.Linear(width, width) if add_pooling_layer else None
        self.post_init()

    @staticmethod
    def _layer(config: LongbirdConfig, number: int, attention: SelfAttention) -> Layer:
        if not config.add_cross_attention:
            return Layer(config, attention, config.intermediate_size)
        heads, bias = config.num_attention_heads, config.attention_output_bias
        cross = CrossAttention(config, number, heads, bias)
        return CrossLayer(config, attention, config.intermediate_size, cross)

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        segment_ids: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        *,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        edges: Tensor | Sequence[Any] | None = None,
    ) -> LongbirdModelOutput:
        """Encodes a batch of documents.

        Args:
            input_ids: [batch, n], the tokens.
            attention_mask: [batch, n], 0 for padding, which is not computed.
            token_type_ids: [batch, n], all 0 by default.
            position_ids: [batch, n], rows of the position table; by default each document counts
                its own tokens.
            inputs_embeds: [batch, n, width], in place of input_ids.
            global_attention_mask: [batch, n], 1 for tokens that see and are seen by all.
            segment_ids: [batch, n], the segment of each token, -1 for none (BigBird-ETC).
            past_key_values: The cache of the tokens before these (causal models).
            use_cache: Give a cache with these tokens in it (causal models)?
            output_hidden_states: Give the hidden states of every layer?
            output_attentions: Give the attention weights of every layer?
            encoder_hidden_states: [batch, m, width], what an encoder read (causal models with
                `add_cross_attention`).
            encoder_attention_mask: [batch, m], 0 for padding in it.
            edges: [batch, e, 2], pairs (query, key) of columns, added to the graph of every layer
                for their document; (-1, -1) for none. Or a list with an array [e, 2] for each.
        """
        inputs = Inputs(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids,
            position_ids=position_ids, inputs_embeds=inputs_embeds,
            global_attention_mask=global_attention_mask, segment_ids=segment_ids,
            past_key_values=past_key_values, use_cache=use_cache,
            output_hidden_states=output_hidden_states, output_attentions=output_attentions,
            encoder_hidden_states=encoder_hidden_states,
            encoder_attention_mask=encoder_attention_mask, edges=edges,
        )  # fmt: skip
        encoded = self.encode(inputs)
        return LongbirdModelOutput(
            last_hidden_state=encoded.pad(encoded.x),
            pooler_output=None if self.pooler is None else self.pool(encoded.first),
            global_hidden_state=encoded.global_hidden_state,
            past_key_values=encoded.past_key_values,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
            global_attentions=encoded.global_attentions,
            cross_attentions=encoded.cross_attentions,
        )

    def pool(self, first: Tensor) -> Tensor:
        """The first token of every document, [rows, w], through a layer of its own."""
        assert self.pooler is not None
        return torch.tanh(self.pooler(first))

    def encode(self, inputs: Inputs) -> Encoded:
        """Runs packed documents through the layers."""
        config: Any = self.config
        if config.graph is not self.graph and config.graph != self.graph:
            raise InvalidValueError(
                "config.graph was changed, and the model has its own: load it with another graph, "
                "from_pretrained(folder, graph=...)"
            )
        rows, n = inputs.shape(config.hidden_size)
        cache = self._cache(inputs, rows)
        mask = inputs.attention_mask
        if cache is not None and mask is not None:
            mask = of_new_tokens(mask, n, cache.get_seq_length())
        documents = Documents.of(rows, n, mask)
        context = self._context(inputs, documents, cache)

        x = self.embeddings(
            documents, cache, inputs.input_ids, inputs.inputs_embeds, inputs.token_type_ids,
            inputs.position_ids,
        )  # fmt: skip
        text = x.shape[0]
        if context.added is not None:
            x = torch.cat([x, self._added_tokens(context.added)])
        wanted = default(inputs.output_hidden_states, config.output_hidden_states)
        hidden = [x[:text]] if wanted else None
        for layer in self.layers:
            x = layer(x, context, *context.carried)
            if hidden is not None:
                hidden.append(x[:text])
        if config.norm == "pre":
            x = self.final_norm(x)
            if hidden is not None:
                hidden[-1] = x[:text]
        return Encoded(context, x[:text], x[text:], hidden)

    @property
    def layer_graphs(self) -> list[Graph]:
        """The graph of every layer: the same objects each time, so that caches compare at once."""
        return [layer.attention.graph for layer in self.layers]  # type: ignore[misc]

    def _context(self, inputs: Inputs, documents: Documents, cache: Any) -> Context:
        """What the layers are told, from the inputs and the configuration."""
        config: Any = self.config
        bias = None
        if config.relative_buckets:
            bias = relative_table(self.relative_bias.weight, config.relative_max_distance)
        return Context(
            documents,
            impl=config.attention_impl,
            relative_bias=bias,
            global_tokens=self._global_tokens(inputs, documents),
            edges=None
            if inputs.edges is None
            else document_edges(inputs.edges, inputs.ranks(), config.causal),
            added=self._added(inputs, documents),
            memory=self._memory(inputs, documents, cache),
            cache=cache,
            record=Record()
            if default(inputs.output_attentions, config.output_attentions)
            else None,
        )

    def _global_tokens(self, inputs: Inputs, documents: Documents) -> Tensor | None:
        """Bool [t]: the tokens that see and are seen by all; None if there are none."""
        marks, config, exporting = (
            inputs.global_attention_mask,
            self.config,
            torch.compiler.is_exporting(),
        )
        if marks is None:
            return None
        if exporting and config.global_projections:
            raise InvalidValueError(
                "a model with global_projections cannot be exported with global tokens (as "
                "classification makes its first one)"
            )
        if config.causal:
            raise InvalidValueError(
                "a token of global_attention_mask sees what follows it, which a causal model "
                "must not; put GlobalTokens(...) into its graph instead"
            )
        if not exporting:
            check_marks("global_attention_mask", marks)
        marked = documents.pack(marks, "global_attention_mask") != 0
        if documents.lengths is not None:
            marked = marked & documents.present(marked)
        return marked if exporting or bool(marked.any()) else None

    def _cache(self, inputs: Inputs, rows: int) -> RollingCache | None:
        """The cache that is given, or a new one where one is wanted."""
        given, use_cache = inputs.past_key_values, inputs.use_cache
        if not self.config.causal:
            if given is not None:
                raise InvalidValueError(
                    "past_key_values needs a causal model (LongbirdForCausalLM)"
                )
            return None
        if given is not None and not isinstance(given, Cache):
            raise InvalidTypeError(
                "past_key_values must be the RollingCache that a call with use_cache=True "
                f"returned, received {type(given).__name__}"
            )
        if isinstance(given, EncoderDecoderCache):
            given = given.self_attention_cache
        if inputs.edges is not None:
            if use_cache or (given is not None and given.get_seq_length() > 0):
                raise InvalidValueError(
                    "edges join tokens wherever they are, which a rolling cache has forgotten: "
                    "use use_cache=False"
                )
            return None
        if isinstance(given, RollingCache):
            if [state.graph for state in given.layers] != self.layer_graphs:
                raise InvalidValueError(
                    "past_key_values is the cache of a model with other graphs"
                )
            kept = next((x.keys for x in given.layers if x.keys is not None), None)
            heads, width = self.config.num_attention_heads, self.config.hidden_size
            if kept is not None and kept.shape[1::2] != (heads, width // heads):
                raise InvalidValueError(
                    "past_key_values must be the cache of this model, with "
                    f"{heads} heads of {width // heads} numbers; received {kept.shape[1]} heads "
                    f"of {kept.shape[3]}"
                )
            if given.lengths is not None and len(given.lengths) != rows:
                raise InvalidValueError(
                    f"past_key_values is the cache of {len(given.lengths)} documents, and the "
                    f"batch has {rows}; choose rows with cache.batch_select_indices(...), or "
                    "start without it"
                )
            if self.training and self.is_gradient_checkpointing:
                raise InvalidValueError(
                    "gradient checkpointing runs every layer twice, which would put its tokens "
                    "into past_key_values twice: leave the cache out, or call "
                    "gradient_checkpointing_disable()"
                )
            return given
        if given is not None and given.get_seq_length() > 0:
            raise InvalidTypeError(
                "past_key_values must be the RollingCache that a call with use_cache=True "
                f"returned, received {type(given).__name__} with tokens in it"
            )
        unasked = self.config.use_cache and not torch.compiler.is_exporting()
        if self.training or not default(use_cache, unasked):
            return None
        try:
            return RollingCache(self.layer_graphs)
        except ValueError:
            # A graph that cannot be streamed has no cache, unless one is insisted upon.
            if use_cache:
                raise
            return None

    def _memory(self, inputs: Inputs, documents: Documents, cache: Any) -> Memory | None:
        """What an encoder read, if it is given."""
        states, mask, config = (
            inputs.encoder_hidden_states,
            inputs.encoder_attention_mask,
            self.config,
        )
        if states is None:
            if mask is not None:
                raise InvalidValueError("encoder_attention_mask needs encoder_hidden_states")
            return None
        if not config.add_cross_attention:
            raise InvalidValueError(
                "encoder_hidden_states need a decoder with cross attention: "
                "LongbirdConfig(is_decoder=True, add_cross_attention=True)"
            )
        check_memory(states, mask, documents.rows, config.hidden_size, inputs.past_key_values)
        states = as_floats("encoder_hidden_states", states, self.embeddings.tokens.weight.dtype)
        if mask is not None:
            mask = mask[:, None, None] != 0  # [rows, 1, 1, m]
        if cache is None:
            return Memory(states, mask)
        pair = inputs.past_key_values
        if not isinstance(pair, EncoderDecoderCache) or pair.self_attention_cache is not cache:
            pair = EncoderDecoderCache(cache, DynamicCache())
        return Memory(states, mask, pair)

    def _added(self, inputs: Inputs, documents: Documents) -> AddedTokens | None:
        """The global tokens of BigBird-ETC: one for each segment, or all that there are."""
        most, segments = self.config.num_global_tokens, inputs.segment_ids
        if segments is not None and not most:
            raise InvalidValueError("segment_ids need added global tokens: set num_global_tokens")
        if not most:
            return None
        if segments is not None:
            check_integers("segment_ids", segments)
            segments = documents.pack(segments, "segment_ids")
        if torch.compiler.is_exporting():
            return self._added_in_export(most, segments, documents)
        counts = [most] * documents.rows
        if segments is not None:
            if readable(segments) and bool(((segments >= most) | (segments < -1)).any()):
                raise InvalidValueError(
                    f"segment_ids must be between -1 (no segment) and num_global_tokens - 1 = "
                    f"{most - 1}, received {int(segments.min())} to {int(segments.max())}; "
                    f"longbird.segments(..., most={most}) merges neighbours"
                )
            counts = [
                int(segments[start:end].max()) + 1 if end > start else 0
                for start, end in documents.bounds
            ]
            counts = [max(count, 1) for count in counts]
        return AddedTokens(sum(counts), tuple(counts), segments=segments)

    def _added_in_export(
        self, most: int, segments: Tensor | None, documents: Documents
    ) -> AddedTokens:
        """Every document has all of them, those beyond its segments hidden."""
        total = documents.rows * most
        if segments is None:
            return AddedTokens(total, None)
        if documents.lengths is not None:
            segments = torch.where(documents.present(segments), segments, -1)
        count = segments.unflatten(0, (documents.rows, documents.n)).amax(1) + 1
        present = torch.arange(most, device=segments.device) < count.clamp(min=1)[:, None]
        return AddedTokens(total, None, present, segments)

    def _added_tokens(self, added: AddedTokens) -> Tensor:
        """The embeddings of the added global tokens, [g, w]."""
        table = self.global_embeddings
        if added.counts is None:
            every = torch.arange(table.num_embeddings, device=self.device)
            ids = every.repeat(added.total // table.num_embeddings)
        else:
            numbers = [i for count in added.counts for i in range(count)]
            ids = torch.tensor(numbers, dtype=torch.int64, device=self.device)
        return self.embeddings.finish(table(ids))


def of_new_tokens(mask: Tensor, n: int, past: int) -> Tensor:
    """The attention mask [rows, n] of new tokens, given alone or after those in the cache."""
    if past == 0:
        return mask
    if mask.ndim != 2 or mask.shape[1] not in (n, past + n):
        raise InvalidValueError(
            f"attention_mask must be of shape [batch, {n}] for the new tokens, or [batch, "
            f"{past + n}] with those in past_key_values, received {list(mask.shape)}"
        )
    return mask[:, mask.shape[1] - n :]


def check_memory(
    states: Tensor, mask: Tensor | None, rows: int, width: int, cache: Any = None
) -> None:
    """Raises unless what an encoder read, [rows, m, w], fits its mask, [rows, m], and cache."""
    check_tensor("encoder_hidden_states", states)
    check_tensor("the attention mask of the encoder", mask)
    if states.ndim != 3 or states.shape[0] != rows or states.shape[2] != width:
        raise InvalidValueError(
            f"encoder_hidden_states must be of shape [batch, m, width] with batch {rows} and "
            f"width {width}, received {list(states.shape)}"
        )
    if mask is not None and mask.shape != states.shape[:2]:
        raise InvalidValueError(
            "the attention mask of the encoder must be of the shape of what it read, "
            f"{list(states.shape[:2])}, received {list(mask.shape)}"
        )
    if mask is not None:
        check_device("the attention mask of the encoder", mask, "what it read", states.device)
    if mask is not None and readable(mask):
        check_marks("the attention mask of the encoder", mask)
    if isinstance(cache, EncoderDecoderCache) and cache.is_updated.get(0):
        kept = cache.cross_attention_cache.get_seq_length()
        if kept != states.shape[1]:
            raise InvalidValueError(
                f"past_key_values has {kept} tokens that an encoder read, and "
                f"encoder_hidden_states has {states.shape[1]}: these are other documents"
            )


def default(value: bool | None, otherwise: Any) -> bool:
    """The value, or what the configuration says where there is none."""
    return bool(otherwise if value is None else value)
