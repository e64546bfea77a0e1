"""BigBird and BigBird-Pegasus of transformers."""

from __future__ import annotations

from typing import Any

from longbird.core.graph import Causal, Full, Graph, LegacyBigBird
from longbird.errors import InvalidValueError
from longbird.models import (
    LongbirdForCausalLM,
    LongbirdForMaskedLM,
    LongbirdForMultipleChoice,
    LongbirdForPreTraining,
    LongbirdForQuestionAnswering,
    LongbirdForSequenceClassification,
    LongbirdForTokenClassification,
    LongbirdModel,
    LongbirdSeq2SeqModel,
)
from longbird.models.checkpoints.bert import (
    BERT_LM,
    EMBEDDINGS,
    LAYERS,
    NEXT_SENTENCE,
    TOKENS,
    TWO_LAYERS,
    architectures,
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

PLANS = {"seeded": "huggingface", "hf_eval": "huggingface_eval", "google": "google"}


def check_plan(random_blocks: Any) -> None:
    """Raise unless this is one of the meanings of random blocks."""
    if random_blocks not in tuple(PLANS):
        raise InvalidValueError(
            f"random_blocks must be one of {', '.join(PLANS)}, received {random_blocks!r:.80}"
        )


def read_graph(theirs: ForeignConfig, random_blocks: str) -> Graph:
    """Return the graph of a checkpoint, with this meaning of its random blocks."""
    # With cross attention, transformers always computes full attention.
    if theirs.attention_type == "original_full" or getattr(theirs, "add_cross_attention", False):
        return Full()
    if theirs.attention_type != "block_sparse":
        raise InvalidValueError(
            f"attention_type must be original_full or block_sparse, received "
            f"{theirs.attention_type!r}"
        )
    return LegacyBigBird(
        PLANS[random_blocks],
        block=theirs.block_size,
        random=theirs.num_random_blocks,
        max_length=theirs.max_position_embeddings,
    )


def write_graph(graph: Any) -> dict[str, Any]:
    """Return the fields for a graph, which must be a published one."""
    if graph in (Full(), Causal()):
        return {"attention_type": "original_full"}
    if isinstance(graph, LegacyBigBird):
        return {
            "attention_type": "block_sparse",
            "block_size": graph.block,
            "num_random_blocks": graph.random,
        }
    raise InvalidValueError(
        f"BigBird of transformers has its own pattern (LegacyBigBird) or full attention, and the "
        f"model has the graph {graph}; save it with save_pretrained instead"
    )


def read_bigbird(theirs: ForeignConfig, random_blocks: str) -> dict[str, Any]:
    """Translate a configuration of the library into fields of ours."""
    return {
        **shared(theirs),
        "type_vocab_size": theirs.type_vocab_size,
        "sep_token_id": theirs.sep_token_id,
        "rescale_embeddings": theirs.rescale_embeddings,
        "attention_bias": theirs.use_bias,
        "classifier_dropout": theirs.classifier_dropout,
        "classifier_activation": theirs.hidden_act,
        "embedding_norm": "after_dropout",
        "qa_feed_forward": True,
        "qa_hides_question": True,
        # Its sparse attention shows later tokens to a decoder.
        "is_decoder": theirs.is_decoder
        and (theirs.attention_type == "original_full" or theirs.add_cross_attention),
        "add_cross_attention": theirs.add_cross_attention,
        "graph": read_graph(theirs, random_blocks),
    }


def write_bigbird(ours: LongbirdConfig) -> dict[str, Any]:
    """Translate our configuration into fields of the library."""
    return {
        **shared(ours),
        **write_graph(ours.layer_graphs[0] if ours.causal else ours.graph),
        "is_decoder": ours.is_decoder,
        "add_cross_attention": ours.add_cross_attention,
        "type_vocab_size": ours.type_vocab_size,
        "sep_token_id": ours.sep_token_id,
        "rescale_embeddings": ours.rescale_embeddings,
        "use_bias": ours.attention_bias,
        "classifier_dropout": ours.classifier_dropout,
    }


def read_pegasus(theirs: ForeignConfig, random_blocks: str) -> dict[str, Any]:
    """Translate a configuration of the library into fields of ours."""
    return {
        **read_seq2seq(theirs),
        "max_position_embeddings": theirs.max_position_embeddings,
        "max_decoder_positions": theirs.max_position_embeddings,
        "rescale_embeddings": theirs.scale_embedding,
        "attention_bias": theirs.use_bias,
        "attention_output_bias": theirs.use_bias,
        "norm": "pre",
        "embedding_norm": "none",
        "graph": read_graph(theirs, random_blocks),
    }


def write_pegasus(ours: LongbirdConfig) -> dict[str, Any]:
    """Translate our configuration into fields of the library."""
    return {
        **write_seq2seq(ours),
        **write_graph(ours.graph),
        "max_position_embeddings": ours.max_position_embeddings,
        "scale_embedding": ours.rescale_embeddings,
        "use_bias": ours.attention_bias,
    }


BIG_BIRD = Family(
    model_type="big_bird",
    prefix="bert.",
    base=LongbirdModel,
    body={**EMBEDDINGS, **LAYERS, "pooler": "pooler"},
    heads={
        LongbirdForMaskedLM: BERT_LM,
        LongbirdForCausalLM: BERT_LM,
        LongbirdForPreTraining: {**BERT_LM, **NEXT_SENTENCE},
        LongbirdForSequenceClassification: TWO_LAYERS,
        LongbirdForMultipleChoice: {
            "classifier.dense": "bert.pooler",
            "classifier.out": "classifier",
        },
        LongbirdForTokenClassification: TOKENS,
        LongbirdForQuestionAnswering: {
            "feed_forward.enter": "qa_classifier.intermediate.dense",
            "feed_forward.leave": "qa_classifier.output.dense",
            "norm": "qa_classifier.output.LayerNorm",
            "span": "qa_classifier.qa_outputs",
        },
    },
    architectures={
        **architectures("BigBird"),
        LongbirdForCausalLM: "BigBirdForCausalLM",
        LongbirdForPreTraining: "BigBirdForPreTraining",
    },
    read=read_bigbird,
    write=write_bigbird,
    copies={"cls.predictions.bias": "cls.predictions.decoder.bias"},
    unused=("bert.embeddings.position_ids", "embeddings.position_ids"),
)

BIGBIRD_PEGASUS = Family(
    model_type="bigbird_pegasus",
    prefix="model.",
    base=LongbirdSeq2SeqModel,
    body={
        "encoder.embeddings.tokens": "encoder.embed_tokens",
        "decoder.tokens": "decoder.embed_tokens",
        "encoder.embeddings.positions": "encoder.embed_positions",
        "encoder.layers.*.attention.query": "encoder.layers.*.self_attn.self.query",
        "encoder.layers.*.attention.key": "encoder.layers.*.self_attn.self.key",
        "encoder.layers.*.attention.value": "encoder.layers.*.self_attn.self.value",
        "encoder.layers.*.attention.output": "encoder.layers.*.self_attn.output",
        "encoder.layers.*.attention_norm": "encoder.layers.*.self_attn_layer_norm",
        "encoder.layers.*.feed_forward.enter": "encoder.layers.*.fc1",
        "encoder.layers.*.feed_forward.leave": "encoder.layers.*.fc2",
        "encoder.layers.*.feed_forward_norm": "encoder.layers.*.final_layer_norm",
        "encoder.final_norm": "encoder.layernorm_embedding",  # final, whatever its name says
        **DECODER,
        "decoder.final_norm": "decoder.layernorm_embedding",
    },
    heads=SEQ2SEQ_HEADS,
    architectures=seq2seq_architectures("BigBirdPegasus"),
    read=read_pegasus,
    write=write_pegasus,
    copies={
        "shared.weight": "encoder.embed_tokens.weight",
        "model.shared.weight": "model.encoder.embed_tokens.weight",
    },
)
