"""Save a model as a checkpoint of another library, if that has such a model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import save_file
from torch import Tensor
from transformers import CONFIG_MAPPING

from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.files.paths import check_path
from longbird.files.writing import writing_file, writing_folder
from longbird.models import (
    LongbirdForCausalLM,
    LongbirdForMaskedLM,
    LongbirdForPreTraining,
    LongbirdForQuestionAnswering,
    LongbirdForSequenceClassification,
    LongbirdSeq2SeqForQuestionAnswering,
    LongbirdSeq2SeqForSequenceClassification,
)
from longbird.models.checkpoints.bigbird import BIG_BIRD, PLANS
from longbird.models.checkpoints.folders import FAMILIES
from longbird.models.checkpoints.names import Family, ModelClass, for_class, map_names
from longbird.models.checkpoints.tensorflow import to_tensorflow
from longbird.models.config import LongbirdConfig
from longbird.models.pretrained import LongbirdPreTrainedModel

TENSORFLOW = "tensorflow"
"""The name of Google's format, which is not a model type of transformers."""

ARCHITECTURE = (
    "hidden_act norm positions position_padding_id relative_buckets relative_max_distance "
    "embedding_norm rescale_embeddings attention_bias attention_output_bias global_projections "
    "num_global_tokens type_vocab_size layer_norm_eps max_position_embeddings "
    "max_decoder_positions add_cross_attention quantize"
).split()
"""Fields of our configuration that change what a model computes."""

LANGUAGE_MODELS = (LongbirdForMaskedLM, LongbirdForCausalLM, LongbirdForPreTraining)
CLASSIFIERS = (LongbirdForSequenceClassification, LongbirdSeq2SeqForSequenceClassification)
ANSWERERS = (LongbirdForQuestionAnswering, LongbirdSeq2SeqForQuestionAnswering)
OF_HEADS: dict[str, tuple[ModelClass, ...]] = {
    "lm_transform": LANGUAGE_MODELS,
    "lm_activation": LANGUAGE_MODELS,
    "classifier_activation": CLASSIFIERS,
    "qa_feed_forward": ANSWERERS,
    "qa_hides_question": ANSWERERS,
    "num_answer_types": ANSWERERS,
    "supporting_sentences": ANSWERERS,
}
"""Fields that change what some heads compute."""


def save_checkpoint(model: Any, path: str | os.PathLike[str], family: str) -> None:
    """Save a model as a checkpoint of another library, if its graph exists there.

    Args:
        model: A Longbird model.
        path: A folder, or an .npz file for family "tensorflow".
        family: "big_bird", "bigbird_pegasus", "longformer", "led", "bert", "roberta", "mpnet", or
            "tensorflow" for the variables of Google's BigBird.

    Raises:
        TypeError: `model` is not a Longbird model.
        ValueError: There is no such family, or the library has no such model.
        OSError: The checkpoint cannot be written; nothing partial is left.

    Examples:
        >>> import longbird as lb, tempfile, transformers
        >>> sizes = dict(hidden_size=32, num_attention_heads=2, intermediate_size=64)
        >>> graph = lb.longformer(window=16)
        >>> config = lb.LongbirdConfig(
        ...     num_hidden_layers=1,
        ...     graph=graph,
        ...     global_projections=True,
        ...     positions="padding-aware",
        ...     **sizes,
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lb.save_checkpoint(lb.LongbirdModel(config), folder, "longformer")
        ...     theirs = transformers.LongformerModel.from_pretrained(folder)
        >>> theirs.config.attention_window
        [16]
    """
    if not isinstance(model, LongbirdPreTrainedModel):
        raise InvalidTypeError(
            "model must be one of Longbird, such as a LongbirdModel; received "
            f"{type(model).__name__}"
        )
    check_path(path, "the folder, or the .npz file, to write")
    if family == TENSORFLOW:
        _save_arrays(model, path)
    elif family in FAMILIES:
        _save_folder(model, path, FAMILIES[family])
    else:
        raise InvalidValueError(
            f"family must be one of {', '.join((*FAMILIES, TENSORFLOW))}; received {family!r:.80}"
        )


def _save_arrays(model: LongbirdPreTrainedModel, path: str | os.PathLike[str]) -> None:
    arrays = to_tensorflow(_tensors(model), type(model))
    _theirs(model.config, type(model), BIG_BIRD, same_graph=False)
    plain: dict[str, Any] = {k: v.cpu().float().numpy() for k, v in arrays.items()}
    file = Path(path) if str(path).endswith(".npz") else Path(f"{path}.npz")
    with writing_file(file) as unfinished:
        np.savez(unfinished, **plain)


def _save_folder(
    model: LongbirdPreTrainedModel, path: str | os.PathLike[str], form: Family
) -> None:
    cls = type(model)
    architecture = for_class(form.architectures, cls)
    if architecture is None:
        raise form.no_counterpart(cls)
    theirs = _theirs(model.config, cls, form)
    theirs.architectures = [architecture]
    tensors = _tensors(model)
    mapped = map_names(tensors, form.table(cls))
    if mapped.unknown:
        raise InvalidValueError(f"{form.model_type} has no place for {', '.join(mapped.unknown)}")
    out = {name: tensors[ours].contiguous() for name, ours in mapped.origins.items()}
    out.update({copy: out[name].clone() for copy, name in form.copies.items() if name in out})
    with writing_folder(path) as folder:
        save_file(out, folder / "model.safetensors", {"format": "pt"})
        theirs.save_pretrained(folder)
        if model.can_generate():
            model.generation_config.save_pretrained(folder)


def _tensors(model: LongbirdPreTrainedModel) -> dict[str, Tensor]:
    """The tensors to store; a tied tensor is stored once."""
    tied = set(model.all_tied_weights_keys)
    return {k: v.detach() for k, v in model.state_dict().items() if k not in tied}


def _theirs(
    ours: LongbirdConfig, model_class: ModelClass, form: Family, same_graph: bool = True
) -> Any:
    """The configuration in the other library; an error if reading it would not give ours again."""
    theirs: Any = CONFIG_MAPPING[form.model_type](**form.write(ours))
    plans = [type(ours)(**form.read(theirs, plan)) for plan in PLANS]
    fields = ARCHITECTURE + [k for k, heads in OF_HEADS.items() if issubclass(model_class, heads)]
    lost: list[str] = []
    for name in fields:
        mine, again = (_meaning(config, name) for config in (ours, plans[0]))
        if mine != again:
            lost.append(f"{name}={mine!r} (there: {again!r})")
    if "embeddings.types" in form.body and not ours.type_vocab_size:
        lost.append("type_vocab_size=0 (there: 1 or more)")
    sparse = not ours.is_decoder and same_graph
    if sparse and all(plan.layer_graphs != ours.layer_graphs for plan in plans):
        lost.append(f"graph={ours.graph} (there: {plans[0].graph})")
    if lost:
        raise InvalidValueError(
            f"{form.model_type} cannot express {'; '.join(lost)}. Save the model with "
            "save_pretrained instead"
        )
    return theirs


def _meaning(config: LongbirdConfig, name: str) -> Any:
    """The value of a field, without differences that change no result."""
    match name:
        case "lm_activation":
            return config.lm_activation or config.hidden_act
        case "relative_max_distance":
            return config.relative_buckets and config.relative_max_distance
        case "position_padding_id":
            return config.positions == "padding-aware" and config.absent_id
        case "embedding_norm":  # before or after dropout matters in training only
            return config.embedding_norm != "none"
        case _:
            return getattr(config, name, None)
