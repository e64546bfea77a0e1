"""The encoder: one class for BigBird, BigBird-ETC, Longformer, BERT, RoBERTa and MPNet.

`LongbirdModel.encode` embeds packed documents, runs them through the layers and returns `Encoded`,
from which `LongbirdModel` and the heads take what they need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from longbird.core.graph import Graph
from longbird.errors import InvalidValueError
from longbird.models.config import LongbirdConfig
from longbird.models.forward_context import either, forward_context
from longbird.models.inputs import Inputs, takes
from longbird.models.layers.attention import SelfAttention
from longbird.models.layers.context import AddedTokens, Context
from longbird.models.layers.cross_attention import CrossAttention
from longbird.models.layers.embeddings import Embeddings
from longbird.models.layers.etc_attention import EtcAttention
from longbird.models.layers.layer import CrossLayer, Layer
from longbird.models.layers.packing import Documents
from longbird.models.outputs import Floats, LongbirdModelOutput
from longbird.models.pretrained import LongbirdPreTrainedModel


@dataclass(frozen=True, eq=False)
class Encoded:
    """Documents after the encoder."""

    context: Context
    x: Tensor
    """[t, w]: the tokens of all documents."""
    added: Tensor
    """[g, w]: the added global tokens of all documents (BigBird-ETC)."""
    hidden: list[Tensor] | None
    """[t, w] before the first and after every layer, if the caller asked for them."""

    @property
    def documents(self) -> Documents:
        """The places of the tokens in the batch."""
        return self.context.documents

    def pad(self, x: Tensor, value: float = 0.0) -> Floats:
        """Pad values of tokens, from [t, ...] to [rows, n, ...]."""
        return self.documents.pad(x, value)

    @property
    def first(self) -> Tensor:
        """[rows, w]: the first added global token of every document, or its first token.

        A document that has neither gets zeros.
        """
        if self.context.added is None:
            return self.documents.first(self.x)
        return self.context.added.first(self.added, self.documents.rows)

    def first_of_each(self) -> Tensor:
        """Return `first` for heads that judge documents, and raise if a document has no tokens."""
        if self.context.added is None:
            self.documents.check_tokens()
        return self.first

    @property
    def global_hidden_state(self) -> Tensor | None:
        """[rows, most global tokens of a document, w]: the added global tokens."""
        if self.context.added is None:
            return None
        return self.context.added.rows(self.added, self.documents.rows)

    @property
    def past_key_values(self) -> Any:
        """The cache including these tokens, with that of cross attention if there is one."""
        memory = self.context.memory
        return self.context.cache if memory is None or memory.cache is None else memory.cache

    @property
    def recorded(self) -> dict[str, Any]:
        """What every layer recorded, as fields of the outputs of encoders with a head."""
        record = self.context.record
        return {
            "hidden_states": None if self.hidden is None else tuple(map(self.pad, self.hidden)),
            "attentions": None if record is None else _by_layer(record.weights),
            "global_attentions": None if record is None else _by_layer(record.of_globals) or None,
        }

    @property
    def cross_attentions(self) -> tuple[Floats, ...] | None:
        """[rows, h, n, m] of every layer: the weights of tokens over the states of an encoder."""
        record = self.context.record
        return None if record is None else _by_layer(record.of_memory) or None


def _by_layer(weights: Mapping[int, Any]) -> tuple[Any, ...]:
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
        if config.add_cross_attention and not config.causal:
            raise InvalidValueError(
                "add_cross_attention=True needs is_decoder=True: an encoder has no other encoder "
                "to look at"
            )
        if add_pooling_layer is None:
            add_pooling_layer = not config.is_encoder_decoder
        width, self.graph = config.hidden_size, config.graph
        self.embeddings = Embeddings(config)
        if config.num_global_tokens:
            self.global_embeddings = nn.Embedding(config.num_global_tokens, width)
        if config.relative_buckets:
            self.relative_bias = nn.Embedding(config.relative_buckets, config.num_attention_heads)
        self.layers = nn.ModuleList(
            _layer(config, number, graph) for number, graph in enumerate(config.layer_graphs)
        )
        if config.norm == "pre":
            self.final_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.pooler = nn.Linear(width, width) if add_pooling_layer else None
        self.post_init()

    @takes(Inputs)
    def forward(self, inputs: Inputs) -> LongbirdModelOutput:
        """Encode a batch of documents."""
        encoded = self.encode(inputs)
        return LongbirdModelOutput(
            last_hidden_state=encoded.pad(encoded.x),
            pooler_output=None if self.pooler is None else self.pool(encoded.first),
            global_hidden_state=encoded.global_hidden_state,
            past_key_values=encoded.past_key_values,
            cross_attentions=encoded.cross_attentions,
            **encoded.recorded,
        )

    def pool(self, first: Tensor) -> Tensor:
        """Apply the pooling layer to the first token of every document, [rows, w]."""
        assert self.pooler is not None
        return torch.tanh(self.pooler(first))

    def encode(self, inputs: Inputs) -> Encoded:
        """Run documents through the layers; the result is packed."""
        config = self.config
        if config.graph is not self.graph and config.graph != self.graph:
            raise InvalidValueError(
                "config.graph was changed after the model was built: load the model with another "
                "graph, from_pretrained(folder, graph=...)"
            )
        context = forward_context(self, inputs)
        x = self.embeddings(
            context.documents, context.cache, inputs.input_ids, inputs.inputs_embeds,
            inputs.token_type_ids, inputs.position_ids,
        )  # fmt: skip
        text = x.shape[0]
        if context.added is not None:
            x = torch.cat([x, self._embed_added(context.added)])
        wanted = either(inputs.output_hidden_states, config.output_hidden_states)
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
        """The graph of every layer: the same objects each time, so that caches compare quickly."""
        return [cast(SelfAttention, cast(Layer, each).attention).graph for each in self.layers]

    def _embed_added(self, added: AddedTokens) -> Tensor:
        """The embeddings of the added global tokens, [g, w]."""
        table = self.global_embeddings
        if added.counts is None:
            every = torch.arange(table.num_embeddings, device=self.device)
            ids = every.repeat(added.total // table.num_embeddings)
        else:
            numbers = [i for count in added.counts for i in range(count)]
            ids = torch.tensor(numbers, dtype=torch.int64, device=self.device)
        return self.embeddings.finish(table(ids))


def _layer(config: LongbirdConfig, number: int, graph: Graph) -> Layer:
    kind = EtcAttention if config.num_global_tokens else SelfAttention
    attention, inner = kind(config, graph, number), config.intermediate_size
    if not config.add_cross_attention:
        return Layer(config, attention, inner)
    heads, bias = config.num_attention_heads, config.attention_output_bias
    return CrossLayer(config, attention, inner, CrossAttention(config, number, heads, bias))
