"""Longformer and LED of transformers."""

from __future__ import annotations

from typing import Any

from longbird import models
from longbird.core.graph import Graph, Window, longformer
from longbird.errors import InvalidValueError
from longbird.models.checkpoints.bert import (
    EMBEDDINGS,
    LAYERS,
    POOLER,
    ROBERTA_COPIES,
    ROBERTA_LM,
    SHARED,
    TWO_LAYERS,
    architectures,
    encoder_heads,
)
from longbird.models.checkpoints.names import Family, ForeignConfig
from longbird.models.checkpoints.seq2seq import (
    DECODER,
    ENCODER,
    SEQ2SEQ_CONSTANTS,
    SEQ2SEQ_FIELDS,
    SEQ2SEQ_HEADS,
    seq2seq_architectures,
    seq2seq_copies,
)
from longbird.models.config import LongbirdConfig

PROJECTIONS = ("query", "key", "value", "query_global", "key_global", "value_global")


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


def write_windows(ours: LongbirdConfig) -> dict[str, Any]:
    """Return the two-sided windows of the layers."""
    windows: list[int] = []
    for graph in ours.layer_graphs:
        if not isinstance(graph, Window) or graph.dilation != 1 or graph.radius < 1:
            raise InvalidValueError(
                f"Longformer of transformers has windows only, and the model has the graph "
                f"{graph}; save it with save_pretrained instead"
            )
        windows.append(2 * graph.radius)
    return {"attention_window": windows}


def read_led(theirs: ForeignConfig, _random_blocks: str) -> dict[str, Any]:
    """Return the fields of ours for the windows and the dropout."""
    return {
        "classifier_dropout": theirs.classifier_dropout,
        "graph": read_windows(theirs, theirs.encoder_layers),
    }


LONGFORMER = Family(
    model_type="longformer",
    prefix="longformer.",
    base=models.LongbirdModel,
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
        each: table
        for each, table in encoder_heads("longformer.", ROBERTA_LM, TWO_LAYERS).items()
        if each is not models.LongbirdForCausalLM
    },
    architectures=architectures("Longformer"),
    fields={**SHARED, "type_vocab_size": "type_vocab_size", "sep_token_id": "sep_token_id"},
    constants={
        "positions": "padding-aware",
        "lm_activation": "gelu",
        "global_projections": True,
    },
    read_others=lambda theirs, _: {"graph": read_windows(theirs, theirs.num_hidden_layers)},
    write_others=write_windows,
    copies=ROBERTA_COPIES,
)

LED = Family(
    model_type="led",
    prefix="led.",
    base=models.LongbirdSeq2SeqModel,
    body={
        **ENCODER,
        "encoder.embeddings.norm": "encoder.layernorm_embedding",
        **{
            f"encoder.layers.*.attention.{name}": (
                f"encoder.layers.*.self_attn.longformer_self_attn.{name}"
            )
            for name in PROJECTIONS
        },
        **DECODER,
        "decoder.norm": "decoder.layernorm_embedding",
    },
    heads=SEQ2SEQ_HEADS,
    architectures={
        ours: theirs
        for ours, theirs in seq2seq_architectures("LED").items()
        if ours is not models.LongbirdSeq2SeqForSequenceClassification  # gone in transformers 5
    },
    fields={
        **SEQ2SEQ_FIELDS,
        "max_position_embeddings": "max_encoder_position_embeddings",
        "max_decoder_positions": "max_decoder_position_embeddings",
    },
    constants={
        **SEQ2SEQ_CONSTANTS,
        "rescale_embeddings": False,
        "attention_bias": True,
        "attention_output_bias": True,
        "norm": "post",
        "embedding_norm": "before_dropout",
        "global_projections": True,
    },
    read_others=read_led,
    write_others=lambda ours: {**write_windows(ours), "classifier_dropout": ours.head_dropout},
    copies=seq2seq_copies("led."),
)
