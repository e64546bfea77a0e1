"""A model for embeddings, found by name or folder, with all that decides what its vectors are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longbird.applications.reading.loading import folder_of_model, load_tokenizer, quiet
from longbird.errors import InvalidTypeError, InvalidValueError, MissingFileError
from longbird.files.cache import suggesting_deletion
from longbird.files.digest import sha256_of
from longbird.files.paths import check_path

LENGTH = 4096
"""Tokens that a short model of another library is made to read at once."""

DOCUMENT, QUERY = ("document", "passage", "corpus"), ("query",)
"""What sentence-transformers calls the prompts of documents and of queries, first the first."""


@dataclass(frozen=True, eq=False)
class EmbeddingModel:
    """A model, its tokenizer, and what becomes of its outputs."""

    name: str
    """As it can be found again."""
    model: Any
    """`LongbirdForEmbedding`."""
    tokenizer: Any
    """Of the library tokenizers."""
    length: int
    """Tokens that it reads at once."""
    sha256: Mapping[str, str]
    """Of the files of its weights and its tokenizer."""
    normalized: bool = True
    """Do vectors have length 1?"""
    counts_prompt: bool = True
    """Are the tokens of a prompt part of the mean?"""
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str = ""

    @property
    def pooling(self) -> str:
        """How the vectors of tokens become one."""
        return self.model.config.pooling

    @property
    def width(self) -> int:
        """Numbers of a vector."""
        return self.model.config.hidden_size

    def prompt_for(self, names: tuple[str, ...]) -> str:
        """The first prompt of these names, or the one for everything."""
        return next((self.prompts[name] for name in names if self.prompts.get(name)), "") or (
            self.default_prompt if not any(name in self.prompts for name in names) else ""
        )


def load_embedding_model(
    path: str | os.PathLike[str], *, length: int | None = None, graph: Any = None
) -> EmbeddingModel:
    """Loads a model for embeddings.

    Args:
        path: minilm or mpnet; the folder of a finished run, of a model, or of
            sentence-transformers; or the name of a model on the hub.
        length: Tokens that it reads at once. By default all that a model of Longbird was made for;
            a short model of another library is made to read 4,096.
        graph: Of a model that is made longer.

    Raises:
        FileNotFoundError: There is no such folder, or a run that is not finished.
        ValueError: The model is for another task.
    """
    check_path(path)
    name, folder = find_model(path)
    with quiet(), suggesting_deletion(folder):
        return _load(name, folder, length, graph)


def find_model(path: str | os.PathLike[str]) -> tuple[str, Path]:
    """How a model can be found again, and its folder; imports nothing that takes long.

    Raises:
        FileNotFoundError: There is no such folder, or a run that is not finished.
    """
    from longbird.files.sources import is_named, named_folder

    if is_named(path):
        return str(path), named_folder(str(path))
    folder = folder_of_model(path)
    if not (folder / "config.json").is_file():
        raise MissingFileError(f"{folder} has no config.json: it is not the folder of a model")
    return str(Path(path).absolute() if Path(path).exists() else path), folder


def _load(name: str, folder: Path, length: int | None, graph: Any) -> EmbeddingModel:
    from longbird.core.graph import ByLength, Full, bigbird
    from longbird.files.sources import NAMED
    from longbird.models import LongbirdForEmbedding
    from longbird.models.checkpoints import read_config
    from longbird.models.checkpoints.detect import OWN, model_type_of
    from longbird.models.checkpoints.sentence_transformers import read_pipeline
    from longbird.models.conversion.source import SOURCES

    pipeline = read_pipeline(folder)
    own = model_type_of(folder) in OWN
    if pipeline is None and name not in NAMED:  # MPNet's configuration is that of its pretraining
        _check_task(name, folder)
    config, settings = read_config(folder), _settings(folder, "sentence_bert_config.json")
    longest = config.longest_document
    said = settings.get("max_seq_length")
    if length is None and own:
        # What it was trained with may be less than it has room for.
        length = min(said, longest) if isinstance(said, int) and said > 0 else longest
    elif length is None:
        length = max(longest, LENGTH) if model_type_of(folder) in SOURCES else longest
    if isinstance(length, bool) or not isinstance(length, int):
        raise InvalidTypeError(f"length must be a number of tokens, received {length!r:.80}")
    if length < 8:
        raise InvalidValueError(f"length must be at least 8 tokens, received {length}")
    if length > longest:
        from longbird.models.conversion import longer_model

        if graph is None and config.graph == Full():
            # Up to its own length, vectors are exactly those of the source.
            graph = ByLength({longest: Full()}, otherwise=bigbird())
        model = longer_model(folder, length, graph=graph, task="embedding")
    else:
        fields = {} if pipeline is None else {"pooling": pipeline.pooling}
        options = {} if graph is None else {"graph": graph}
        model = LongbirdForEmbedding.from_pretrained(folder, **fields, **options)
    pooling = _settings(pipeline.folder, "config.json") if pipeline is not None else {}
    prompts = _settings(folder, "config_sentence_transformers.json")
    known = {k: x for k, x in (prompts.get("prompts") or {}).items() if isinstance(x, str)}
    return EmbeddingModel(
        name=name,
        model=model.eval(),
        tokenizer=_tokenizer(folder, bool(settings.get("do_lower_case"))),
        length=length,
        sha256=_sha256(folder),
        normalized=pipeline is None or pipeline.normalized,
        counts_prompt=pooling.get("include_prompt") is not False,
        prompts=known,
        default_prompt=known.get(str(prompts.get("default_prompt_name")), ""),
    )


def _check_task(name: str, folder: Path) -> None:
    """Raises if a model was trained for something else."""
    from longbird.models.checkpoints.files import read_json

    named = read_json(folder / "config.json").get("architectures") or []
    for each in named if isinstance(named, list) else [named]:
        if not str(each).endswith(("Model", "ForEmbedding")):
            raise InvalidValueError(
                f"{name} is {each}, which was not trained for embeddings; choose one that was, "
                "such as minilm, or train one: longbird finetune embed"
            )


def _settings(folder: Path, file: str) -> dict[str, Any]:
    from longbird.models.checkpoints.files import read_json

    return read_json(folder / file) if (folder / file).is_file() else {}


def _sha256(folder: Path) -> dict[str, str]:
    from longbird.models.checkpoints.files import files_of

    files = [*files_of(folder), folder / "tokenizer.json", folder / "vocab.txt"]
    return {file.name: sha256_of(file) for file in files if file.is_file()}


def _tokenizer(folder: Path, lower_case: bool) -> Any:
    """The tokenizer as a model of transformers has it, without cutting and padding."""
    try:
        found = load_tokenizer(folder)
    except Exception as error:  # tokenizers has exceptions of many types
        raise InvalidValueError(f"the tokenizer in {folder} cannot be read: {error}") from error
    tokenizer = getattr(found, "backend_tokenizer", None)
    if tokenizer is None:
        raise InvalidValueError(
            f"the tokenizer in {folder} is {type(found).__name__}, which does not say where in "
            "the text a token stands; a fast one (tokenizer.json) is needed"
        )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if lower_case:
        from tokenizers.normalizers import Lowercase, Sequence

        before = tokenizer.normalizer
        tokenizer.normalizer = Sequence([Lowercase(), *([] if before is None else [before])])
    return tokenizer
