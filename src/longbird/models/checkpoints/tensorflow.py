"""Google's original BigBird: names of TensorFlow variables in an .npz file.

Kernels are stored transposed, norms as gamma and beta, and embeddings without a suffix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from longbird.errors import InvalidValueError
from longbird.models import (
    LongbirdForEmbedding,
    LongbirdForMaskedLM,
    LongbirdForPreTraining,
    LongbirdModel,
)
from longbird.models.checkpoints.bert import LAYERS
from longbird.models.checkpoints.files import Stored
from longbird.models.checkpoints.names import ModelClass, NameMap, Table, for_class, map_names

PREFIX = "bert/"
BODY = {
    "embeddings.tokens": "embeddings/word_embeddings",
    "embeddings.positions": "embeddings/position_embeddings",
    "embeddings.types": "embeddings/token_type_embeddings",
    "embeddings.norm": "encoder/LayerNorm",
    **{
        ours: theirs.replace("encoder.layer.*", "encoder.layer_*").replace(".", "/")
        for ours, theirs in LAYERS.items()
    },
    "pooler": "pooler/dense",
}
LM = {
    "lm_transform.dense": "cls/predictions/transform/dense",
    "lm_transform.norm": "cls/predictions/transform/LayerNorm",
    "lm_head.bias": "cls/predictions/output_bias",
}
NEXT_SENTENCE = {
    "next_sentence.weight": "cls/seq_relationship/output_weights",
    "next_sentence.bias": "cls/seq_relationship/output_bias",
}
HEADS: dict[ModelClass, Table] = {
    LongbirdModel: {},
    LongbirdForEmbedding: {},
    LongbirdForMaskedLM: LM,
    LongbirdForPreTraining: {**LM, **NEXT_SENTENCE},
}
PLAIN = {"cls/predictions/output_bias", *NEXT_SENTENCE.values()}
"""Variables whose full names are in the table; none is transposed."""

SUFFIXES = {"kernel": "weight", "gamma": "weight", "beta": "bias", "bias": "bias"}


def from_tensorflow(
    arrays: Mapping[str, Stored], model_class: ModelClass
) -> tuple[NameMap, dict[str, Stored]]:
    """Return our names for variables, and the variables as our modules have them."""
    names: dict[str, str] = {}
    variables: dict[str, Stored] = {}
    for name, array in arrays.items():
        module, _, last = name.rpartition("/")
        if name == "global_step" or last in ("adam_m", "adam_v"):  # state of the optimizer
            continue
        if name in PLAIN:
            names[name] = name
        elif last in SUFFIXES:
            names[f"{module}.{SUFFIXES[last]}"] = name
        else:
            names[f"{name}.weight"] = name
        variables[name] = replace(array, transposed=last == "kernel")
    mapped = map_names(names, {theirs: ours for ours, theirs in table(model_class).items()})
    origins = {ours: names[name] for ours, name in mapped.origins.items()}
    return NameMap(origins, [names[name] for name in mapped.unknown]), variables


def to_tensorflow(tensors: Mapping[str, Tensor], model_class: ModelClass) -> dict[str, Tensor]:
    """Return the variables for tensors of ours.

    Raises:
        ValueError: There is a tensor that BigBird does not have.
    """
    if for_class(HEADS, model_class) is None:
        raise InvalidValueError(
            f"Google's checkpoints have no counterpart of {model_class.__name__}; they have those "
            f"of {', '.join(each.__name__ for each in HEADS)}"
        )
    mapped = map_names(tensors, table(model_class))
    if mapped.unknown:
        raise InvalidValueError(
            f"Google's checkpoints have no place for {', '.join(mapped.unknown)}"
        )
    arrays: dict[str, Tensor] = {}
    for name, ours in mapped.origins.items():
        tensor, (module, _, kind) = tensors[ours], name.rpartition(".")
        if not module:
            arrays[name] = tensor
        elif module.endswith("LayerNorm"):
            arrays[f"{module}/{'gamma' if kind == 'weight' else 'beta'}"] = tensor
        elif module.endswith("embeddings"):
            arrays[module] = tensor
        else:
            arrays[f"{module}/{'kernel' if kind == 'weight' else 'bias'}"] = (
                tensor.T if kind == "weight" else tensor
            )
    return arrays


def table(model_class: ModelClass) -> dict[str, str]:
    """Return all names of a model, ours to Google's."""
    whole = issubclass(model_class, LongbirdModel)
    base = "" if whole else f"{LongbirdModel.base_model_prefix}."
    body = {base + ours: PREFIX + theirs for ours, theirs in BODY.items()}
    return {**body, **(for_class(HEADS, model_class) or {})}


def is_head(name: str) -> bool:
    """Return whether a variable belongs to a head or to the pooler."""
    return not name.startswith(PREFIX) or name.startswith(f"{PREFIX}pooler/")
