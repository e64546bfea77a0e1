"""Names that BigBird-Pegasus and LED share: BART's decoder, and its names of fields."""

from __future__ import annotations

from typing import Any

from longbird.models import (
    LongbirdForConditionalGeneration,
    LongbirdSeq2SeqForQuestionAnswering,
    LongbirdSeq2SeqForSequenceClassification,
    LongbirdSeq2SeqModel,
)
from longbird.models.checkpoints.names import ForeignConfig, ModelClass, Table
from longbird.models.config import LongbirdConfig

DECODER = {
    "decoder.positions": "decoder.embed_positions",
    **{
        f"decoder.layers.*.{ours}.{part}": f"decoder.layers.*.{theirs}.{other}"
        for ours, theirs in (("attention", "self_attn"), ("cross_attention", "encoder_attn"))
        for part, other in (
            ("query", "q_proj"),
            ("key", "k_proj"),
            ("value", "v_proj"),
            ("output", "out_proj"),
        )
    },
    "decoder.layers.*.attention_norm": "decoder.layers.*.self_attn_layer_norm",
    "decoder.layers.*.cross_attention_norm": "decoder.layers.*.encoder_attn_layer_norm",
    "decoder.layers.*.feed_forward.enter": "decoder.layers.*.fc1",
    "decoder.layers.*.feed_forward.leave": "decoder.layers.*.fc2",
    "decoder.layers.*.feed_forward_norm": "decoder.layers.*.final_layer_norm",
}

SEQ2SEQ_HEADS: dict[ModelClass, Table] = {
    LongbirdForConditionalGeneration: {
        "lm_head": "lm_head",
        "final_logits_bias": "final_logits_bias",
    },
    LongbirdSeq2SeqForQuestionAnswering: {"span": "qa_outputs"},
    LongbirdSeq2SeqForSequenceClassification: {
        "classifier.dense": "classification_head.dense",
        "classifier.out": "classification_head.out_proj",
    },
}


def seq2seq_architectures(theirs: str) -> dict[ModelClass, str]:
    """Return the classes of a library, by ours."""
    return {
        LongbirdSeq2SeqModel: f"{theirs}Model",
        LongbirdForConditionalGeneration: f"{theirs}ForConditionalGeneration",
        LongbirdSeq2SeqForQuestionAnswering: f"{theirs}ForQuestionAnswering",
        LongbirdSeq2SeqForSequenceClassification: f"{theirs}ForSequenceClassification",
    }


FIELDS = {
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
    "num_attention_heads": "encoder_attention_heads",
    "intermediate_size": "encoder_ffn_dim",
    "decoder_layers": "decoder_layers",
    "decoder_attention_heads": "decoder_attention_heads",
    "decoder_intermediate_size": "decoder_ffn_dim",
    "hidden_act": "activation_function",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "activation_dropout": "activation_dropout",
    "initializer_range": "init_std",
    **{
        name: name
        for name in (
            "vocab_size", "pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id",
            "use_cache", "tie_word_embeddings", "id2label", "label2id", "problem_type",
        )
    },
}  # fmt: skip
"""Our fields, and those of the library."""


def read_seq2seq(theirs: ForeignConfig) -> dict[str, Any]:
    """Translate a configuration of the library into fields of ours."""
    fields = {ours: getattr(theirs, name) for ours, name in FIELDS.items()}
    return {
        **fields,
        "classifier_dropout": theirs.classifier_dropout,
        "layer_norm_eps": 1e-5,
        "type_vocab_size": 0,
    }


def write_seq2seq(ours: LongbirdConfig) -> dict[str, Any]:
    """Translate our configuration into fields of the library."""
    fields = {name: getattr(ours, field) for field, name in FIELDS.items()}
    return {**fields, "classifier_dropout": ours.head_dropout}
