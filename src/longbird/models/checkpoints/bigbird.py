"""BigBird and BigBird-Pegasus of transformers."""

from __future__ import annotations

from typing import Any

from longbird import models
from longbird.core.graph import Causal, Full, Graph, LegacyBigBird
from longbird.errors import InvalidValueError
from longbird.models.checkpoints.bert import (
    BERT_COPIES,
    BERT_LM,
    EMBEDDINGS,
    LAYERS,
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
    """Return the fields of ours that follow from several fields of BigBird."""
    # Its sparse attention shows later tokens to a decoder.
    full = theirs.attention_type == "original_full" or theirs.add_cross_attention
    return {
        "classifier_activation": theirs.hidden_act,
        "is_decoder": theirs.is_decoder and full,
        "graph": read_graph(theirs, random_blocks),
    }


def write_bigbird(ours: LongbirdConfig) -> dict[str, Any]:
    """Return the fields of BigBird for the graph."""
    graph = ours.layer_graphs[0] if ours.causal else ours.graph
    return {**write_graph(graph), "is_decoder": ours.is_decoder}


def read_pegasus(theirs: ForeignConfig, random_blocks: str) -> dict[str, Any]:
    """Return the fields of ours for which BigBird-Pegasus has one field in common."""
    return {
        "max_decoder_positions": theirs.max_position_embeddings,
        "attention_output_bias": theirs.use_bias,
        "classifier_dropout": theirs.classifier_dropout,
        "graph": read_graph(theirs, random_blocks),
    }


def write_pegasus(ours: LongbirdConfig) -> dict[str, Any]:
    """Return the fields of BigBird-Pegasus for the graph and the dropout."""
    return {**write_graph(ours.graph), "classifier_dropout": ours.head_dropout}


BIG_BIRD = Family(
    model_type="big_bird",
    prefix="bert.",
    base=models.LongbirdModel,
    body={**EMBEDDINGS, **LAYERS, "pooler": "pooler"},
    heads={
        **encoder_heads("bert.", BERT_LM, TWO_LAYERS),
        models.LongbirdForMultipleChoice: {
            "classifier.dense": "bert.pooler",
            "classifier.out": "classifier",
        },
        models.LongbirdForQuestionAnswering: {
            "feed_forward.enter": "qa_classifier.intermediate.dense",
            "feed_forward.leave": "qa_classifier.output.dense",
            "norm": "qa_classifier.output.LayerNorm",
            "span": "qa_classifier.qa_outputs",
        },
    },
    architectures=architectures(
        "BigBird", ForCausalLM="BigBirdForCausalLM", ForPreTraining="BigBirdForPreTraining"
    ),
    fields={
        **SHARED,
        "attention_bias": "use_bias",
        **{
            name: name
            for name in (
                "type_vocab_size sep_token_id rescale_embeddings classifier_dropout "
                "add_cross_attention"
            ).split()
        },
    },
    constants={
        "embedding_norm": "after_dropout",
        "qa_feed_forward": True,
        "qa_hides_question": True,
    },
    read_others=read_bigbird,
    write_others=write_bigbird,
    copies=BERT_COPIES,
)

BIGBIRD_PEGASUS = Family(
    model_type="bigbird_pegasus",
    prefix="model.",
    base=models.LongbirdSeq2SeqModel,
    body={
        **ENCODER,
        **{
            f"encoder.layers.*.attention.{name}": f"encoder.layers.*.self_attn.self.{name}"
            for name in ("query", "key", "value")
        },
        "encoder.final_norm": "encoder.layernorm_embedding",  # final, whatever its name says
        **DECODER,
        "decoder.final_norm": "decoder.layernorm_embedding",
    },
    heads=SEQ2SEQ_HEADS,
    architectures=seq2seq_architectures("BigBirdPegasus"),
    fields={
        **SEQ2SEQ_FIELDS,
        "max_position_embeddings": "max_position_embeddings",
        "rescale_embeddings": "scale_embedding",
        "attention_bias": "use_bias",
    },
    constants={**SEQ2SEQ_CONSTANTS, "norm": "pre", "embedding_norm": "none"},
    read_others=read_pegasus,
    write_others=write_pegasus,
    copies=seq2seq_copies("model."),
)
