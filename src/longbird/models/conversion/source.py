"""What is made longer: a folder, the model in it, and what stands beside its weights."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from longbird import models
from longbird.errors import InvalidValueError
from longbird.files.digest import sha256_of
from longbird.files.paths import check_path
from longbird.files.sources import is_named, named_folder
from longbird.models.checkpoints.configs import foreign_config
from longbird.models.checkpoints.detect import FAMILIES, find_folder
from longbird.models.checkpoints.files import read_json
from longbird.models.checkpoints.names import Family
from longbird.models.checkpoints.sentence_transformers import Pipeline, read_pipeline
from longbird.models.conversion.beside import tokenizer_files
from longbird.models.integration.tasks import ENCODER_TASKS as TASKS
from longbird.models.pretrained import without_their_report

SOURCES = ("bert", "roberta", "mpnet", "longbird")
FIRST_LOADED = ("big_bird", "longformer")
"""What is not run by transformers as it was trained, or has its own long positions."""


@dataclass(frozen=True)
class Short:
    """A model for short documents."""

    name: str
    """As the caller named it."""
    folder: Path
    family: Family | None
    """None for Longbird."""
    task: str
    config: Any
    """Its configuration, as one of ours."""
    tokenizer: Any
    """None if it has none."""
    pipeline: Pipeline | None
    """What sentence-transformers does with it."""

    @property
    def model_class(self) -> Any:
        """Ours for its task."""
        return getattr(models, TASKS[self.task])

    @property
    def tokens(self) -> int:
        """Those of the longest document that it can read."""
        return self.config.longest_document

    @property
    def weights(self) -> list[Path]:
        """Its files of tensors."""
        return sorted(self.folder.glob("*.safetensors"))

    def sha256(self) -> dict[str, str]:
        """The checksums of its files."""
        files = (self.folder / "config.json", *self.weights)
        return {file.name: sha256_of(file) for file in files}

    def load(self, model_class: Any) -> Any:
        """The model as transformers runs it; the certificate reports on it rather than a line."""
        with without_their_report():
            if self.family is None:
                return model_class.filled(self.folder, dtype=torch.float32)[0]
            theirs = getattr(transformers, self.family.architectures[model_class])
            return theirs.from_pretrained(self.folder, dtype=torch.float32, use_safetensors=True)


def open_source(source: str | os.PathLike[str], task: str | None) -> Short:
    """Finds the source, and reads all but its tensors.

    Raises:
        FileNotFoundError: There is no such folder, and no such model on the hub.
        OSError: A model that is known by name could not be downloaded.
        ValueError: It is of a type that cannot be made longer, or a file of it is broken.
    """
    check_path(source)
    if is_named(source):
        folder, task = named_folder(str(source)), task or "embedding"  # what they were trained for
    else:
        folder = find_folder(source, {})
    family = _family(folder)
    task = _task(folder, task)
    config = _config(folder, family, getattr(models, TASKS[task]))
    if task == "causal-lm" and not config.causal:
        raise InvalidValueError(
            f"{source} is an encoder, and a model for causal-lm shows no token those that follow "
            "it, so that its outputs cannot be those of the source; choose another task with "
            "task=... (--task), such as masked-lm"
        )
    return Short(
        str(source),
        folder,
        family,
        task,
        config=config,
        tokenizer=_tokenizer(folder) if tokenizer_files(folder) else None,
        pipeline=read_pipeline(folder) if task == "embedding" else None,
    )


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
    raise InvalidValueError(
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
        raise InvalidValueError(
            f"{folder / 'config.json'} has the architectures {named}, which says nothing about a "
            f"task; choose one with task=... (--task): {', '.join(TASKS)}"
        )
    if task not in TASKS:
        raise InvalidValueError(f"task must be one of {', '.join(TASKS)}, received {task}")
    return task


def _tokenizer(folder: Path) -> Any:
    """The tokenizer in a folder.

    Raises:
        ValueError: It cannot be read. tokenizers has exceptions of many types for that.
    """
    for name in ("tokenizer_config.json", "tokenizer.json"):
        if (folder / name).is_file():
            read_json(folder / name)
    try:
        return transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:
        raise InvalidValueError(f"the tokenizer in {folder} cannot be read: {error}") from error


def _config(folder: Path, family: Family | None, cls: Any) -> Any:
    """The configuration of the source, as one of ours."""
    if family is None:
        file = folder / "config.json"
        try:
            return cls.config_class.from_dict(read_json(file))
        except (TypeError, ValueError) as error:
            raise error if str(file) in str(error) else ValueError(f"{file}: {error}") from error
    only_its_tokenizer_knows = {"sep_token_id": None}
    return foreign_config(folder, family, cls, "seeded", only_its_tokenizer_knows)
