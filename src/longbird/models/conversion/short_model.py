"""The model that is made longer: its folder, its configuration, and its companion files."""

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
from longbird.models.checkpoints.files import read_json
from longbird.models.checkpoints.folders import Checkpoint, open_checkpoint
from longbird.models.checkpoints.sentence_transformers import Pipeline, read_pipeline
from longbird.models.config import LongbirdConfig
from longbird.models.conversion.companion_files import tokenizer_files
from longbird.models.integration.tasks import ENCODER_TASKS as TASKS
from longbird.models.pretrained import without_load_report

SOURCES = ("bert", "roberta", "mpnet", "longbird")
FIRST_LOADED = ("big_bird", "longformer")
"""Types that transformers does not run as they were trained, or that have long positions already.
"""


@dataclass(frozen=True)
class Short:
    """A model for short documents."""

    checkpoint: Checkpoint
    task: str
    config: LongbirdConfig
    """Its configuration, as one of Longbird's."""
    tokenizer: Any
    """None if it has none."""
    pipeline: Pipeline | None
    """The pooling that sentence-transformers uses with it."""

    @property
    def name(self) -> str:
        """The path or name that the caller gave."""
        return self.checkpoint.name

    @property
    def folder(self) -> Path:
        """Its folder."""
        return self.checkpoint.folder

    @property
    def model_class(self) -> Any:
        """Longbird's class for its task."""
        return getattr(models, TASKS[self.task])

    @property
    def tokens(self) -> int:
        """Number of tokens of the longest document that it can read."""
        return self.config.longest_document

    @property
    def weights(self) -> list[Path]:
        """Its files of tensors."""
        return sorted(self.folder.glob("*.safetensors"))

    def sha256(self) -> dict[str, str]:
        """Compute the checksums of its files."""
        files = (self.folder / "config.json", *self.weights)
        return {file.name: sha256_of(file) for file in files}

    def load(self, model_class: Any) -> Any:
        """Load the model as transformers runs it, without a report: the certificate has one."""
        with without_load_report():
            if self.checkpoint.is_own:
                return model_class.fill(self.folder, dtype=torch.float32)[0]
            theirs = getattr(transformers, self.checkpoint.family.architectures[model_class])
            return theirs.from_pretrained(self.folder, dtype=torch.float32, use_safetensors=True)


def open_source(source: str | os.PathLike[str], task: str | None) -> Short:
    """Find the source, and read everything but its tensors.

    Raises:
        FileNotFoundError: There is no such folder, and no such model on the hub.
        OSError: A model that is known by name could not be downloaded.
        ValueError: It is of a type that cannot be made longer, or one of its files is damaged.
    """
    check_path(source)
    if is_named(source):
        checkpoint = open_checkpoint(named_folder(str(source)))
        task = task or "embedding"  # what they were trained for
    else:
        checkpoint = open_checkpoint(source)
    _check_type(checkpoint)
    task = _task(checkpoint, task)
    model_class: Any = getattr(models, TASKS[task])
    if checkpoint.is_own:
        try:
            config = model_class.config_class.from_dict(dict(checkpoint.saved))
        except (TypeError, ValueError) as error:
            raise checkpoint.error(error) from error
    else:  # the separator is known to the tokenizer only
        config = checkpoint.translated_config(model_class, changes={"sep_token_id": None})
    if task == "causal-lm" and not config.causal:
        raise InvalidValueError(
            f"{source} is an encoder, and a model for causal-lm shows no token those that follow "
            "it, so that its outputs cannot be those of the source; choose another task with "
            "`task`, such as masked-lm"
        )
    folder = checkpoint.folder
    return Short(
        Checkpoint(str(source), folder, checkpoint.saved),
        task,
        config=config,
        tokenizer=_tokenizer(folder) if tokenizer_files(folder) else None,
        pipeline=read_pipeline(folder) if task == "embedding" else None,
    )


def _check_type(checkpoint: Checkpoint) -> None:
    """Raise unless models of this type can be made longer."""
    model_type, folder = checkpoint.model_type, checkpoint.folder
    if model_type in SOURCES:
        return
    advice = "; encoder-decoders are not made longer"
    if model_type in FIRST_LOADED:
        advice = (
            ". It becomes a model of Longbird first: "
            f'longbird.LongbirdModel.from_pretrained("{folder}").save_pretrained(new_folder), or '
            "another class of longbird that keeps its head; then convert new_folder"
        )
    raise InvalidValueError(
        f"{folder} has the model type {model_type!r}, expected one of {', '.join(SOURCES)}{advice}"
    )


def _task(checkpoint: Checkpoint, task: str | None) -> str:
    """The task that is asked for, or the one that the saved class is for."""
    if task is None:
        for name, ours in TASKS.items():
            theirs: str | None = ours
            if not checkpoint.is_own:
                theirs = checkpoint.family.architectures.get(getattr(models, ours))
            if theirs in checkpoint.architectures:
                return name
        raise InvalidValueError(
            f"{checkpoint.folder / 'config.json'} has the architectures "
            f"{checkpoint.architectures}, which says nothing about a task; choose one with "
            f"`task`: {', '.join(TASKS)}"
        )
    if task not in TASKS:
        raise InvalidValueError(f"task must be one of {', '.join(TASKS)}, received {task}")
    return task


def _tokenizer(folder: Path) -> Any:
    """The tokenizer in a folder."""
    for name in ("tokenizer_config.json", "tokenizer.json"):
        if (folder / name).is_file():
            read_json(folder / name)
    try:
        return transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # tokenizers raises exceptions of many types
        raise InvalidValueError(f"the tokenizer in {folder} cannot be read: {error}") from error
