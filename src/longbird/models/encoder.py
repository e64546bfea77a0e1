"""The encoder: packed documents, any graph; BigBird, BigBird-ETC, Longformer, BERT in one."""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from transformers.utils.generic import ModelOutput, can_return_tuple

from longbird.graph import Graph
from longbird.models.config import LongbirdConfig
from longbird.models.outputs import LongbirdModelOutput
from longbird.models.pretrained import LongbirdPreTrainedModel
from longbird.models.rolling import RollingCache
from longbird.nn.attention import SelfAttention
from longbird.nn.etc import EtcAttention
from longbird.nn.layers import Embeddings, Layer, relative_table
from longbird.nn.packing import Documents, check_marks

Output = TypeVar("Output", bound=ModelOutput)


@dataclass(eq=False)
class Encoded:
    """Documents after the encoder."""

    documents: Documents
    x: Tensor
    """[t, w]: the text tokens of all documents."""
    added: Tensor
    """[g, w]: the added global tokens of all documents (BigBird-ETC)."""
    hidden: list[Tensor] | None
    """[t, w] before the first and after every layer, if asked for."""
    note: Any = None
    """What a head has to remember of its inputs."""

    @property
    def first(self) -> Tensor:
        """What stands for a whole document, [rows, w]: its first added global token, or token."""
        if not self.documents.added:
            return self.documents.first(self.x)
        counts = torch.tensor(self.documents.added, device=self.added.device)
        return self.added[counts.cumsum(0) - counts]

    @property
    def global_hidden_state(self) -> Tensor | None:
        """[rows, most global tokens of a document, w]."""
        if not self.documents.added:
            return None
        parts = self.added.split(list(self.documents.added))
        return nn.utils.rnn.pad_sequence(list(parts), batch_first=True)

    def pad(self, x: Tensor, value: float = 0.0) -> Tensor:
        """[t, ...] to [rows, n, ...]."""
        return self.documents.pad(x, value)

    def output(self, cls: type[Output], **fields: Any) -> Output:
        """An output with these fields, and what was asked for of hidden states and attentions."""
        weights = self.documents.weights
        return cls(
            **fields,
            hidden_states=None if self.hidden is None else tuple(map(self.pad, self.hidden)),
            attentions=None if weights is None else tuple(weights[i] for i in sorted(weights)),
        )


INPUTS = (
    "input_ids",
    "attention_mask",
    "token_type_ids",
    "position_ids",
    "inputs_embeds",
    "global_attention_mask",
    "segment_ids",
    "past_key_values",
    "use_cache",
    "output_hidden_states",
    "output_attentions",
)
"""What every encoder takes, in this order; `LongbirdModel.forward` says what each is."""


