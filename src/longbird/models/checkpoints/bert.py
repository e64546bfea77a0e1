"""BERT, RoBERTa and MPNet: dense attention over up to 512 tokens."""

from __future__ import annotations

from typing import Any

from longbird.core.graph import Causal, Full
from longbird.errors import InvalidValueError
from longbird.models import (
    LongbirdForCausalLM,
    LongbirdForEmbedding,
    LongbirdForMaskedLM,
    LongbirdForMultipleChoice,
    LongbirdForPreTraining,
    LongbirdForQuestionAnswering,
    LongbirdForSequenceClassification,
    LongbirdForTokenClassification,
    LongbirdModel,
)
from longbird.models.checkpoints.names import Family, ForeignConfig, ModelClass
from longbird.models.config import LongbirdConfig

SHARED = (
    "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act "
    "hidden_dropout_prob attention_probs_dropout_prob max_position_embeddings initializer_range "
    "layer_norm_eps pad_token_id bos_token_id eos_token_id tie_word_embeddings id2label label2id "
    "problem_type"
).split()
"""Fields that mean the same in the configurations of these libraries and in ours."""

EMBEDDINGS = {
    "embeddings.tokens": "embeddings.word_embeddings",
    "embeddings.positions": "embeddings.position_embeddings",
    "embeddings.types": "embeddings.token_type_embeddings",
    "embeddings.norm": "embeddings.LayerNorm",
}
LAYERS = {
    "layers.*.attention.query": "encoder.layer.*.attention.self.query",
    "layers.*.attention.key": "encoder.layer.*.attention.self.key",
    "layers.*.attention.value": "encoder.layer.*.attention.self.value",
    "layers.*.attention.output": "encoder.layer.*.attention.output.dense",
    "layers.*.attention_norm": "encoder.layer.*.attention.output.LayerNorm",
    "layers.*.cross_attention.query": "encoder.layer.*.crossattention.self.query",
    "layers.*.cross_attention.key": "encoder.layer.*.crossattention.self.key",
    "layers.*.cross_attention.value": "encoder.layer.*.crossattention.self.value",
    "layers.*.cross_attention.output": "encoder.layer.*.crossattention.output.dense",
    "layers.*.cross_attention_norm": "encoder.layer.*.crossattention.output.LayerNorm",
    "layers.*.feed_forward.enter": "encoder.layer.*.intermediate.dense",
    "layers.*.feed_forward.leave": "encoder.layer.*.output.dense",
    "layers.*.feed_forward_norm": "encoder.layer.*.output.LayerNorm",
}
POOLER = {"pooler": "pooler.dense"}

BERT_LM = {
    "lm_transform.dense": "cls.predictions.transform.dense",
    "lm_transform.norm": "cls.predictions.transform.LayerNorm",
    "lm_head": "cls.predictions.decoder",
}
ROBERTA_LM = {
    "lm_transform.dense": "lm_head.dense",
    "lm_transform.norm": "lm_head.layer_norm",
    "lm_head": "lm_head.decoder",
}
TWO_LAYERS = {"classifier.dense": "classifier.dense", "classifier.out": "classifier.out_proj"}
TOKENS = {"classifier": "classifier"}
SPAN = {"span": "qa_outputs"}
NEXT_SENTENCE = {"next_sentence": "cls.seq_relationship"}


def pooled(prefix: str) -> dict[str, str]:
    """Return the names of a classifier over the pooler, which are two layers of ours."""
    return {"classifier.dense": f"{prefix}pooler.dense", "classifier.out": "classifier"}


def architectures(theirs: str) -> dict[ModelClass, str]:
    """Return the classes that all families have, by ours."""
    return {
        LongbirdModel: f"{theirs}Model",
        # A sentence embedding is the model without a head, and pooling without weights.
        LongbirdForEmbedding: f"{theirs}Model",
        LongbirdForMaskedLM: f"{theirs}ForMaskedLM",
        LongbirdForSequenceClassification: f"{theirs}ForSequenceClassification",
        LongbirdForTokenClassification: f"{theirs}ForTokenClassification",
        LongbirdForMultipleChoice: f"{theirs}ForMultipleChoice",
        LongbirdForQuestionAnswering: f"{theirs}ForQuestionAnswering",
    }


def shared(config: ForeignConfig | LongbirdConfig) -> dict[str, Any]:
    """Return the fields that both configurations have."""
    return {name: getattr(config, name) for name in SHARED}


def read_bert(theirs: ForeignConfig, _random_blocks: str) -> dict[str, Any]:
    """Translate a configuration of the library into fields of ours."""
    rate = getattr(theirs, "classifier_dropout", None)
    return {
        **shared(theirs),
        "type_vocab_size": theirs.type_vocab_size,
        "classifier_dropout": rate,
        "is_decoder": theirs.is_decoder,
        "add_cross_attention": theirs.add_cross_attention,
        "graph": Full(),
    }


def write_bert(ours: LongbirdConfig) -> dict[str, Any]:
    """Translate our configuration into fields of the library."""
    dense = Causal() if ours.causal else Full()
    if any(graph != dense for graph in ours.layer_graphs):
        raise InvalidValueError(
            f"this model type has dense attention only, {dense}, and the model has the graph "
            f"{ours.graph}; save it with save_pretrained instead"
        )
    return {
        "is_decoder": ours.is_decoder,
        "add_cross_attention": ours.add_cross_attention,
        **shared(ours),
        "type_vocab_size": ours.type_vocab_size,
        "classifier_dropout": ours.classifier_dropout,
    }


