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
from longbird.tasks.scratch import new_config, size_of
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
    if size_of(str(source)) is not None:
        raise ValueError(
            f"--model {source} needs --tokenizer FOLDER; `longbird tokenizer train` makes one"
        )
    tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    tokenizer.model_max_length = length
    return tokenizer


def starting_model(
    settings: Settings,
    head: str,
    head_settings: Mapping[str, Any],
    folder: RunFolder,
    tokenizer: Any,
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
    set_seed(settings.seed)  # for the weights of a new head, or of all
    size = size_of(settings.model)
    if size is not None:
        return cls(new_config(size, tokenizer, settings.length, graph, head_settings))
    options = {} if graph is None else {"graph": graph}
    if (folder.start / "certificate.json").is_file():
        return cls.from_pretrained(folder.start, **options, **head_settings)
    base = models.LongbirdModel.from_pretrained(source)
    if settings.length <= base.config.longest_document:
        return cls.from_pretrained(source, **options, **head_settings)
    # The head of a masked language model is worth keeping, where there is one, and how embeddings
    # are pooled.
    task = head if head in ("masked-lm", "embedding") else "model"
    convert_checkpoint(
        source, folder.start, settings.length, graph=graph, task=task, new_head=task == head
    )
    return cls.from_pretrained(folder.start, **head_settings)


def starting_tokenizer(settings: Settings, folder: RunFolder) -> Any:
    """The tokenizer that was named, or that of the model.

    Raises:
        ValueError: Its tokens would stand for other words in the model.
    """
    source = folder.start if folder.start.exists() else source_of(settings.model)
    if settings.tokenizer is None:
        return tokenizer_of(source, settings.length)
    tokenizer = tokenizer_of(settings.tokenizer, settings.length)
    if size_of(settings.model) is not None:
        return tokenizer
    if tokenizer_of(source, settings.length).get_vocab() != tokenizer.get_vocab():
        raise ValueError(
            f"--tokenizer {settings.tokenizer} has another vocabulary than {settings.model}: "
            "leave --tokenizer out, or start with --model scratch:SIZE"
        )
    return tokenizer
