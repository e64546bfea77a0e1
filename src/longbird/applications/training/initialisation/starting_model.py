"""The model that a run starts from: by name, from a folder, made longer where that is needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, set_seed

from longbird import models
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.initialisation.encoder_decoder import starting_encoder_decoder
from longbird.applications.training.initialisation.lengthening import long_enough
from longbird.applications.training.initialisation.new_model import new_config, size_of
from longbird.applications.training.settings.groups import Settings
from longbird.core.graph import as_graph
from longbird.errors import InvalidValueError
from longbird.files.digest import sha256_of
from longbird.files.paths import folder_of_model
from longbird.files.sources import is_named, named_folder
from longbird.models.integration.tasks import ENCODER_TASKS

READ = re.compile(
    r"config\.json|.*\.safetensors(\.index\.json)?|tokenizer.*|vocab.*|merges\.txt|.*\.model|"
    r"special_tokens_map\.json|added_tokens\.json"
)
"""Files of a model's folder that decide what is loaded."""


def source_of(name: str) -> str:
    """The folder of a model, or that in a run; a size of one from scratch is its own source.

    Raises:
        OSError: There is no such folder, and no model of this name, or the run is not finished.
    """
    if is_named(name):
        return str(named_folder(name))
    return name if size_of(name) is not None else str(folder_of_model(name))


def tokenizer_of(source: str | Path, length: int) -> Any:
    """The tokenizer of a model."""
    if size_of(str(source)) is not None:
        raise InvalidValueError(
            f"the model {source} needs `tokenizer`, a folder that `longbird tokenizer train` makes"
        )
    tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    tokenizer.model_max_length = length
    return tokenizer


def model_fingerprint(settings: Settings) -> dict[str, str]:
    """The sha256 of each file that is read of the folders of model and tokenizer."""
    named = (settings.model, settings.tokenizer)
    folders = [folder_of_model(each) for each in named if each is not None and Path(each).is_dir()]
    return {
        str(file): sha256_of(file)
        for folder in folders
        for file in sorted(folder.iterdir())
        if file.is_file() and READ.fullmatch(file.name)
    }


def starting_model(
    settings: Any,
    head: str,
    head_settings: Mapping[str, Any],
    folder: RunFolder,
    tokenizer: Any,
    say: Callable[[str], None],
) -> Any:
    """A model for a task, with positions for `settings.length` tokens.

    A source with fewer positions is made longer, into the folder of the run, with the certificate
    of what became of its tensors.

    Raises:
        ValueError: It cannot be loaded, or made that long.
    """
    source = source_of(settings.model)
    graph = None if settings.graph is None else as_graph(settings.graph)
    size = size_of(settings.model)
    set_seed(settings.seed)  # for the weights of a new head, or of all
    if head == "seq2seq":
        return starting_encoder_decoder(
            source, size, graph, head_settings, settings, folder, tokenizer, say
        )
    cls = getattr(models, ENCODER_TASKS[head])
    if size is not None:
        return cls(new_config(size, tokenizer, settings.length, graph, head_settings))
    # The head of a masked language model is worth keeping, where there is one, and how embeddings
    # are pooled.
    task = head if head in ("masked-lm", "embedding") else "model"
    long = long_enough(source, settings.length, graph, folder, say, task)
    set_seed(settings.seed)  # again: what was made on the way may have drawn some
    options = {} if graph is None else {"graph": graph}
    return cls.from_pretrained(long, **options, **head_settings)


def starting_tokenizer(settings: Settings, folder: RunFolder) -> Any:
    """The tokenizer that was named, or that the run made, or that of the model.

    Raises:
        ValueError: Its tokens would stand for other words in the model.
    """
    source = folder.start if folder.start.exists() else source_of(settings.model)
    if settings.tokenizer is None and folder.tokenizer.exists():
        return tokenizer_of(folder.tokenizer, settings.length)
    if settings.tokenizer is None:
        return tokenizer_of(source, settings.length)
    tokenizer = tokenizer_of(folder_of_model(settings.tokenizer), settings.length)
    if size_of(settings.model) is not None:
        return tokenizer
    if tokenizer_of(source, settings.length).get_vocab() != tokenizer.get_vocab():
        raise InvalidValueError(
            f"the tokenizer {settings.tokenizer} has another vocabulary than {settings.model}: "
            "leave `tokenizer` out, or start with a new model, `model=scratch:SIZE`"
        )
    return tokenizer
