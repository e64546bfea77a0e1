"""Long models made of short ones: positions tiled, everything else copied, and compared."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from longbird import models
from longbird.checkpoints.files import check_layers, folder_of, read_json, read_tensors
from longbird.checkpoints.load import FAMILIES, _ours
from longbird.checkpoints.names import Family
from longbird.convert.certificate import Certificate, TensorRecord, differences
from longbird.graph import Full, Graph, bigbird

SOURCES = ("bert", "roberta", "mpnet", "longbird")
TASKS = {
    "model": "LongbirdModel",
    "embedding": "LongbirdForEmbedding",
    "masked-lm": "LongbirdForMaskedLM",
    "pretraining": "LongbirdForPreTraining",
    "causal-lm": "LongbirdForCausalLM",
    "sequence-classification": "LongbirdForSequenceClassification",
    "token-classification": "LongbirdForTokenClassification",
    "multiple-choice": "LongbirdForMultipleChoice",
    "question-answering": "LongbirdForQuestionAnswering",
}
# "*.model" is what sentencepiece calls its files.
TOKENIZER_FILES = ("tokenizer*", "vocab.*", "merges.txt", "*_tokens*.json", "*.model")


def convert_checkpoint(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    length: int = 4096,
    *,
    graph: Graph | None = None,
    task: str | None = None,
    global_projections: bool = False,
    new_head: bool = False,
    tolerance: float = 2e-5,
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

    Returns:
        The certificate, which is also in the folder, as certificate.json and certificate.md.

    Raises:
        FileExistsError: There is something in `out`.
        ValueError: A tensor is missing or has another shape, the new model is not exact, or a file
            is broken or not safe to read. Nothing is written then.

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
    folder, out = folder_of(os.fspath(source)), Path(out)
    if out.is_file() or out.is_symlink() or (out.is_dir() and any(out.iterdir())) or not out.name:
        raise FileExistsError(f"{out} exists already: name another folder, or delete it first")
    if not isinstance(length, int):
        raise TypeError(f"length must be an integer, received {length!r}")
    family, cls, before = _read_config(folder, task)
    offset = before.absent_id + 1 if before.positions == "padding-aware" else 0
    own = before.max_position_embeddings - offset
    if not 0 < own <= length:
        raise ValueError(f"length must be at least the {own} of {source}, received {length}")
    tensors = read_tensors(folder)
    check_layers(folder, before, len(tensors))
    if before.vocab_size > max((len(x) for x in tensors.values() if x.ndim), default=0):
        raise ValueError(f"no tensor of {source} has its vocabulary of {before.vocab_size}")
    files = sorted({file for pattern in TOKENIZER_FILES for file in folder.glob(pattern)})
    files = [file for file in files if file.is_file()]
    tokenizer: Any = None
    if files:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    changes = {
        "graph": graph or (bigbird() if before.graph == Full() else before.graph),
        "max_position_embeddings": length + offset,
        "global_projections": global_projections or before.global_projections,
        "sep_token_id": getattr(tokenizer, "sep_token_id", before.sep_token_id),
    }
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)  # so that a new head is the same every time
        model = cls(cls.config_class(**{**before.to_dict(), **changes})).eval()
    records = _fill(model, tensors, family, before.max_position_embeddings, offset)
    new = [str(record.name) for record in records if record.status == "new"]
    body = [x for x in new if x.startswith("longbird.") or cls is models.LongbirdModel]
    if (new and not new_head) or any("pooler" not in name for name in body):
        raise ValueError(
            f"{source} lacks tensors that {cls.__name__} has, or has them in another shape: "
            f"{', '.join(new)}. A head that is missing is made with new_head=True "
            "(--new-head), to be trained; the task embedding has none"
        )

    # A new head has no original to be compared with, but the model under it has.
    compared, outputs = ("LongbirdModel", ["last_hidden_state"]) if new else (cls.__name__, None)
    if family is None:
        library, options = models, {"strict": False}
    else:
        library, options = transformers, {"use_safetensors": True}
        compared = family.architectures[compared]
    original = getattr(library, compared).from_pretrained(folder, dtype=torch.float32, **options)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
        written = Path(scratch, out.name)
        model.save_pretrained(written)
        if model.can_generate() and (folder / "generation_config.json").is_file():
            shutil.copy(folder / "generation_config.json", written)
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
            differences=list(differences(original, exact, model, own, outputs=outputs)),
            tolerance=tolerance,
            tokenizer=_copy_tokenizer(tokenizer, files, written, length),
            versions={name: version(name) for name in ("longbird", "torch", "transformers")},
        )
        if not certificate.exact:
            raise ValueError(
                "the new model was not written, because with the graph of the original its "
                f"outputs differ by more than {tolerance:.1e}:\n\n{certificate.markdown()}"
            )
        (written / "certificate.json").write_text(certificate.json(), "utf-8")
        (written / "certificate.md").write_text(certificate.markdown(), "utf-8")
        os.replace(written, out)
    return certificate


def _read_config(folder: Path, task: str | None) -> tuple[Family | None, Any, Any]:
    """Where the source comes from, our class for it, and its configuration as one of ours."""
    raw = read_json(folder / "config.json")
    if raw.get("model_type") not in SOURCES:
        raise ValueError(
            f"{folder} has the model type {raw.get('model_type')!r}, expected one of "
            f"{', '.join(SOURCES)}. Others become models of Longbird first: "
            "longbird.load_checkpoint(folder, model_class).save_pretrained(new_folder)"
        )
    family = FAMILIES.get(raw["model_type"])
    if task is None:
        named = raw.get("architectures") or []
        named = named if isinstance(named, list) else [named]
        known = {x: x for x in TASKS.values()} if family is None else family.architectures
        task = next((x for x, ours in TASKS.items() if known.get(ours) in named), None)
    if task not in TASKS:
        raise ValueError(
            f"task must be one of {', '.join(TASKS)}, received {task}; the architectures in "
            f"{folder / 'config.json'} are {raw.get('architectures')}"
        )
    cls = getattr(models, TASKS[task])
    if family is not None:
        theirs = transformers.CONFIG_MAPPING[family.model_type](**raw)
        raw = {**family.read(theirs, "seeded"), "sep_token_id": None}  # only its tokenizer knows
    return family, cls, cls.config_class(**raw)


def _fill(
    model: Any, tensors: dict[str, Tensor], family: Family | None, old_rows: int, offset: int
) -> list[TensorRecord]:
    """Copies tensors into the model, positions tiled, and says what became of each."""
    wanted = {k: v for k, v in model.state_dict().items() if k not in model.all_tied_weights_keys}
    if family is None:
        bare = {name.removeprefix("longbird."): name for name in tensors}
        origins: Any = {name: bare.get(name.removeprefix("longbird.")) for name in wanted}
    else:
        named = {id(tensor): name for name, tensor in tensors.items()}
        renamed = _ours(dict(tensors), family, type(model).__name__)
        origins = {name: named[id(tensor)] for name, tensor in renamed.items()}
    records: list[TensorRecord] = []
    for name, place in wanted.items():
        origin = origins.get(name) or origins.get(name.replace("_global.", "."))
        value = tensors.get(origin)
        before, after = None if value is None else list(value.shape), list(place.shape)
        if name.endswith("embeddings.positions.weight") and before and before[0] == old_rows:
            # The first rows of RoBERTa's table belong to padding, and stay.
            rows = torch.arange(len(place))
            rows[offset:] = offset + (rows[offset:] - offset) % (old_rows - offset)
            value = tensors[origin][rows]
        if value is None or list(value.shape) != after:
            records.append(TensorRecord("new", name, None, None, after))
            continue
        with torch.no_grad():
            place.copy_(value)
        status = "copied" if before == after else "extended"
        records.append(TensorRecord(status, name, origin, before, after))
    model.tie_weights()
    used = {record.origin for record in records}
    return records + [
        TensorRecord("left out", None, name, list(tensor.shape), None)
        for name, tensor in tensors.items()
        if name not in used
    ]


def _copy_tokenizer(tokenizer: Any, files: list[Path], written: Path, length: int) -> list[str]:
    """Copies the files of a tokenizer, lifts what would cut long documents, and says so."""
    if not files:
        return ["The source has no tokenizer."]
    for file in files:
        shutil.copyfile(file, written / file.name)
    notes = [f"Copied {', '.join(file.name for file in files)}."]
    file = written / "tokenizer_config.json"
    settings = {"tokenizer_class": type(tokenizer).__name__, "model_max_length": "not set"}
    settings |= read_json(file) if file.is_file() else {}
    notes.append(
        f"tokenizer_config.json: model_max_length was {settings['model_max_length']}, where long "
        f"documents were cut, and is {length}."
    )
    settings = {**settings, "model_max_length": length}
    file.write_text(json.dumps(settings, indent=1, ensure_ascii=False), "utf-8")
    file = written / "tokenizer.json"
    rules = read_json(file) if file.is_file() else {}
    if rules.get("truncation"):
        cut = rules["truncation"].get("max_length")
        notes.append(f"tokenizer.json: cut all documents at {cut} tokens, and does not any more.")
        file.write_text(json.dumps({**rules, "truncation": None}, ensure_ascii=False), "utf-8")
    return notes