def head(forward: Callable[..., ModelOutput]) -> Callable[..., Any]:
    """Makes `forward(self, encoded, own inputs)` a forward pass that takes documents.

    `INPUTS` come first, then the inputs of the head; all of them stand in the signature, where
    the `Trainer` looks for the names of columns. A name that is neither is an error.
    """
    signature = inspect.signature(forward)
    self_parameter, _, *own = signature.parameters.values()
    names = INPUTS + tuple(p.name for p in own if p.kind is not p.VAR_KEYWORD)
    allowed = {*names, "num_items_in_batch", "shift_labels"}

    @functools.wraps(forward)
    @can_return_tuple
    def with_documents(self: Any, *args: Any, **kwargs: Any) -> ModelOutput:
        if len(args) > len(names) or any(name in kwargs for name in names[: len(args)]):
            raise TypeError(f"{type(self).__name__} was given an input twice, or too many of them")
        kwargs.update(zip(names, args, strict=False))
        for name in kwargs:
            if name not in allowed:
                raise TypeError(
                    f"{type(self).__name__} has no input named {name}; its inputs are "
                    f"{', '.join(names)} and return_dict"
                )
        inputs = {name: kwargs.pop(name) for name in INPUTS if name in kwargs}
        return forward(self, self.encoded(inputs), **kwargs)

    taken = [self_parameter.replace(name=name, default=None) for name in INPUTS]
    with_documents.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[self_parameter, *taken, *own]
    )
    return with_documents


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
        self.layers = nn.ModuleList(
            Layer(config, attention(config, graph, layer), config.intermediate_size)
            for layer, graph in enumerate(config.layer_graphs)
        )
        if config.norm == "pre":
            self.final_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.pooler = nn.Linear(width, width) if add_pooling_layer else None
        self.post_init()

    def encode(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        segment_ids: Tensor | None = None,
        past_key_values: RollingCache | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> Encoded:
        """Runs packed documents through the layers; the arguments are those of `forward`."""
        config: Any = self.config
        given = input_ids if inputs_embeds is None else inputs_embeds
        axes = 2 if inputs_embeds is None else 3
        if given is None or given.ndim != axes or (axes == 3 and input_ids is not None):
            raise ValueError("give either input_ids [batch, n] or inputs_embeds [batch, n, width]")
        if config.graph is not self.graph:
            raise ValueError(
                "config.graph was changed, and the model has its own: load it with another graph, "
                "from_pretrained(folder, graph=...)"
            )
        rows, n = given.shape[:2]
        cache = self._cache(past_key_values, use_cache)
        if cache is not None and attention_mask is not None:
            attention_mask = attention_mask[:, -n:]  # of the new tokens
        documents = Documents.of(rows, n, attention_mask)
        documents.impl, documents.cache = config.attention_impl, cache
        if default(output_attentions, config.output_attentions):
            if config.num_global_tokens:
                raise ValueError("BigBird-ETC gives no attentions; ask for hidden states")
            documents.weights = {}
        if segment_ids is not None and not config.num_global_tokens:
            raise ValueError("segment_ids need added global tokens: set num_global_tokens")
        exporting = torch.compiler.is_exporting()
        if exporting and config.num_global_tokens and attention_mask is not None:
            raise ValueError("BigBird-ETC is exported without attention_mask")
        if global_attention_mask is not None:
            if exporting and config.global_projections:
                raise ValueError(
                    "a model with global_projections cannot be exported with global tokens (as "
                    "classification makes its first one)"
                )
            if config.causal:
                raise ValueError(
                    "a token of global_attention_mask sees what follows it, which a causal model "
                    "must not; put GlobalTokens(...) into its graph instead"
                )
            if not exporting:
                check_marks("global_attention_mask", global_attention_mask)
            marked = documents.pack(global_attention_mask) != 0
            if documents.lengths is not None:
                marked = marked & documents.present(marked)
            documents.global_tokens = marked if exporting or bool(marked.any()) else None
        if config.relative_buckets:
            table = relative_table(self.relative_bias.weight, config.relative_max_distance)
            documents.relative_bias = table

        x = self.embeddings(documents, input_ids, inputs_embeds, token_type_ids, position_ids)
        if config.num_global_tokens:
            x = torch.cat([x, self._added_tokens(documents, segment_ids)])
        text = x.shape[0] - sum(documents.added)
        wanted = default(output_hidden_states, config.output_hidden_states)
        hidden = [x[:text]] if wanted else None
        for layer in self.layers:
            x = layer(x, documents)
            if hidden is not None:
                hidden.append(x[:text])
        if config.norm == "pre":
            x = self.final_norm(x)
            if hidden is not None:
                hidden[-1] = x[:text]
        return Encoded(documents, x[:text], x[text:], hidden)

    @head
    def forward(self, encoded: Encoded) -> LongbirdModelOutput:
        """Encodes a batch of documents.

        Args:
            encoded: Made from the inputs: input_ids [batch, n] or inputs_embeds [batch, n, width];
                attention_mask [batch, n], 0 for padding, which is not computed; token_type_ids;
                position_ids; global_attention_mask [batch, n], 1 for tokens that see and are seen
                by all; segment_ids [batch, n] for BigBird-ETC, -1 for no segment; past_key_values
                and use_cache for causal models; output_hidden_states, output_attentions and
                return_dict.

        Returns:
            A `LongbirdModelOutput`.
        """
        pooled = None if self.pooler is None else torch.tanh(self.pooler(encoded.first))
        return encoded.output(
            LongbirdModelOutput,
            last_hidden_state=encoded.pad(encoded.x),
            pooler_output=pooled,
            global_hidden_state=encoded.global_hidden_state,
            past_key_values=encoded.documents.cache,
        )

    def encoded(self, inputs: dict[str, Any]) -> Encoded:
        """What `head` asks for: the documents of these inputs after the encoder."""
        return self.encode(**inputs)

    @property
    def layer_graphs(self) -> list[Graph]:
        """The graph of every layer: the same objects each time, so that caches compare at once."""
        return [layer.attention.graph for layer in self.layers]  # type: ignore[misc]

    def _cache(self, given: Any, use_cache: bool | None) -> RollingCache | None:
        if not self.config.causal:
            if given is not None:
                raise ValueError("past_key_values needs a causal model (LongbirdForCausalLM)")
            return None
        if isinstance(given, RollingCache):
            if [state.graph for state in given.layers] != self.layer_graphs:
                raise ValueError("past_key_values is the cache of a model with other graphs")
            return given
        if given is not None and given.get_seq_length() > 0:
            raise TypeError(
                f"past_key_values must be a RollingCache, received {type(given).__name__}"
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

    def _added_tokens(self, documents: Documents, segment_ids: Tensor | None) -> Tensor:
        """The embeddings of the global tokens of BigBird-ETC, [g, w]."""
        most = self.global_embeddings.num_embeddings
        counts = [most] * documents.rows
        if segment_ids is not None:
            segments = documents.segments = documents.pack(segment_ids)
            if bool((segments >= most).any()) or bool((segments < -1).any()):
                raise ValueError(
                    f"segment_ids must be between -1 (no segment) and num_global_tokens - 1 = "
                    f"{most - 1}, received {int(segments.min())} to {int(segments.max())}"
                )
            counts = [
                int(segments[start:end].max()) + 1 if end > start else 0
                for start, end in documents.bounds
            ]
        documents.added = tuple(max(count, 1) for count in counts)
        ids = torch.cat([torch.arange(count, device=self.device) for count in documents.added])
        return self.embeddings.finish(self.global_embeddings(ids))


def default(value: bool | None, otherwise: Any) -> bool:
    """The value, or what the configuration says where there is none."""
    return bool(otherwise if value is None else value)
