"""Longformer and LED of transformers."""

from __future__ import annotations

from typing import Any

from longbird.core.graph import Graph, Window, longformer
from longbird.errors import InvalidValueError
from longbird.models import (
    LongbirdForMaskedLM,
    LongbirdForMultipleChoice,
    LongbirdForPreTraining,
    LongbirdForQuestionAnswering,
    LongbirdForSequenceClassification,
    LongbirdForTokenClassification,
    LongbirdModel,
    LongbirdSeq2SeqForSequenceClassification,
    LongbirdSeq2SeqModel,
)
from longbird.models.checkpoints.bert import (
    EMBEDDINGS,
    LAYERS,
    POOLER,
    ROBERTA_LM,
    SPAN,
    TOKENS,
    TWO_LAYERS,
    architectures,
    pooled,
    shared,
)
from longbird.models.checkpoints.names import Family, ForeignConfig
from longbird.models.checkpoints.seq2seq import (
    DECODER,
    SEQ2SEQ_HEADS,
    read_seq2seq,
    seq2seq_architectures,
    write_seq2seq,
)
from longbird.models.config import LongbirdConfig


def read_windows(theirs: ForeignConfig, layers: int) -> Graph | list[Graph]:
    """Return a window for all layers, or a list with one for each."""
    windows = theirs.attention_window
    windows = windows if isinstance(windows, (list, tuple)) else [windows] * layers
    if len(windows) != layers:
        raise InvalidValueError(
            f"attention_window has one window for each of the {layers} layers, received {windows}"
        )
    graphs = [longformer(window=window) for window in windows]
    return graphs[0] if len(set(graphs)) == 1 else graphs


def write_windows(ours: LongbirdConfig) -> list[int]:
    """Return the two-sided windows of the layers."""
    windows: list[int] = []
    for graph in ours.layer_graphs:
        if not isinstance(graph, Window) or graph.dilation != 1 or graph.radius < 1:
            raise InvalidValueError(
                f"Longformer of transformers has windows only, and the model has the graph "
                f"{graph}; save it with save_pretrained instead"
            )
        windows.append(2 * graph.radius)
    return windows


def read_longformer(theirs: ForeignConfig, _random_blocks: str) -> dict[str, Any]:
    """Translate a configuration of the library into fields of ours."""
    return {
        **shared(theirs),
        "type_vocab_size": theirs.type_vocab_size,
        "sep_token_id": theirs.sep_token_id,
        "positions": "padding-aware",
        "lm_activation": "gelu",
        "global_projections": True,
        "graph": read_windows(theirs, theirs.num_hidden_layers),
    }


def write_longformer(ours: LongbirdConfig) -> dict[str, Any]:
    """Translate our configuration into fields of the library."""
    return {
        **shared(ours),
        "type_vocab_size": ours.type_vocab_size,
        "sep_token_id": ours.sep_token_id,
        "attention_window": write_windows(ours),
    }


def read_led(theirs: ForeignConfig, _random_blocks: str) -> dict[str, Any]:
    """Translate a configuration of the library into fields of ours."""
    return {
        **read_seq2seq(theirs),
        "max_position_embeddings": theirs.max_encoder_position_embeddings,
        "max_decoder_positions": theirs.max_decoder_position_embeddings,
        "rescale_embeddings": False,
        "attention_bias": True,
        "attention_output_bias": True,
        "norm": "post",
        "embedding_norm": "before_dropout",
        "global_projections": True,
        "graph": read_windows(theirs, theirs.encoder_layers),
    }


def write_led(ours: LongbirdConfig) -> dict[str, Any]:
    """Translate our configuration into fields of the library."""
    return {
        **write_seq2seq(ours),
        "max_encoder_position_embeddings": ours.max_position_embeddings,
        "max_decoder_position_embeddings": ours.max_decoder_positions,
        "attention_window": write_windows(ours),
    }


PROJECTIONS = ("query", "key", "value", "query_global", "key_global", "value_global")

LONGFORMER = Family(
    model_type="longformer",
    prefix="longformer.",
    base=LongbirdModel,
    body={
        **EMBEDDINGS,
        **LAYERS,
        **{
            f"layers.*.attention.{name}": f"encoder.layer.*.attention.self.{name}"
            for name in PROJECTIONS
        },
        **POOLER,
    },
    heads={
        LongbirdForMaskedLM: ROBERTA_LM,
        LongbirdForPreTraining: ROBERTA_LM,
        LongbirdForSequenceClassification: TWO_LAYERS,
        LongbirdForMultipleChoice: pooled("longformer."),
        LongbirdForTokenClassification: TOKENS,
        LongbirdForQuestionAnswering: SPAN,
    },
    architectures=architectures("Longformer"),
    read=read_longformer,
    write=write_longformer,
    copies={"lm_head.bias": "lm_head.decoder.bias"},
    unused=("longformer.embeddings.position_ids", "embeddings.position_ids"),
)

LED = Family(
    model_type="led",
    prefix="led.",
    base=LongbirdSeq2SeqModel,
    body={
        "encoder.embeddings.tokens": "encoder.embed_tokens",
        "decoder.tokens": "decoder.embed_tokens",
        "encoder.embeddings.positions": "encoder.embed_positions",
        "encoder.embeddings.norm": "encoder.layernorm_embedding",
        **{
            f"encoder.layers.*.attention.{name}": (
                f"encoder.layers.*.self_attn.longformer_self_attn.{name}"
            )
            for name in PROJECTIONS
        },
        "encoder.layers.*.attention.output": "encoder.layers.*.self_attn.output",
        "encoder.layers.*.attention_norm": "encoder.layers.*.self_attn_layer_norm",
        "encoder.layers.*.feed_forward.enter": "encoder.layers.*.fc1",
        "encoder.layers.*.feed_forward.leave": "encoder.layers.*.fc2",
        "encoder.layers.*.feed_forward_norm": "encoder.layers.*.final_layer_norm",
        **DECODER,
        "decoder.norm": "decoder.layernorm_embedding",
    },
    heads=SEQ2SEQ_HEADS,
    architectures={
        ours: theirs
        for ours, theirs in seq2seq_architectures("LED").items()
        if ours is not LongbirdSeq2SeqForSequenceClassification  # gone in transformers 5
    },
    read=read_led,
    write=write_led,
    copies={
        "shared.weight": "encoder.embed_tokens.weight",
        "led.shared.weight": "led.encoder.embed_tokens.weight",
    },
)
