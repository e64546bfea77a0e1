"""BERT, RoBERTa and MPNet, which have dense attention over up to 512 tokens."""

from __future__ import annotations

from typing import Any

from longbird import models
from longbird.core.graph import Causal, Full
from longbird.errors import InvalidValueError
from longbird.models.checkpoints.names import Family, ForeignConfig, ModelClass, Table
from longbird.models.config import LongbirdConfig

SHARED = {
    name: name
    for name in (
        "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size "
        "hidden_act hidden_dropout_prob attention_probs_dropout_prob max_position_embeddings "
        "initializer_range layer_norm_eps pad_token_id bos_token_id eos_token_id "
        "tie_word_embeddings id2label label2id problem_type"
    ).split()
}
"""Fields that mean the same in the configurations of these libraries and in ours."""

EMBEDDINGS = {
    "embeddings.tokens": "embeddings.word_embeddings",
    "embeddings.positions": "embeddings.position_embeddings",
    "embeddings.types": "embeddings.token_type_embeddings",
    "embeddings.norm": "embeddings.LayerNorm",
}
LAYERS = {
    **{
        f"layers.*.{ours}.{name}": f"encoder.layer.*.{theirs}.self.{name}"
        for ours, theirs in (("attention", "attention"), ("cross_attention", "crossattention"))
        for name in ("query", "key", "value")
    },
    "layers.*.attention.output": "encoder.layer.*.attention.output.dense",
    "layers.*.attention_norm": "encoder.layer.*.attention.output.LayerNorm",
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
BERT_COPIES = {"cls.predictions.bias": "cls.predictions.decoder.bias"}
ROBERTA_COPIES = {"lm_head.bias": "lm_head.decoder.bias"}


def encoder_heads(
    prefix: str, lm: Table, classifier: Table | None = None
) -> dict[ModelClass, Table]:
    """Return the heads of an encoder.

    Args:
        prefix: Prefix of the names of the encoder.
        lm: Names of the language-model head.
        classifier: Names of the classifier of documents; by default it is over the pooler.
    """
    over_pooler = {"classifier.dense": f"{prefix}pooler.dense", "classifier.out": "classifier"}
    return {
        models.LongbirdForMaskedLM: lm,
        models.LongbirdForCausalLM: lm,
        models.LongbirdForPreTraining: {**lm, "next_sentence": "cls.seq_relationship"},
        models.LongbirdForSequenceClassification: classifier or over_pooler,
        models.LongbirdForMultipleChoice: over_pooler,
        models.LongbirdForTokenClassification: {"classifier": "classifier"},
        models.LongbirdForQuestionAnswering: {"span": "qa_outputs"},
    }


def architectures(theirs: str, **others: str) -> dict[ModelClass, str]:
    """Return the names of the classes of a library, by ours.

    Args:
        theirs: Beginning of the names.
        **others: Names of classes that not all families have, by the end of our names.
    """
    return {
        models.LongbirdModel: f"{theirs}Model",
        # A sentence embedding is the model without a head, and pooling without weights.
        models.LongbirdForEmbedding: f"{theirs}Model",
        models.LongbirdForMaskedLM: f"{theirs}ForMaskedLM",
        models.LongbirdForSequenceClassification: f"{theirs}ForSequenceClassification",
        models.LongbirdForTokenClassification: f"{theirs}ForTokenClassification",
        models.LongbirdForMultipleChoice: f"{theirs}ForMultipleChoice",
        models.LongbirdForQuestionAnswering: f"{theirs}ForQuestionAnswering",
        **{getattr(models, f"Longbird{name}"): other for name, other in others.items()},
    }


def read_dense(_theirs: ForeignConfig, _random_blocks: str) -> dict[str, Any]:
    """Return the graph of models with dense attention."""
    return {"graph": Full()}


def check_dense(ours: LongbirdConfig) -> dict[str, Any]:
    """Raise unless the graph of a model is full."""
    dense = Causal() if ours.causal else Full()
    if any(graph != dense for graph in ours.layer_graphs):
        raise InvalidValueError(
            f"this model type has dense attention only, {dense}, and the model has the graph "
            f"{ours.graph}; save it with save_pretrained instead"
        )
    return {}


MPNET_BUCKETS = 32
"""Number of buckets in MPNet of transformers, whatever its configuration says."""


def read_mpnet(theirs: ForeignConfig, _random_blocks: str) -> dict[str, Any]:
    """Return the graph of MPNet, and check its buckets."""
    if theirs.relative_attention_num_buckets < MPNET_BUCKETS:
        raise InvalidValueError(
            f"MPNet of transformers looks up {MPNET_BUCKETS} buckets, and the configuration has "
            f"relative_attention_num_buckets={theirs.relative_attention_num_buckets}, with which "
            f"it cannot run; expected {MPNET_BUCKETS} or more"
        )
    return {"graph": Full()}


def write_mpnet(ours: LongbirdConfig) -> dict[str, Any]:
    """Return the number of buckets, and check it and the graph."""
    if ours.relative_buckets != MPNET_BUCKETS:
        raise InvalidValueError(
            f"mpnet has a bias by distance of {MPNET_BUCKETS} buckets, and the model has "
            f"relative_buckets={ours.relative_buckets}; save it with save_pretrained instead"
        )
    return {**check_dense(ours), "relative_attention_num_buckets": ours.relative_buckets}


BERT_FIELDS = {
    **SHARED,
    **{
        name: name
        for name in ("type_vocab_size", "classifier_dropout", "is_decoder", "add_cross_attention")
    },
}

BERT = Family(
    model_type="bert",
    prefix="bert.",
    base=models.LongbirdModel,
    body={**EMBEDDINGS, **LAYERS, **POOLER},
    heads=encoder_heads("bert.", BERT_LM),
    architectures=architectures(
        "Bert", ForPreTraining="BertForPreTraining", ForCausalLM="BertLMHeadModel"
    ),
    fields=BERT_FIELDS,
    read_others=read_dense,
    write_others=check_dense,
    copies=BERT_COPIES,
)

ROBERTA = Family(
    model_type="roberta",
    prefix="roberta.",
    base=models.LongbirdModel,
    body={**EMBEDDINGS, **LAYERS, **POOLER},
    heads=encoder_heads("roberta.", ROBERTA_LM, TWO_LAYERS),
    architectures=architectures("Roberta", ForCausalLM="RobertaForCausalLM"),
    fields=BERT_FIELDS,
    constants={"positions": "padding-aware", "lm_activation": "gelu"},
    read_others=read_dense,
    write_others=check_dense,
    copies=ROBERTA_COPIES,
)

MPNET = Family(
    model_type="mpnet",
    prefix="mpnet.",
    base=models.LongbirdModel,
    body={
        **{name: other for name, other in EMBEDDINGS.items() if name != "embeddings.types"},
        **LAYERS,
        **{
            f"layers.*.attention.{ours}": f"encoder.layer.*.attention.attn.{theirs}"
            for ours, theirs in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o"))
        },
        "layers.*.attention_norm": "encoder.layer.*.attention.LayerNorm",
        "relative_bias": "encoder.relative_attention_bias",
        **POOLER,
    },
    heads=encoder_heads("mpnet.", ROBERTA_LM, TWO_LAYERS),
    architectures=architectures("MPNet"),
    fields=SHARED,
    constants={
        "type_vocab_size": 0,
        "positions": "padding-aware",
        "position_padding_id": 1,
        "lm_activation": "gelu",
        "relative_buckets": MPNET_BUCKETS,
        "relative_max_distance": 128,
    },
    read_others=read_mpnet,
    write_others=write_mpnet,
    copies=ROBERTA_COPIES,
    rows={"relative_bias": MPNET_BUCKETS},
)
