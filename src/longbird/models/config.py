"""The configurations of both architectures: encoders or causal decoders, and encoder-decoders."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import field, fields
from functools import cache
from typing import Any

from transformers import PreTrainedConfig
from transformers.utils import logging

from longbird.core.graph import Causal, Full, Graph, as_graph, bigbird
from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.files.paths import check_path
from longbird.models.field_names import KEPT, LOADING, nearest
from longbird.models.field_rules import RELATIONS, RULES, SAVED_RULES, label_names, shown

logger = logging.get_logger(__name__)


def _past_of(graph: Graph) -> Graph:
    """Restrict a graph to earlier tokens."""
    return Causal() if graph in (Full(), Causal()) else graph & Causal()


TOKEN_FIELDS = (
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
    "sep_token_id",
    "decoder_start_token_id",
)


LABEL_FIELDS = {"num_labels", "id2label", "label2id"}
"""Fields about all labels: if a caller gives one of them, those of a file do not count."""


@cache
def _field_names(cls: type[PreTrainedConfig]) -> frozenset[str]:
    return frozenset(each.name for each in fields(cls))


class LongbirdConfig(PreTrainedConfig):
    """Configuration of an encoder, or of a causal decoder, over any graph.

    The defaults are those of BigBird-base. The type and the range of every field are checked when
    it is set, whether it comes from a call or from `config.json`.

    Args:
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Width of the hidden states, a multiple of `num_attention_heads`.
        num_hidden_layers: Number of layers.
        num_attention_heads: Number of attention heads in each layer.
        intermediate_size: Width inside the feed-forward blocks.
        hidden_act: Activation of the feed-forward blocks, by its name in transformers.
        hidden_dropout_prob: Dropout of embeddings and of the output of each block.
        attention_probs_dropout_prob: Dropout of attention probabilities.
        activation_dropout: Dropout inside the feed-forward blocks.
        max_position_embeddings: Number of rows of the position table: the length of the longest
            document, plus the rows up to the padding id for "padding-aware" positions.
        type_vocab_size: Number of token types (`token_type_ids`); 0 for none.
        initializer_range: Standard deviation of new weights.
        layer_norm_eps: Number that norms add to the variance.
        pad_token_id: Token of padding; None for none.
        bos_token_id: Token at the beginning of a text.
        eos_token_id: Token at the end of a text, or a list of such tokens.
        sep_token_id: Token between a question and its context. The default is BigBird's token 66,
            or None if the vocabulary does not have it.
        tie_word_embeddings: Whether the vocabularies of input and output share their weights.
        use_cache: Whether causal models return the cache from which the next step continues.
        is_decoder: Whether the model is causal; `LongbirdForCausalLM` sets it.
        graph: The graph that decides which token sees which: a graph, its JSON, its expression as
            text, or a list with a graph for each layer. A single graph is reseeded with the number
            of the layer. The default is `longbird.bigbird()`.
        norm: Place of the norm of a block: "post" (after it, BERT) or "pre" (before it, Pegasus).
        positions: Position embeddings: "absolute" (from 0), "padding-aware" (RoBERTa: from
            pad_token_id + 1) or "none".
        position_padding_id: Token that has no position if positions are "padding-aware";
            pad_token_id by default.
        relative_buckets: Number of buckets of a bias by distance, which all layers share (MPNet,
            T5); 0 for none.
        relative_max_distance: Distance beyond which all keys share a bucket.
        embedding_norm: "before_dropout" (BERT), "after_dropout" (BigBird) or "none".
        rescale_embeddings: Whether token embeddings are multiplied by sqrt(hidden_size).
        attention_bias: Whether queries, keys and values have a bias.
        attention_output_bias: Whether the output of attention has a bias.
        global_projections: Whether global tokens, given by `global_attention_mask`, attend to all
            tokens with projections of their own (Longformer).
        num_global_tokens: Number of learned global tokens that are added to every document
            (BigBird-ETC), or their maximum if `segment_ids` are given; 0 for none.
        global_max_distance: Distance beyond which global tokens share a label (BigBird-ETC).
        add_cross_attention: Whether a causal decoder also attends to the states of an encoder,
            which are given as `encoder_hidden_states`.
        attention_impl: Implementation of attention: "auto", or the name of one.
        quantize: "int8" for layers with int8 weights, for inference only; `longbird.quantize` and
            `from_pretrained(folder, quantize="int8")` set it.
        classifier_activation: Activation between the two layers of a classification head.
        classifier_dropout: Dropout of heads; `hidden_dropout_prob` by default.
        lm_transform: Whether a language-model head has a layer before the vocabulary.
        lm_activation: Activation of that layer; `hidden_act` by default.
        qa_feed_forward: Whether question answering has a feed-forward block before the span
            outputs (BigBird).
        qa_hides_question: Whether answers cannot start or end in the question (BigBird).
        num_answer_types: Number of types of answers (such as span, yes, no) in question answering;
            0 for none.
        supporting_sentences: Whether question answering has an output for each sentence.
        pooling: Pooling of embeddings: "mean", "first" or "globals".
        sparse_prediction: Whether language models with labels compute logits of labelled tokens
            only.
        num_labels: Number of labels of a classification head; not stored, but counted in
            `id2label`.
        id2label: The label of each number from 0 on.
        label2id: The number of each label; it follows from `id2label`, and the other way round.
        problem_type: Kind of classification of documents: "regression",
            "single_label_classification" or "multi_label_classification"; by default it is decided
            by the labels that are given.
        output_hidden_states: Whether to return the hidden states of all layers.
        output_attentions: Whether to return the attention weights of all layers.
        return_dict: Whether to return named outputs rather than a tuple.
        dtype: Type of the weights, which transformers stores when it saves a model.
        is_encoder_decoder: True for `LongbirdSeq2SeqConfig` only.
        chunk_size_feed_forward: Without effect: feed-forward blocks run in pieces when it helps.
        architectures: Name of the class that was saved, which transformers stores.
        transformers_version: Version of transformers that saved the model.

    Examples:
        >>> import longbird as lb
        >>> config = lb.LongbirdConfig(num_hidden_layers=2, graph=lb.longformer(window=256))
        >>> config.layer_graphs[1]
        Window(radius=128, dilation=1)
    """

    model_type = "longbird"
    # The Trainer gathers tensors, which these are not.
    keys_to_ignore_at_inference = ["past_key_values", "attentions"]  # noqa: RUF012

    vocab_size: int = 50358
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float | int = 0.1
    attention_probs_dropout_prob: float | int = 0.1
    activation_dropout: float | int = 0.0
    max_position_embeddings: int = 4096
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    sep_token_id: int | None = 66
    tie_word_embeddings: bool = True
    use_cache: bool = True
    is_decoder: bool = False

    graph: Any = field(default_factory=bigbird)
    norm: str = "post"
    positions: str = "absolute"
    position_padding_id: int | None = None
    relative_buckets: int = 0
    relative_max_distance: int = 128
    embedding_norm: str = "before_dropout"
    rescale_embeddings: bool = False
    attention_bias: bool = True
    attention_output_bias: bool = True
    global_projections: bool = False
    num_global_tokens: int = 0
    global_max_distance: int = 12
    add_cross_attention: bool = False
    attention_impl: str = "auto"
    quantize: str | None = None

    classifier_activation: str = "tanh"
    classifier_dropout: float | int | None = None
    lm_transform: bool = True
    lm_activation: str | None = None
    qa_feed_forward: bool = False
    qa_hides_question: bool = False
    num_answer_types: int = 0
    supporting_sentences: bool = False
    pooling: str = "mean"
    sparse_prediction: bool = False

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field if its rule accepts the value."""
        if name in RULES:
            RULES[name].check(name, value)
        if name == "graph":
            many = isinstance(value, (list, tuple))
            value = [as_graph(graph) for graph in value] if many else as_graph(value)
        super().__setattr__(name, value)

    def __post_init__(self, **kwargs: Any) -> None:
        """Complete the names of labels, and check the relations between fields."""
        saved = "model_type" in kwargs
        if saved and self.id2label is not None:
            self.label2id = None  # a file may contradict itself: id2label counts
        kwargs = self._known(kwargs)
        rules = {**SAVED_RULES, **RULES} if saved else RULES
        for name in rules.keys() & kwargs.keys():
            rules[name].check(name, kwargs[name])
        self.id2label, self.label2id = label_names(
            self.id2label, self.label2id, kwargs.get("num_labels")
        )
        super().__post_init__(**kwargs)
        for fits, expected, names in RELATIONS:
            if not fits(self):
                received = ", ".join(f"{name}={shown(getattr(self, name))}" for name in names)
                raise InvalidValueError(f"{expected}; received {received}")
        for name in TOKEN_FIELDS:
            self._check_token(name)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        """Load the configuration of a folder or a model on the hub, and change these fields."""
        check_path(pretrained_model_name_or_path)
        unknown = cls._unknown_options(kwargs)
        if unknown and not kwargs.get("return_unused_kwargs"):
            raise InvalidTypeError(cls.has_no(unknown))
        return super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        """Build a configuration from a dictionary, and change these fields.

        The fields are changed before anything is checked; transformers would set them afterwards.
        """
        own = _field_names(cls) - {"dtype"}
        given = {name: kwargs.pop(name) for name in (own | {"model_type"}) & kwargs.keys()}
        if kwargs.get("num_labels", 0) is None:  # not given
            del kwargs["num_labels"]
        if LABEL_FIELDS & (given.keys() | kwargs.keys()):  # those of the file do not count
            named = label_names(
                given.get("id2label"), given.get("label2id"), kwargs.get("num_labels")
            )
            given["id2label"], given["label2id"] = named
        for name in ("dtype", "torch_dtype"):
            if kwargs.get(name) == "auto":  # about loading, and not a type
                del kwargs[name]
        # transformers would overwrite methods of these names. AutoTokenizer passes its own options
        # too, so that only names similar to a field are reported.
        unused = {name: kwargs.pop(name) for name in cls._unknown_options(kwargs)}
        near = [name for name in unused if nearest(name, own, 0.8)]
        if near and not kwargs.get("return_unused_kwargs"):
            logger.warning(f"{cls.has_no(near)} It is not used.")
        saved = {"model_type": cls.model_type, **config_dict, **given}
        made: Any = super().from_dict(saved, **kwargs)
        return (made[0], {**made[1], **unused}) if isinstance(made, tuple) else made

    @classmethod
    def unknown_names(cls, names: Iterable[str]) -> list[str]:
        """Return the names that are neither fields nor stored by other libraries."""
        known = _field_names(cls) | KEPT
        return [name for name in names if name not in known]

    @classmethod
    def _unknown_options(cls, names: Iterable[str]) -> list[str]:
        return [name for name in cls.unknown_names(names) if name not in LOADING]

    @classmethod
    def has_no(cls, names: Iterable[str]) -> str:
        """Return a message about names that are not fields, with similar fields."""
        fields = _field_names(cls) | {"num_labels"}  # which is counted rather than kept
        texts = [f"{name}{nearest(name, fields)}" for name in names]
        return f"{cls.__name__} has no field {', '.join(texts)}."

    def _check_token(self, name: str) -> None:
        """Raise for a token beyond the vocabulary; a default beyond it becomes None."""
        value = getattr(self, name, None)
        default = next((each.default for each in fields(self) if each.name == name), None)
        tokens = value if isinstance(value, list) else [value]
        embedded = name == "pad_token_id"  # the embedding needs it
        if any(token is not None and token >= self.vocab_size for token in tokens):
            if value == default and not embedded:
                setattr(self, name, None)
                return
            raise InvalidValueError(
                f"{name} must be a token of the vocabulary of {self.vocab_size}, received "
                f"{shown(value)}"
            )

    def _known(self, more: dict[str, Any]) -> dict[str, Any]:
        """Return the values of names that are not fields, without those that mean nothing here.

        An unknown name is an error in a call. A saved configuration, which states its model type,
        may come from a newer version or another library: then the name is kept, and a logged line
        says that it is not used.
        """
        name = type(self).__name__
        saved = "model_type" in more
        if saved and more["model_type"] != self.model_type:
            raise InvalidValueError(
                f"{name} is for the model type {self.model_type}; received "
                f"{more['model_type']!r:.80}, for which AutoConfig of transformers finds the class"
            )
        if "/" in str(more.get("attn_implementation") or ""):
            raise InvalidValueError(
                "attn_implementation of a Longbird model cannot be code of the hub"
            )
        unknown = self.unknown_names(more)
        if unknown and not saved:
            raise InvalidTypeError(self.has_no(unknown))
        if unknown:
            origin = f" of {more['name_or_path']}" if more.get("name_or_path") else ""
            logger.warning(
                f"{name}{origin}: fields that this version of Longbird does not know, and does "
                f"not use: {', '.join(unknown)}"
            )
        left_out = {each for each in unknown if each[:1] == "_" or hasattr(type(self), each)}
        left_out |= {"model_type"} | ({"num_labels"} if more.get("num_labels") is None else set())
        return {k: x for k, x in more.items() if k not in left_out}

    @property
    def absent_id(self) -> int | None:
        """The token id that has no position of its own, if positions are padding-aware."""
        given = self.position_padding_id
        return self.pad_token_id if given is None else given

    @property
    def first_position(self) -> int:
        """The row of the position table for the first token of a document."""
        return (self.absent_id or 0) + 1 if self.positions == "padding-aware" else 0

    @property
    def longest_document(self) -> int:
        """Number of tokens that the position table has rows for."""
        return self.max_position_embeddings - self.first_position

    @property
    def head_dropout(self) -> float:
        """Dropout of heads."""
        rate = self.classifier_dropout
        return self.hidden_dropout_prob if rate is None else rate

    @property
    def causal(self) -> bool:
        """Whether this is the configuration of a causal decoder."""
        return self.is_decoder and not self.is_encoder_decoder

    @property
    def layer_graphs(self) -> list[Graph]:
        """The graph of every layer, restricted to earlier tokens in a causal decoder."""
        if isinstance(self.graph, list):
            graphs = self.graph
        else:
            graphs = [self.graph.reseed(layer) for layer in range(self.num_hidden_layers)]
        return [_past_of(graph) for graph in graphs] if self.causal else graphs

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain values, with graphs as JSON objects."""
        values = super().to_dict()
        if values.get("quantize") is None:  # as in folders from before int8
            values.pop("quantize", None)
        many = isinstance(self.graph, list)
        graphs = [json.loads(graph.to_json()) for graph in (self.graph if many else [self.graph])]
        return {**values, "graph": graphs if many else graphs[0]}


class LongbirdSeq2SeqConfig(LongbirdConfig):
    """Configuration of an encoder-decoder: any graph in the encoder, a full causal decoder.

    The defaults are those of BigBird-Pegasus-large. The fields of `LongbirdConfig` describe the
    encoder; the decoder shares its width, norms and activation.

    Args:
        decoder_layers: Number of layers of the decoder; by default that of the encoder.
        decoder_attention_heads: Number of its heads; by default that of the encoder.
        decoder_intermediate_size: Width inside its feed-forward blocks; by default that of the
            encoder.
        max_decoder_positions: Maximum number of tokens of an output.
        decoder_start_token_id: Token before the first token of an output.
        is_encoder_decoder: Always True, for transformers.

    Examples:
        >>> import longbird as lb
        >>> lb.LongbirdSeq2SeqConfig(graph=lb.longformer(window=1024)).norm
        'pre'
    """

    model_type = "longbird-seq2seq"

    vocab_size: int = 96103
    hidden_size: int = 1024
    num_hidden_layers: int = 16
    num_attention_heads: int = 16
    intermediate_size: int = 4096
    layer_norm_eps: float = 1e-5
    type_vocab_size: int = 0
    eos_token_id: int | list[int] | None = 1
    bos_token_id: int | None = 2
    is_encoder_decoder: bool = True
    norm: str = "pre"
    embedding_norm: str = "none"
    rescale_embeddings: bool = True
    attention_bias: bool = False
    attention_output_bias: bool = False
    decoder_layers: int | None = None
    decoder_attention_heads: int | None = None
    decoder_intermediate_size: int | None = None
    max_decoder_positions: int = 1024
    decoder_start_token_id: int | None = 2

    def __post_init__(self, **kwargs: Any) -> None:
        """Give the decoder the sizes of the encoder by default, and check its heads."""
        if self.decoder_layers is None:
            self.decoder_layers = self.num_hidden_layers
        if self.decoder_attention_heads is None:
            self.decoder_attention_heads = self.num_attention_heads
        if self.decoder_intermediate_size is None:
            self.decoder_intermediate_size = self.intermediate_size
        super().__post_init__(**kwargs)
        if self.hidden_size % self.decoder_attention_heads:
            raise InvalidValueError(
                "hidden_size must be a multiple of decoder_attention_heads; received "
                f"{self.hidden_size} and {self.decoder_attention_heads}"
            )
