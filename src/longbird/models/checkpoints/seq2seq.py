"""Names that BigBird-Pegasus and LED share: those of BART."""

from __future__ import annotations

from typing import Any

from longbird import models
from longbird.models.checkpoints.names import ModelClass, Table

ENCODER = {
    "encoder.embeddings.tokens": "encoder.embed_tokens",
    "encoder.embeddings.positions": "encoder.embed_positions",
    "encoder.layers.*.attention.output": "encoder.layers.*.self_attn.output",
    "encoder.layers.*.attention_norm": "encoder.layers.*.self_attn_layer_norm",
    "encoder.layers.*.feed_forward.enter": "encoder.layers.*.fc1",
    "encoder.layers.*.feed_forward.leave": "encoder.layers.*.fc2",
    "encoder.layers.*.feed_forward_norm": "encoder.layers.*.final_layer_norm",
}
DECODER = {
    "decoder.tokens": "decoder.embed_tokens",
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
    models.LongbirdForConditionalGeneration: {
        "lm_head": "lm_head",
        "final_logits_bias": "final_logits_bias",
    },
    models.LongbirdSeq2SeqForQuestionAnswering: {"span": "qa_outputs"},
    models.LongbirdSeq2SeqForSequenceClassification: {
        "classifier.dense": "classification_head.dense",
        "classifier.out": "classification_head.out_proj",
    },
}

SEQ2SEQ_FIELDS = {
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
    "num_attention_heads": "encoder_attention_heads",
    "intermediate_size": "encoder_ffn_dim",
    "decoder_intermediate_size": "decoder_ffn_dim",
    "hidden_act": "activation_function",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "initializer_range": "init_std",
    **{
        name: name
        for name in (
            "decoder_layers decoder_attention_heads activation_dropout vocab_size pad_token_id "
            "bos_token_id eos_token_id decoder_start_token_id use_cache tie_word_embeddings "
            "id2label label2id problem_type"
        ).split()
    },
}
"""Our fields, and those of the library."""

SEQ2SEQ_CONSTANTS: dict[str, Any] = {"layer_norm_eps": 1e-5, "type_vocab_size": 0}
"""Fields of ours that are the same in all models of these families."""


def seq2seq_architectures(theirs: str) -> dict[ModelClass, str]:
    """Return the names of the classes of a library, by ours."""
    return {
        models.LongbirdSeq2SeqModel: f"{theirs}Model",
        models.LongbirdForConditionalGeneration: f"{theirs}ForConditionalGeneration",
        models.LongbirdSeq2SeqForQuestionAnswering: f"{theirs}ForQuestionAnswering",
        models.LongbirdSeq2SeqForSequenceClassification: f"{theirs}ForSequenceClassification",
    }


def seq2seq_copies(prefix: str) -> dict[str, str]:
    """Return the names of copies of the token embeddings."""
    return {f"{each}shared.weight": f"{each}encoder.embed_tokens.weight" for each in ("", prefix)}
