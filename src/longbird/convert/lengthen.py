"""Long models made of short ones: positions tiled, everything else copied, and compared."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import transformers

from longbird import models
from longbird.checkpoints.configs import foreign_config, generation_settings
from longbird.checkpoints.detect import FAMILIES, find_folder
from longbird.checkpoints.files import Stored, read_json, stored_tensors
from longbird.checkpoints.names import Family
from longbird.checkpoints.report import head_names
from longbird.checkpoints.sentence_transformers import read_pipeline
from longbird.checkpoints.sources import check_layers, foreign_source, own_source
from longbird.checkpoints.writing import writing_folder
from longbird.convert.beside import TOKENIZER_FILES, copy_pipeline, copy_tokenizer
from longbird.convert.certificate import Certificate, TensorRecord, differences
from longbird.convert.room import check_room
from longbird.graph import Full, Graph, as_graph, bigbird
from longbird.hf.tasks import ENCODER_TASKS as TASKS
from longbird.models.fields import RULES
from longbird.models.pretrained import without_their_report

SOURCES = ("bert", "roberta", "mpnet", "longbird")
FIRST_LOADED = ("big_bird", "longformer")
"""What is not run by transformers as it was trained, or has its own long positions."""

HEAD_FIELDS = {
    "num_labels": ("sequence-classification", "token-classification"),
    "problem_type": ("sequence-classification",),
    "num_answer_types": ("question-answering",),
    "supporting_sentences": ("question-answering",),
    "pooling": ("embedding",),
}
"""Fields of a configuration that a new head needs, and the tasks that have them."""


def convert_checkpoint(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    length: int = 4096,
    *,
    graph: Graph | str | None = None,
    task: str | None = None,
    global_projections: bool = False,
    new_head: bool = False,
    tolerance: float = 2e-5,
    **head: Any,
) -> Certificate:
    """Makes a model for long documents of a BERT, RoBERTa or MPNet, and measures how exact it is.

    The position table is tiled, all other tensors are copied. The new model is written, read back,
    and compared with the original, run by transformers, at lengths up to its own.

    Args:
        source: A folder with config.json and safetensors, as transformers or Longbird saves it;
            or the name of a model on the hub.
        out: The folder to write; it must be empty, or not exist.
        length: Tokens that the new model has positions for.
        graph: Of the new model. By default `longbird.bigbird()`, or the graph of the source where
            that is not full.
        task: One of `longbird.convert.TASKS`; by default what the source says it is for.
        global_projections: Longformer: global tokens get projections of their own, copied from
            those of the other tokens.
        new_head: Allow a head that the source lacks; it has random weights, to be trained.
        tolerance: The largest difference that is accepted, with the graph of the source.
        **head: What a new head needs to know: num_labels, problem_type, num_answer_types,
            supporting_sentences or pooling. They allow a new head, too.

    Returns:
        The certificate, which is also in the folder, as certificate.json and certificate.md.

    Raises:
        FileExistsError: There is something in `out`.
        ValueError: A tensor is missing or has another shape, the new model is not exact, it would
            not fit into memory or on the disk, or a file is broken or not safe to read. Nothing is
            written then.
        OSError: It cannot be written; nothing partial is left.

    Examples:
        >>> import longbird as lb, tempfile, transformers
        >>> sizes = dict(hidden_size=32, num_attention_heads=2, intermediate_size=64)
        >>> theirs = transformers.BertModel(transformers.BertConfig(num_hidden_layers=1, **sizes))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     theirs.save_pretrained(f"{folder}/short")
        ...     certificate = lb.convert_checkpoint(f"{folder}/short", f"{folder}/long", 1000)
        ...     model = lb.LongbirdModel.from_pretrained(f"{folder}/long")
        >>> certificate.tokens, model.embeddings.positions
        ((512, 1000), Embedding(1000, 32))
    """
    out = Path(out)
    if out.is_file() or out.is_symlink() or (out.is_dir() and any(out.iterdir())) or not out.name:
        raise FileExistsError(f"{out} exists already: name another folder, or delete it first")
    RULES["max_position_embeddings"].check("length", length)
    folder = find_folder(source, {})
    family, task = _family(folder), _task(folder, task)
    cls = getattr(models, TASKS[task])
    _check_head_fields(task, head)
    new_head = new_head or bool(head)
    before = _config_before(folder, family, cls)
    own = before.longest_document
    if not 0 < own <= length:
        raise ValueError(f"length must be at least the {own} of {source}, received {length}")

    files = sorted({file for pattern in TOKENIZER_FILES for file in folder.glob(pattern)})
    files = [file for file in files if file.is_file()]
    tokenizer: Any = None
    if files:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    pipeline = read_pipeline(folder) if task == "embedding" else None
    if pipeline is not None and "pooling" not in head:
        head["pooling"] = pipeline.pooling
    labels = {"id2label": None, "label2id": None} if "num_labels" in head else {}
    config = cls.config_class.from_dict(
        {
            **before.to_dict(),
            "graph": bigbird() if graph is None and before.graph == Full() else before.graph,
            "max_position_embeddings": before.max_position_embeddings - own + length,
            "global_projections": global_projections or before.global_projections,
            "sep_token_id": getattr(tokenizer, "sep_token_id", before.sep_token_id),
            **({} if graph is None else {"graph": as_graph(graph)}),
            **labels,
        },
        **head,
    )
    stored = stored_tensors(folder)
    check_layers(folder, stored, config)
    with torch.device("meta"):
        empty = cls(config)
    found = own_source(stored, empty) if family is None else foreign_source(folder, family, cls)
    found.check(folder)
    origins = _origins(empty, found.tensors)
    _check_complete(source, empty, before, origins, new_head)
    check_room(out, empty, sum(file.stat().st_size for file in folder.glob("*.safetensors")))

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)  # so that a new head is the same every time
        model = cls(config).eval()
    records = _fill(model, origins, own)
    records += [
        TensorRecord("left out", None, name, list(tensor.stored_shape), None)
        for name, tensor in stored.items()
        if name not in {record.origin for record in records}
    ]
    # A new head has no original to be compared with, but the model under it has.
    new = any(record.status == "new" for record in records)
    compared, outputs = (models.LongbirdModel, ["last_hidden_state"]) if new else (cls, None)
    original = _original(folder, family, compared)
    with writing_folder(out) as written:
        model.save_pretrained(written)
        if model.can_generate() and (settings := generation_settings(folder)) is not None:
            settings.save_pretrained(written)
        notes = copy_tokenizer(tokenizer, files, written, length)
        if pipeline is not None:
            notes += copy_pipeline(pipeline, folder, written)
        exact = cls.from_pretrained(written, graph=before.graph)
        certificate = Certificate(
            source=str(source),
            sha256={
                file.name: hashlib.sha256(file.read_bytes()).hexdigest()
                for file in (folder / "config.json", *sorted(folder.glob("*.safetensors")))
            },
            model=(type(original).__name__, cls.__name__),
            tokens=(own, length),
            graph=(str(before.graph), str(model.config.graph)),
            tensors=records,
            differences=list(
                differences(
                    original, exact, model, own, outputs=outputs,
                    choices=compared is models.LongbirdForMultipleChoice,
                )
            ),
            tolerance=tolerance,
            tokenizer=notes,
            versions={name: version(name) for name in ("longbird", "torch", "transformers")},
        )  # fmt: skip
        if not certificate.exact:
            raise ValueError(
                "the new model was not written, because with the graph of the original its "
                f"outputs differ by more than {tolerance:.1e}; a larger tolerance (--tolerance) "
                f"accepts more, unless they are not numbers:\n\n{certificate.markdown()}"
            )
        (written / "certificate.json").write_text(certificate.json(), "utf-8")
        (written / "certificate.md").write_text(certificate.markdown(), "utf-8")
    return certificate


# ---- what the source is


def _family(folder: Path) -> Family | None:
    """Where the source comes from: a family, or None for Longbird."""
    model_type = read_json(folder / "config.json").get("model_type")
    if isinstance(model_type, str) and model_type in SOURCES:
        return FAMILIES.get(model_type)
    advice = ""
    if model_type in FIRST_LOADED:
        advice = (
            ". It becomes a model of Longbird first: "
            f'longbird.LongbirdModel.from_pretrained("{folder}").save_pretrained(new_folder), or '
            "another class of longbird that keeps its head; then convert new_folder"
        )
    elif model_type in FAMILIES or model_type == models.LongbirdSeq2SeqConfig.model_type:
        advice = "; encoder-decoders are not made longer"
    raise ValueError(
        f"{folder} has the model type {model_type!r}, expected one of {', '.join(SOURCES)}{advice}"
    )


def _task(folder: Path, task: str | None) -> str:
    """The task that is asked for, or what the source says it is for."""
    raw = read_json(folder / "config.json")
    family, named = FAMILIES.get(raw["model_type"]), raw.get("architectures") or []
    if task is None:
        classes = {name: getattr(models, ours) for name, ours in TASKS.items()}
        for name, ours in classes.items():
            theirs = ours.__name__ if family is None else family.architectures.get(ours)
            if theirs in (named if isinstance(named, list) else [named]):
                return name
        raise ValueError(
            f"{folder / 'config.json'} has the architectures {named}, which says nothing about a "
            f"task; choose one with task=... (--task): {', '.join(TASKS)}"
        )
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}, received {task}")
    return task


def _check_head_fields(task: str, head: Mapping[str, Any]) -> None:
    """Raises for a field that no head has, or that of another task."""
    for name in head:
        if name not in HEAD_FIELDS:
            raise TypeError(
                f"convert_checkpoint has no option {name}; those of a new head are "
                f"{', '.join(HEAD_FIELDS)}"
            )
        if task not in HEAD_FIELDS[name]:
            raise ValueError(
                f"{name} is for the task {' or '.join(HEAD_FIELDS[name])}, and the task is "
                f"{task}: choose another with task=... (--task), or leave {name} out"
            )


def _config_before(folder: Path, family: Family | None, cls: Any) -> Any:
    """The configuration of the source, as one of ours."""
    if family is None:
        return cls.config_class.from_dict(read_json(folder / "config.json"))
    only_its_tokenizer_knows = {"sep_token_id": None}
    return foreign_config(folder, family, cls, "seeded", only_its_tokenizer_knows)


def _original(folder: Path, family: Family | None, cls: Any) -> Any:
    """The model to compare with, which the certificate reports on rather than a line."""
    with without_their_report():
        if family is None:
            return cls.filled(folder, dtype=torch.float32)[0]
        theirs = getattr(transformers, family.architectures[cls])
        return theirs.from_pretrained(folder, dtype=torch.float32, use_safetensors=True)


# ---- what becomes of its tensors


def _origins(model: Any, tensors: Mapping[str, Stored]) -> dict[str, Stored | None]:
    """By our name: the tensor that it is made of, if there is one."""
    ties = model.all_tied_weights_keys
    # A file holds a tensor with several names once, under any of them.
    named = {**{ties[k]: x for k, x in tensors.items() if k in ties}, **tensors}
    return {
        name: named.get(name) or named.get(name.replace("_global.", "."))
        for name in model.state_dict()
        if name not in ties
    }


def _fits(name: str, stored: Stored | None, shape: tuple[int, ...]) -> bool:
    if stored is None:
        return False
    tiled = name.endswith("embeddings.positions.weight") and stored.shape[1:] == shape[1:]
    return tiled or stored.shape == shape


def _check_complete(
    source: Any, model: Any, before: Any, origins: Mapping[str, Stored | None], new_head: bool
) -> None:
    """Raises if a tensor is neither there nor may be new."""
    wanted = {name: tuple(x.shape) for name, x in model.state_dict().items() if name in origins}
    new = [name for name, shape in wanted.items() if not _fits(name, origins[name], shape)]
    positions = [name for name in wanted if name.endswith("embeddings.positions.weight")]
    for name in positions:
        stored = origins[name]
        if stored is not None and stored.shape[0] != before.max_position_embeddings:
            new.append(name)
    heads = head_names(model, new)
    body = [name for name in new if name not in heads]
    if body:
        raise ValueError(
            f"{source} does not fit its own config.json: {_listed(body, origins, wanted)}. The "
            "encoder must be complete; save the source again"
        )
    if new and not new_head:
        raise ValueError(
            f"{source} lacks the head of {type(model).__name__}, or has it in another shape: "
            f"{_listed(new, origins, wanted)}. new_head=True (--new-head) makes a new one, to be "
            "trained; the tasks model and embedding have no head"
        )


def _listed(names: list[str], origins: Mapping[str, Stored | None], wanted: Any) -> str:
    texts: list[str] = []
    for name in names:
        stored = origins[name]
        there = "missing" if stored is None else f"{list(stored.shape)} in the file"
        texts.append(f"{name} {list(wanted[name])} ({there})")
    return ", ".join(texts)


def _fill(model: Any, origins: Mapping[str, Stored | None], own: int) -> list[TensorRecord]:
    """Copies tensors into the model, positions tiled, and says what became of each."""
    places = model.state_dict()
    records: list[TensorRecord] = []
    for name, stored in origins.items():
        place = places[name]
        after = list(place.shape)
        if stored is None or not _fits(name, stored, tuple(after)):
            records.append(TensorRecord("new", name, None, None, after))
            continue
        value, status = stored.read(), "copied"
        if value.shape != place.shape:
            # The first rows of RoBERTa's table belong to padding, and stay.
            first, rows = len(value) - own, torch.arange(len(place))
            rows[first:] = first + (rows[first:] - first) % own
            value, status = value[rows], "extended"
        elif stored.shape != stored.stored_shape:
            status = "cut"
        with torch.no_grad():
            place.copy_(value)
        records.append(TensorRecord(status, name, stored.name, list(stored.stored_shape), after))
    model.tie_weights()
    return records
