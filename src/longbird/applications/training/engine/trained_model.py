"""A trained model, found by the folder of its run or by its own, with the task it is for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import AutoConfig
from transformers.utils.logging import disable_progress_bar

from longbird import models
from longbird.applications.training.data.token_store import features_of
from longbird.applications.training.engine.prediction import predict
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.initialisation.starting_model import source_of, tokenizer_of
from longbird.applications.training.settings.definition import read_settings, task_in
from longbird.applications.training.tasks.registry import task_for_head, task_named
from longbird.applications.training.tasks.task import Task
from longbird.errors import InvalidValueError
from longbird.files.sources import is_named
from longbird.models.integration.tasks import ENCODER_TASKS

WRITERS: dict[str, str] = dict.fromkeys(
    (
        "LongbirdForConditionalGeneration",
        "BigBirdPegasusForConditionalGeneration",
        "LEDForConditionalGeneration",
    ),
    "LongbirdForConditionalGeneration",
)
"""Encoder-decoders, whose names on the hub are transformers', and our class for them."""
DNA = "dna.json"
"""What only models of DNA have in their folders."""
AT_ONCE = 64
"""Documents that are read before the model runs."""


@dataclass(frozen=True)
class Trained:
    """A model and what it was trained for."""

    model: Any
    tokenizer: Any
    task: Task
    settings: Any
    """Of the settings class of the task."""

    @property
    def length(self) -> int:
        """Tokens that it reads: as many as in its run."""
        return self.settings.length

    def said_of(
        self, examples: Iterable[dict[str, Any]], tokens_per_batch: int
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Each example with its number of `tokens`, and what the model says of it."""
        examples = iter(examples)
        while some := list(itertools.islice(examples, AT_ONCE)):
            features = list(features_of(self.task, some, self.tokenizer, self.length))
            # A file's name may have bytes that are no UTF-8, which no column of text takes.
            rows = Dataset.from_list([{**each, "file": None} for each in features])
            said = predict(self.model, self.task, rows, self.tokenizer, tokens_per_batch)
            for example, made, prediction in zip(some, features, said, strict=True):
                yield {**example, "tokens": made["tokens"]}, prediction


def load_trained(path: str | Path, **options: Any) -> Trained:
    """The model of a run, or in a folder of its own.

    Args:
        path: The folder.
        **options: For `from_pretrained`: another graph, or `quantize`.

    Raises:
        FileNotFoundError: The run is not finished.
        ValueError: The model has no head for a task.
    """
    disable_progress_bar()  # of loading, which takes a moment
    source, kept = source_of(str(path)), RunFolder(path).settings
    if Path(source, DNA).is_file():
        raise InvalidValueError(
            f"{path} is a model of DNA: `longbird dna` evaluates it and scans with it"
        )
    config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    named = (config.architectures or ["a model without a head"])[0]
    heads = {cls: head for head, cls in ENCODER_TASKS.items()}
    heads |= dict.fromkeys(WRITERS, "seq2seq")
    head = heads.get(named, "")
    # Those that install by name come without the file that says so of sentence-transformers.
    embeds = Path(source, "modules.json").is_file() or is_named(str(path))
    if task_for_head(head) is None and embeds:
        named, head = "LongbirdForEmbedding", "embedding"
    kind = task_named(task_in(kept) or "") if kept.is_file() else task_for_head(head)
    if kind is None:
        raise InvalidValueError(
            f"{source} is {named}, which has not been trained for a task: `longbird finetune` "
            "trains it"
        )
    model = getattr(models, WRITERS.get(named, named)).from_pretrained(source, **options).eval()
    task = kind.of_model(model.config)
    values = read_settings(kept, kind.settings_class) if kept.is_file() else {}
    longest = model.config.longest_document
    length = min(values.get("length", longest), longest)
    values |= {"task": task.name, "train": values.get("train", ()), "length": length}
    settings: Any = kind.settings_class(**values)
    tokenizer = tokenizer_of(source, length)
    task.prepare(settings, tokenizer)
    return Trained(model, tokenizer, task, settings)
