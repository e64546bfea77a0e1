"""Loading and saving foreign checkpoints, without leaving out a tensor quietly."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import CONFIG_MAPPING, GenerationConfig
from transformers.utils import logging

from longbird.checkpoints.bert import BERT, MPNET, ROBERTA
from longbird.checkpoints.bigbird import BIG_BIRD, BIGBIRD_PEGASUS, PLANS
from longbird.checkpoints.files import (
    check_layers,
    check_real,
    folder_of,
    is_path,
    read_arrays,
    read_json,
    read_tensors,
)
from longbird.checkpoints.longformer import LED, LONGFORMER
from longbird.checkpoints.names import Family, matches, renamed
from longbird.checkpoints.tensorflow import from_tensorflow, to_tensorflow
from longbird.graph import Graph, LegacyBigBird

FAMILIES: dict[str, Family] = {
    family.model_type: family
    for family in (BERT, ROBERTA, MPNET, BIG_BIRD, LONGFORMER, BIGBIRD_PEGASUS, LED)
}

KNOWN = ["longbird", "longbird-seq2seq", *FAMILIES]

ARCHITECTURE = (
    "hidden_act norm positions position_padding_id relative_buckets relative_max_distance "
    "embedding_norm rescale_embeddings attention_bias attention_output_bias global_projections "
    "num_global_tokens type_vocab_size layer_norm_eps classifier_activation lm_transform "
    "lm_activation qa_feed_forward qa_hides_question num_answer_types supporting_sentences "
    "max_position_embeddings max_decoder_positions add_cross_attention"
).split()
"""Fields of our configuration that change what a model computes."""

HUB = ("cache_dir", "revision", "token", "local_files_only", "force_download")
"""Options of `from_pretrained` about a download."""

WITHOUT_EFFECT = ("use_safetensors", "low_cpu_mem_usage", "trust_remote_code")
"""Options of `from_pretrained` that change nothing here: no code and no pickle is ever read."""

logger = logging.get_logger(__name__)


def is_foreign(path: str | os.PathLike[str], options: dict[str, Any]) -> bool:
    """Is this a checkpoint of another library, rather than one that Longbird saved?"""
    if str(path).endswith(".npz"):
        return True
    if options.get("config") is not None:
        return False
    file = Path(path, options.get("subfolder") or "") / "config.json"
    if Path(path).exists():
        model_type = read_json(file).get("model_type") if file.is_file() else None
        if Path(path).is_dir() and not file.is_file():
            raise FileNotFoundError(f"{path} has no config.json")
        if Path(path).is_file() or (file.is_file() and model_type not in KNOWN):
            raise ValueError(
                f"{path} must be the folder of a model of type {', '.join(KNOWN)}, received "
                f"{model_type!r}"
            )
    elif is_path(path):
        raise FileNotFoundError(f"there is no folder {path}")
    else:
        model_type = _hub_model_type(path, options)
    return model_type in FAMILIES


def _hub_model_type(path: str | os.PathLike[str], options: dict[str, Any]) -> str | None:
    from transformers import PreTrainedConfig

    given = {name: options[name] for name in HUB if name in options}
    return PreTrainedConfig.get_config_dict(path, **given)[0].get("model_type")


def load_checkpoint(
    path: str | os.PathLike[str],
    model_class: Any,
    *,
    strict: bool = True,
    random_blocks: str = "seeded",
    graph: Graph | list[Graph] | None = None,
    config: Any = None,
    dtype: torch.dtype | str | None = None,
    **changes: Any,
) -> Any:
    """Loads a checkpoint of BigBird, BigBird-Pegasus, Longformer, LED, BERT, RoBERTa or MPNet.

    Args:
        path: A folder with config.json and safetensors, as `save_pretrained` of transformers
            writes it; the name of a model on the hub; or an .npz file with the variables of
            Google's BigBird, which needs `config`.
        model_class: The Longbird class to load into.
        strict: Raise where tensors are missing or left over; if False, list them and go on.
        random_blocks: What the random blocks of BigBird are: "seeded" as the checkpoint was
            trained, or "hf_eval" as transformers evaluates it (all are block 0).
        graph: Another graph than that of the checkpoint.
        config: The configuration, for an .npz file.
        dtype: Of the model; float32 by default, that of the file if "auto".
        **changes: Fields of the configuration to change, such as num_labels; and
            ignore_mismatched_sizes=True, for new tensors where the file has other shapes; and for
            `LongbirdModel`, add_pooling_layer.

    Returns:
        The model, in evaluation mode.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: Names or shapes do not fit, or a file is broken or is not safe to read; the
            message says which.

    Examples:
        >>> import longbird as lb, tempfile, transformers
        >>> sizes = dict(hidden_size=32, num_attention_heads=2, intermediate_size=64)
        >>> theirs = transformers.BertModel(transformers.BertConfig(num_hidden_layers=1, **sizes))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     theirs.save_pretrained(folder)
        ...     model = lb.load_checkpoint(folder, lb.LongbirdModel)
        >>> model.config.graph
        Full()
    """
    dtype = changes.pop("torch_dtype", dtype)
    if isinstance(dtype, str) and dtype != "auto":
        dtype = getattr(torch, dtype.removeprefix("torch."), None)
        if not isinstance(dtype, torch.dtype):
            raise ValueError("dtype must be a floating type of torch, or its name")
    other_sizes = changes.pop("ignore_mismatched_sizes", False)
    if changes.pop("device_map", None) not in (None, "cpu", torch.device("cpu")):
        raise ValueError("a checkpoint is loaded on the CPU; move the model with .to(device)")
    subfolder = changes.pop("subfolder", None) or ""
    parts = {name: changes.pop(name) for name in ("add_pooling_layer",) if name in changes}
    hub = {name: changes.pop(name) for name in HUB if name in changes}
    changes = {name: x for name, x in changes.items() if name not in WITHOUT_EFFECT}
    if str(path).endswith(".npz"):
        if config is None:
            raise ValueError("an .npz file has no configuration: give config=LongbirdConfig(...)")
        if not isinstance(config, model_class.config_class):
            raise TypeError(
                f"config must be a {model_class.config_class.__name__}, received "
                f"{type(config).__name__}"
            )
        arrays = read_arrays(Path(path))
        tensors = from_tensorflow(arrays, model_class.__name__)
        if graph is None and not isinstance(config.graph, LegacyBigBird):
            logger.warning_once(
                "Google's checkpoints were trained with LegacyBigBird('google'), and the "
                f"configuration has the graph {config.graph}"
            )
        folder = None
    else:
        folder = folder_of(Path(path) if Path(path).exists() else str(path), **hub) / subfolder
        raw = read_json(folder / "config.json")
        family = _family(raw.get("model_type"))
        try:
            theirs = CONFIG_MAPPING[family.model_type](**raw)
        except Exception as error:  # each configuration checks itself in its own way
            raise ValueError(
                f"{folder / 'config.json'} is no {family.model_type}: {error}"
            ) from error
        known = model_class.config_class()
        if unknown := [name for name in changes if not hasattr(known, name)]:
            raise TypeError(
                f"{', '.join(unknown)}: neither an option of load_checkpoint nor a field of "
                f"{type(known).__name__}"
            )
        fields = {**family.read(theirs, random_blocks), **changes}
        if "num_labels" in changes:
            fields = {
                name: x for name, x in fields.items() if name not in ("id2label", "label2id")
            }
        try:
            config = model_class.config_class(**fields)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{folder / 'config.json'}: {error}") from error
        tensors = _ours(read_tensors(folder), family, model_class.__name__)
    if graph is not None:
        config = type(config)(**{**config.to_dict(), "graph": graph})
    check_layers(str(path), config, len(tensors))
    parts |= pooler_of(model_class, tensors, parts)
    try:
        with torch.device("meta"):  # sizes that the file does not have are not allocated
            empty = model_class(config, **parts)
            if _untied(empty, tensors):
                logger.warning(f"{path} has several tensors where its configuration ties them")
                config.tie_word_embeddings = False
                empty = model_class(config, **parts)
    except (RuntimeError, ValueError, TypeError) as error:
        raise ValueError(f"the configuration of {path} makes no model: {error}") from error
    _checked(empty, tensors, str(path), strict and not other_sizes, other_sizes)
    model = model_class(config, **parts)
    wanted = model.state_dict()
    model.load_state_dict({k: v for k, v in tensors.items() if k in wanted}, strict=False)
    model.tie_weights()
    settings = None if folder is None else folder / "generation_config.json"
    if settings is not None and model.can_generate() and settings.is_file():
        model.generation_config = GenerationConfig.from_dict(read_json(settings))
    kind = next(iter(tensors.values())).dtype if dtype == "auto" else dtype
    return model.to(dtype=kind).eval()


def save_checkpoint(model: Any, path: str | os.PathLike[str], family: str) -> None:
    """Saves a model in the form of another library, if its graph exists there.

    Args:
        model: A Longbird model.
        path: A folder, or an .npz file for family "tensorflow".
        family: "big_bird", "bigbird_pegasus", "longformer", "led", "bert", "roberta", "mpnet", or
            "tensorflow" for the variables of Google's BigBird.

    Raises:
        ValueError: The other library has no such model.

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
    name, tied = type(model).__name__, _tied(model)
    tensors = {k: v.detach() for k, v in model.state_dict().items() if k not in tied}
    if family == "tensorflow":
        arrays = to_tensorflow(tensors, name)
        _check_said(model.config, name, BIG_BIRD, same_graph=False)
        plain: dict[str, Any] = {k: v.cpu().float().numpy() for k, v in arrays.items()}
        np.savez(Path(path), **plain)
        return
    form = _family(family)
    theirs = _check_said(model.config, name, form)
    theirs.architectures = [form.architectures[name]] if name in form.architectures else None
    out = renamed(tensors, form.table(name))
    if lost := [k for k in out if k.startswith("<")]:
        raise ValueError(f"{family} has no place for {', '.join(lost)}")
    out.update({copy: out[name].clone() for copy, name in form.copies.items() if name in out})
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {k: v.contiguous() for k, v in out.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    theirs.save_pretrained(folder)
    if model.can_generate():
        model.generation_config.save_pretrained(folder)


def _check_said(ours: Any, model_class: str, form: Family, same_graph: bool = True) -> Any:
    """Their configuration, if reading it would give ours again: it may lack words for it."""
    theirs = CONFIG_MAPPING[form.model_type](**form.write(ours))
    plans = [type(ours)(**form.read(theirs, plan)) for plan in PLANS]
    kinds = {
        "lm_": ("MaskedLM", "CausalLM", "PreTraining"),
        "classifier_activation": ("SequenceClassification",),
        **dict.fromkeys(("qa_", "num_answer", "supporting"), ("QuestionAnswering",)),
    }
    lost = []
    for name in ARCHITECTURE:
        heads = next((kinds[kind] for kind in kinds if name.startswith(kind)), None)
        if heads is not None and not model_class.endswith(heads):
            continue
        mine, again = (_meaning(config, name) for config in (ours, plans[0]))
        if mine != again:
            lost.append(f"{name}={mine!r} (there: {again!r})")
    if "embeddings.types" in form.body and not ours.type_vocab_size:
        lost.append("type_vocab_size=0 (there: 1 or more)")
    sparse = not ours.is_decoder and same_graph
    if sparse and all(plan.layer_graphs != ours.layer_graphs for plan in plans):
        lost.append(f"graph={ours.graph} (there: {plans[0].graph})")
    if lost:
        raise ValueError(
            f"{form.model_type} has no words for {'; '.join(lost)}. Save the model with "
            "save_pretrained instead"
        )
    return theirs


def _meaning(config: Any, name: str) -> Any:
    """A field, without differences that change no result."""
    match name:
        case "lm_activation":
            return config.lm_activation or config.hidden_act
        case "relative_max_distance":
            return config.relative_buckets and config.relative_max_distance
        case "position_padding_id":
            return config.positions == "padding-aware" and config.absent_id
        case "embedding_norm":  # before or after dropout is for training alone
            return config.embedding_norm != "none"
        case _:
            return getattr(config, name, None)


def pooler_of(model_class: Any, names: Collection[str], given: Mapping[str, Any]) -> Any:
    """The option that leaves out a pooler which the file does not have, with a line that says so.

    It would be random, and look like a trained one.
    """
    if model_class.__name__ != "LongbirdModel" or "add_pooling_layer" in given:
        return {}
    if not names or any("pooler" in name for name in names):
        return {}
    logger.warning("the file has no pooler, so pooler_output is None")
    return {"add_pooling_layer": False}


def wrong_shapes(path: str, wrong: Iterable[tuple[str, Any, Any]]) -> str:
    """A message about tensors (name, shape in the file, shape in the model)."""
    lines = (f"{name}: {list(a)} in the file, {list(b)} in the model" for name, a, b in wrong)
    return (
        f"tensors of {path} have other shapes:\n  "
        + "\n  ".join(sorted(lines))
        + "\nignore_mismatched_sizes=True makes new ones (as for a head with other labels)"
    )


def report(
    path: str, missing: Iterable[str], unexpected: Iterable[str], strict: bool, model_class: str
) -> None:
    """Raises if a tensor is missing or left over, or lists them if not `strict`."""
    unexpected = list(unexpected)
    # A model whose head has no pooler leaves out the pooler of the checkpoint: a visible line.
    if unused := [name for name in unexpected if ".pooler." in f".{name}."]:
        logger.warning(f"{model_class} has no use for {', '.join(sorted(unused))}")
        unexpected = [name for name in unexpected if name not in unused]
    lines = [
        f"  {what}: {', '.join(sorted(names))}"
        for what, names in (("missing", list(missing)), ("left over", unexpected))
        if names
    ]
    if not lines:
        return
    text = f"the tensors of {path} do not fit the model:\n" + "\n".join(lines)
    if strict:
        raise ValueError(
            f"{text}\nstrict=False goes on without those left over, and with new ones for those "
            "missing (as for a head that is to be trained)"
        )
    logger.warning(text)


def _family(model_type: str | None) -> Family:
    if model_type not in FAMILIES:
        raise ValueError(
            f"the model type must be one of {', '.join(sorted(FAMILIES))}, received {model_type!r}"
        )
    return FAMILIES[model_type]


def _ours(tensors: dict[str, Tensor], family: Family, model_class: str) -> dict[str, Tensor]:
    """Their tensors under our names, those that are copies or of no use left out."""
    # What was once converted from TensorFlow names the parts of a norm as TensorFlow does.
    for old, new in (("gamma", "weight"), ("beta", "bias")):
        modern = {
            name: re.sub(rf"LayerNorm\.{old}$", f"LayerNorm.{new}", name) for name in tensors
        }
        if twice := sorted(x for x in modern if modern[x] != x and modern[x] in tensors):
            raise ValueError(f"the file has tensors under two names: {', '.join(twice)}")
        tensors = {modern[name]: x for name, x in tensors.items()}
    for copy, original in family.copies.items():
        if copy in tensors:
            copied = tensors.pop(copy)
            tensors.setdefault(original, copied)  # what is stored under its own name counts
    tensors = {name: x for name, x in tensors.items() if not matches(name, family.unused)}
    table = {theirs: ours for ours, theirs in family.table(model_class).items()}
    # A model without a head is stored without the prefix, and may be loaded into one with a head;
    # and the other way round.
    for theirs, ours in list(table.items()):
        if theirs.startswith(family.prefix):
            table.setdefault(theirs.removeprefix(family.prefix), ours)
    if model_class in ("LongbirdModel", "LongbirdSeq2SeqModel"):
        table.update({family.prefix + theirs: ours for theirs, ours in table.items()})
    return renamed(tensors, table)


def _untied(model: Any, tensors: dict[str, Tensor]) -> bool:
    """Has the file different tensors under names that the model ties? Then each gets its own."""
    ties = model.all_tied_weights_keys
    both = [(a, b) for a, b in ties.items() if a in tensors and b in tensors]
    if all(torch.equal(tensors[a], tensors[b]) for a, b in both):
        return False
    for a, b in ties.items():
        tensors.setdefault(a, tensors[b])
    return True


def _checked(
    model: Any, tensors: dict[str, Tensor], path: str, strict: bool, other_sizes: bool
) -> None:
    """Compares all names and shapes with those of a model."""
    wanted = model.state_dict()
    tied = _tied(model)
    for copy, original in model.all_tied_weights_keys.items():
        # A file holds a tensor with several names once, under any of them.
        if original not in tensors and copy in tensors:
            tensors[original] = tensors[copy]
    unexpected = [name for name in tensors if name not in wanted]
    found = {*tensors, *tied, *(model._keys_to_ignore_on_load_missing or ())}
    missing = [name for name in wanted if name not in found]
    wrong = [
        (name, x.shape, wanted[name].shape)
        for name, x in tensors.items()
        if name in wanted and x.shape != wanted[name].shape
    ]
    for name, x in tensors.items():
        check_real(path, name, x.is_floating_point())
    if wrong and not other_sizes:
        raise ValueError(wrong_shapes(path, wrong))
    for name, *_ in wrong:
        missing.append(name)
        del tensors[name]
    report(path, missing, unexpected, strict, type(model).__name__)


def _tied(model: Any) -> set[str]:
    """Names of tensors that share the memory of others."""
    return set(model.all_tied_weights_keys)
