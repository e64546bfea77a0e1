"""Loading models for embeddings, with everything that determines their vectors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longbird.applications.reading.loading import load_tokenizer, quiet
from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.files.cache import suggesting_deletion
from longbird.files.digest import sha256_of
from longbird.files.paths import check_path, model_folder

LENGTH = 4096
"""Length to which a short model of another library is extended."""
DOCUMENT, QUERY = ("document", "passage", "corpus"), ("query",)
"""Names of prompts in sentence-transformers, in order of preference."""


@dataclass(frozen=True, eq=False)
class EmbeddingModel:
    """A model, its tokenizer, and how its outputs become vectors.

    Attributes:
        name: Name or absolute path, by which the model can be loaded again.
        model: The `LongbirdForEmbedding` model.
        tokenizer: A tokenizer of the tokenizers library.
        length: Maximum number of tokens read at once.
        sha256: Checksums of the files of the weights and the tokenizer.
        normalized: Whether vectors have length 1.
        counts_prompt: Whether the tokens of a prompt are part of the mean.
        prompts: Prompts by name.
        default_prompt: Prompt of texts for which no other is named.
    """

    name: str
    model: Any
    tokenizer: Any
    length: int
    sha256: Mapping[str, str]
    normalized: bool = True
    counts_prompt: bool = True
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str = ""

    @property
    def pooling(self) -> str:
        """How the vectors of tokens become the vector of a text."""
        return self.model.config.pooling

    @property
    def width(self) -> int:
        """Number of dimensions of a vector."""
        return self.model.config.hidden_size

    def prompt_for(self, names: tuple[str, ...]) -> str:
        """Return the first prompt that has one of the names, or else the default prompt."""
        known = [self.prompts[name] for name in names if name in self.prompts]
        return next(filter(None, known), "") if known else self.default_prompt


def load_embedding_model(
    path: str | os.PathLike[str], *, length: int | None = None, graph: Any = None
) -> EmbeddingModel:
    """Load a model for embeddings; see `Embedder.from_pretrained`."""
    from longbird.files.sources import is_named, named_folder

    check_path(path)
    if is_named(path):
        name, folder = str(path), named_folder(str(path))
    else:
        folder = model_folder(path)
        name = str(Path(path).absolute() if Path(path).exists() else path)
    with quiet(), suggesting_deletion(folder):
        return _load(name, folder, length, graph)


def _load(name: str, folder: Path, length: int | None, graph: Any) -> EmbeddingModel:
    from longbird.core.graph import ByLength, Full, bigbird
    from longbird.files.sources import NAMED
    from longbird.models import LongbirdForEmbedding
    from longbird.models.checkpoints import read_config
    from longbird.models.checkpoints.files import files_of
    from longbird.models.checkpoints.folders import open_checkpoint
    from longbird.models.checkpoints.sentence_transformers import read_pipeline

    pipeline, checkpoint = read_pipeline(folder), open_checkpoint(folder)
    if pipeline is None and name not in NAMED:  # MPNet's configuration is that of its pretraining
        for each in checkpoint.architectures:
            if not str(each).endswith(("Model", "ForEmbedding")):
                raise InvalidValueError(
                    f"{name} is {each}, which was not trained for embeddings; choose one that "
                    "was, such as minilm, or train one: longbird finetune embed"
                )
    config = read_config(folder)
    settings = _read_json(folder / "sentence_bert_config.json")
    longest = config.longest_document
    length = _length(length, longest, checkpoint.model_type, settings.get("max_seq_length"))
    if length > longest:
        from longbird.models.conversion import longer_model

        if graph is None and config.graph == Full():
            # Up to its own length, vectors are exactly those of the source.
            graph = ByLength({longest: Full()}, otherwise=bigbird())
        model = longer_model(folder, length, graph=graph, task="embedding")
    else:
        options = {} if graph is None else {"graph": graph}
        if pipeline is not None:
            options["pooling"] = pipeline.pooling
        model = LongbirdForEmbedding.from_pretrained(folder, **options)
    pooling = {} if pipeline is None else _read_json(pipeline.folder / "config.json")
    prompts = _read_json(folder / "config_sentence_transformers.json")
    files = [*files_of(folder), folder / "tokenizer.json", folder / "vocab.txt"]
    known = {k: x for k, x in (prompts.get("prompts") or {}).items() if isinstance(x, str)}
    return EmbeddingModel(
        name=name,
        model=model.eval(),
        tokenizer=_tokenizer(folder, bool(settings.get("do_lower_case"))),
        length=length,
        sha256={file.name: sha256_of(file) for file in files if file.is_file()},
        normalized=pipeline is None or pipeline.normalized,
        counts_prompt=pooling.get("include_prompt") is not False,
        prompts=known,
        default_prompt=known.get(str(prompts.get("default_prompt_name")), ""),
    )


def _length(given: Any, longest: int, model_type: str | None, trained: Any) -> int:
    """Return the number of tokens to read at once, which is checked if the caller gave it."""
    from longbird.models.checkpoints.folders import OWN
    from longbird.models.conversion.short_model import SOURCES

    if given is None:
        if model_type in OWN:  # may have been trained on fewer tokens than it has positions for
            return min(trained, longest) if isinstance(trained, int) and trained > 0 else longest
        return max(longest, LENGTH) if model_type in SOURCES else longest
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidTypeError(f"length must be a number of tokens, received {given!r:.80}")
    if given < 8:
        raise InvalidValueError(f"length must be at least 8 tokens, received {given}")
    return given


def _read_json(file: Path) -> dict[str, Any]:
    from longbird.models.checkpoints.files import read_json

    return read_json(file) if file.is_file() else {}


def _tokenizer(folder: Path, lowercase: bool) -> Any:
    """Return the tokenizer of a model, without truncation and padding."""
    try:
        found = load_tokenizer(folder)
    except Exception as error:  # tokenizers has exceptions of many types
        raise InvalidValueError(f"the tokenizer in {folder} cannot be read: {error}") from error
    tokenizer = getattr(found, "backend_tokenizer", None)
    if tokenizer is None:
        raise InvalidValueError(
            f"the tokenizer in {folder} is {type(found).__name__}, which does not give the "
            "positions of tokens in the text; a fast one (tokenizer.json) is needed"
        )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if lowercase:
        from tokenizers.normalizers import Lowercase, Sequence

        before = tokenizer.normalizer
        tokenizer.normalizer = Sequence([Lowercase(), *([] if before is None else [before])])
    return tokenizer
