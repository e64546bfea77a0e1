"""Google's original BigBird: TensorFlow variable names in an .npz file.

Kernels are stored transposed, norms as gamma and beta, and embeddings without a suffix.
"""

from __future__ import annotations

from torch import Tensor

from longbird.checkpoints.bert import LAYERS
from longbird.checkpoints.names import renamed

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
}
HEADS = {
    "LongbirdModel": {},
    "LongbirdForEmbedding": {},
    "LongbirdForMaskedLM": LM,
    "LongbirdForPreTraining": LM,
}
SPECIAL = {
    "lm_head.bias": "cls/predictions/output_bias",
    "next_sentence.weight": "cls/seq_relationship/output_weights",
    "next_sentence.bias": "cls/seq_relationship/output_bias",
}
"""Tensors that follow no rule; none is transposed."""

SUFFIXES = {"kernel": "weight", "gamma": "weight", "beta": "bias", "bias": "bias"}


def from_tensorflow(arrays: dict[str, Tensor], model_class: str) -> dict[str, Tensor]:
    """Our tensors; those without a name of ours keep theirs in angle brackets."""
    special = {theirs: ours for ours, theirs in SPECIAL.items()}
    tensors: dict[str, Tensor] = {}
    for name, array in arrays.items():
        module, _, last = name.rpartition("/")
        if name == "global_step" or last in ("adam_m", "adam_v"):  # of the optimizer
            continue
        if name in special:
            tensors[name] = array
        elif last in SUFFIXES:
            tensors[f"{module}.{SUFFIXES[last]}"] = array.T if last == "kernel" else array
        else:
            tensors[f"{name}.weight"] = array
    inverse = {theirs: ours for ours, theirs in table(model_class).items()}
    return renamed(tensors, {**inverse, **special})


def to_tensorflow(tensors: dict[str, Tensor], model_class: str) -> dict[str, Tensor]:
    """Their tensors."""
    arrays: dict[str, Tensor] = {}
    for name, tensor in renamed(tensors, {**table(model_class), **SPECIAL}).items():
        module, _, kind = name.rpartition(".")
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


def table(model_class: str) -> dict[str, str]:
    """All names of a model that follow the rules: ours to theirs."""
    if model_class not in HEADS:
        raise ValueError(
            f"Google's checkpoints have no counterpart of {model_class}; they have those of "
            f"{', '.join(HEADS)}"
        )
    base = "" if model_class == "LongbirdModel" else "longbird."
    body = {base + ours: f"bert/{theirs}" for ours, theirs in BODY.items()}
    return {**body, **HEADS[model_class]}
