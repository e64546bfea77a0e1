"""The model that a run starts from: by name, from a folder, made longer where that is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, set_seed

from longbird import models
from longbird.convert import convert_checkpoint
from longbird.data import minilm, mpnet
from longbird.graph import as_graph
from longbird.hf.tasks import ENCODER_TASKS
from longbird.tasks.folder import RunFolder
from longbird.tasks.settings import Settings

NAMED = {"minilm": minilm, "mpnet": mpnet}


def source_of(name: str) -> str:
    """The folder of a model that is known by name, or the name itself."""
    if name in NAMED and not Path(name).exists():
        try:
            return str(NAMED[name].path())
        except RuntimeError as error:  # no network, most likely
            raise OSError(str(error)) from error
    return name


def tokenizer_of(source: str | Path, length: int) -> Any:
    """The tokenizer of a model."""
    tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    tokenizer.model_max_length = length
    return tokenizer


def starting_model(
    settings: Settings, head: str, head_settings: Mapping[str, Any], folder: RunFolder
) -> Any:
    """A model for a task, with positions for `settings.length` tokens.

    A source with fewer positions is made longer, into the folder of the run, with the certificate
    of what became of its tensors.

    Raises:
        ValueError: It cannot be loaded, or made that long.
    """
    source = source_of(settings.model)
    cls = getattr(models, ENCODER_TASKS[head])
    graph = None if settings.graph is None else as_graph(settings.graph)
    set_seed(settings.seed)  # for the weights of a new head
    options = {} if graph is None else {"graph": graph}
    if (folder.start / "certificate.json").is_file():
        return cls.from_pretrained(folder.start, **options, **head_settings)
    base = models.LongbirdModel.from_pretrained(source)
    if settings.length <= base.config.longest_document:
        return cls.from_pretrained(source, **options, **head_settings)
    convert_checkpoint(source, folder.start, settings.length, graph=graph, task="model")
    return cls.from_pretrained(folder.start, **head_settings)