def read_roberta(theirs: ForeignConfig, random_blocks: str) -> dict[str, Any]:
    """Translate a configuration of the library into fields of ours."""
    return {
        **read_bert(theirs, random_blocks),
        "positions": "padding-aware",
        "lm_activation": "gelu",
    }


MPNET_BUCKETS = 32
"""Number of buckets in MPNet of transformers, whatever its configuration says."""


def read_mpnet(theirs: ForeignConfig, _random_blocks: str) -> dict[str, Any]:
    """Translate a configuration of the library into fields of ours."""
    if theirs.relative_attention_num_buckets < MPNET_BUCKETS:
        raise InvalidValueError(
            f"MPNet of transformers looks up {MPNET_BUCKETS} buckets, and the configuration has "
            f"relative_attention_num_buckets={theirs.relative_attention_num_buckets}, with which "
            f"it cannot run; expected {MPNET_BUCKETS} or more"
        )
    return {
        **shared(theirs),
        "graph": Full(),
        "type_vocab_size": 0,
        "positions": "padding-aware",
        "lm_activation": "gelu",
        "position_padding_id": 1,
        "relative_buckets": MPNET_BUCKETS,
        "relative_max_distance": 128,
    }


def write_mpnet(ours: LongbirdConfig) -> dict[str, Any]:
    """Translate our configuration into fields of the library."""
    if ours.relative_buckets != MPNET_BUCKETS:
        raise InvalidValueError(
            f"mpnet has a bias by distance of {MPNET_BUCKETS} buckets, and the model has "
            f"relative_buckets={ours.relative_buckets}; save it with save_pretrained instead"
        )
    fields = write_bert(ours)
    for name in ("type_vocab_size", "classifier_dropout", "is_decoder", "add_cross_attention"):
        del fields[name]
    return {**fields, "relative_attention_num_buckets": ours.relative_buckets}


BERT = Family(
    model_type="bert",
    prefix="bert.",
    base=LongbirdModel,
    body={**EMBEDDINGS, **LAYERS, **POOLER},
    heads={
        LongbirdForMaskedLM: BERT_LM,
        LongbirdForCausalLM: BERT_LM,
        LongbirdForPreTraining: {**BERT_LM, **NEXT_SENTENCE},
        LongbirdForSequenceClassification: pooled("bert."),
        LongbirdForMultipleChoice: pooled("bert."),
        LongbirdForTokenClassification: TOKENS,
        LongbirdForQuestionAnswering: SPAN,
    },
    architectures={
        **architectures("Bert"),
        LongbirdForPreTraining: "BertForPreTraining",
        LongbirdForCausalLM: "BertLMHeadModel",
    },
    read=read_bert,
    write=write_bert,
    copies={"cls.predictions.bias": "cls.predictions.decoder.bias"},
    unused=("bert.embeddings.position_ids", "embeddings.position_ids"),
)

ROBERTA = Family(
    model_type="roberta",
    prefix="roberta.",
    base=LongbirdModel,
    body={**EMBEDDINGS, **LAYERS, **POOLER},
    heads={
        LongbirdForMaskedLM: ROBERTA_LM,
        LongbirdForCausalLM: ROBERTA_LM,
        LongbirdForPreTraining: ROBERTA_LM,
        LongbirdForSequenceClassification: TWO_LAYERS,
        LongbirdForMultipleChoice: pooled("roberta."),
        LongbirdForTokenClassification: TOKENS,
        LongbirdForQuestionAnswering: SPAN,
    },
    architectures={**architectures("Roberta"), LongbirdForCausalLM: "RobertaForCausalLM"},
    read=read_roberta,
    write=write_bert,
    copies={"lm_head.bias": "lm_head.decoder.bias"},
    unused=("roberta.embeddings.position_ids", "embeddings.position_ids"),
)

MPNET = Family(
    model_type="mpnet",
    prefix="mpnet.",
    base=LongbirdModel,
    body={
        **{name: other for name, other in EMBEDDINGS.items() if name != "embeddings.types"},
        **LAYERS,
        "layers.*.attention.query": "encoder.layer.*.attention.attn.q",
        "layers.*.attention.key": "encoder.layer.*.attention.attn.k",
        "layers.*.attention.value": "encoder.layer.*.attention.attn.v",
        "layers.*.attention.output": "encoder.layer.*.attention.attn.o",
        "layers.*.attention_norm": "encoder.layer.*.attention.LayerNorm",
        "relative_bias": "encoder.relative_attention_bias",
        **POOLER,
    },
    heads={
        LongbirdForMaskedLM: ROBERTA_LM,
        LongbirdForCausalLM: ROBERTA_LM,
        LongbirdForPreTraining: ROBERTA_LM,
        LongbirdForSequenceClassification: TWO_LAYERS,
        LongbirdForMultipleChoice: pooled("mpnet."),
        LongbirdForTokenClassification: TOKENS,
        LongbirdForQuestionAnswering: SPAN,
    },
    architectures=architectures("MPNet"),
    read=read_mpnet,
    write=write_mpnet,
    copies={"lm_head.bias": "lm_head.decoder.bias"},
    unused=("mpnet.embeddings.position_ids", "embeddings.position_ids"),
    rows={"relative_bias": MPNET_BUCKETS},
)
