"""Recognise a checkpoint: which library wrote it, and the configuration of its model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import CONFIG_MAPPING, GenerationConfig

from longbird import models
from longbird.errors import InvalidTypeError, InvalidValueError, MissingFileError
from longbird.files.paths import check_path, model_folder
from longbird.models import LongbirdConfig, LongbirdSeq2SeqConfig
from longbird.models.checkpoints.bert import BERT, MPNET, ROBERTA
from longbird.models.checkpoints.bigbird import BIG_BIRD, BIGBIRD_PEGASUS
from longbird.models.checkpoints.files import read_json
from longbird.models.checkpoints.longformer import LED, LONGFORMER
from longbird.models.checkpoints.names import Family, ModelClass
from longbird.models.config import LABEL_FIELDS
from longbird.models.pretrained import LongbirdPreTrainedModel

FAMILIES: dict[str, Family] = {
    family.model_type: family
    for family in (BERT, ROBERTA, MPNET, BIG_BIRD, LONGFORMER, BIGBIRD_PEGASUS, LED)
}
OWN: dict[str, type[LongbirdConfig]] = {
    each.model_type: each for each in (LongbirdConfig, LongbirdSeq2SeqConfig)
}
KINDS = {
    LongbirdConfig.model_type: "an encoder",
    LongbirdSeq2SeqConfig.model_type: "an encoder-decoder",
}

HUB = ("cache_dir", "revision", "token", "local_files_only", "force_download")
"""Options of `from_pretrained` about a download."""
PLACE = ("subfolder", *HUB)
"""Options of `from_pretrained` that `open_checkpoint` uses."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that has been found and recognised; its config.json has been read."""

    name: str
    """The path or the name that the caller gave, for messages."""
    folder: Path
    """The folder, or the .npz file with the variables of Google's BigBird."""
    saved: Mapping[str, Any]
    """The content of config.json; empty for an .npz file."""

    @property
    def is_arrays(self) -> bool:
        """Whether it is an .npz file, which has no configuration."""
        return not self.saved

    @property
    def model_type(self) -> str:
        """The model type that config.json states."""
        return self.saved["model_type"]

    @property
    def is_own(self) -> bool:
        """Whether Longbird saved it."""
        return not self.is_arrays and self.model_type in OWN

    @property
    def family(self) -> Family:
        """The family of a checkpoint of another library."""
        return FAMILIES[self.model_type]

    @property
    def architectures(self) -> list[str]:
        """The names of the classes that were saved, as transformers notes them."""
        names = self.saved.get("architectures") or []
        return names if isinstance(names, list) else [names]

    def error(self, problem: object) -> InvalidValueError:
        """Return the error for something that is wrong with config.json."""
        file = str(self.folder / "config.json")
        return InvalidValueError(str(problem) if file in str(problem) else f"{file}: {problem}")

    def check_kind(self, model_class: ModelClass) -> None:
        """Raise if an encoder is loaded as an encoder-decoder, or the other way round."""
        kind = self.model_type if self.is_own else self.family.base.config_class.model_type
        wanted = model_class.config_class.model_type
        if kind != wanted:
            fitting = [
                name
                for name, each in sorted(vars(models).items())
                if isinstance(each, type)
                and issubclass(each, LongbirdPreTrainedModel)
                and each.config_class.model_type == kind
            ]
            raise InvalidValueError(
                f"{self.folder} has {KINDS[kind]}, not {KINDS[wanted]}, which "
                f"{model_class.__name__} loads; load it with one of {', '.join(fitting)}"
            )

    def generation_settings(self) -> GenerationConfig | None:
        """Return the settings of `generate` beside the model, if there are any.

        Raises:
            ValueError: They cannot be read. transformers would ignore them without a word.
        """
        file = self.folder / "generation_config.json"
        if not os.path.lexists(file):
            return None
        try:
            return GenerationConfig.from_dict(read_json(file))
        except Exception as error:  # transformers checks the content in many ways
            raise InvalidValueError(
                f"{file} cannot be read as settings of generate: {error}"
            ) from error

    def stated_config(self, config_class: type[LongbirdConfig]) -> LongbirdConfig:
        """Return the configuration that Longbird saved, without unknown fields."""
        unknown = set(config_class.unknown_names(self.saved))
        known = {name: x for name, x in self.saved.items() if name not in unknown}
        try:
            return config_class.from_dict(known)
        except (TypeError, ValueError) as error:  # which say what is wrong with a field
            raise self.error(error) from error

    def translated_config(
        self,
        model_class: ModelClass,
        random_blocks: str = "seeded",
        changes: Mapping[str, Any] | None = None,
    ) -> LongbirdConfig:
        """Translate the configuration of another library, and change some of its fields."""
        family, ours, changes = self.family, model_class.config_class, changes or {}
        if unknown := ours.unknown_names(changes):
            raise no_option(ours, unknown)
        try:
            theirs: Any = CONFIG_MAPPING[family.model_type](**self.saved)
        except Exception as error:  # each configuration checks itself in its own way
            raise InvalidValueError(
                f"{self.folder / 'config.json'} is not a configuration of {family.model_type}: "
                f"{error}"
            ) from error
        fields = family.read(theirs, random_blocks)
        fields.pop("label2id", None)  # follows from id2label; old files contradict themselves
        if LABEL_FIELDS & changes.keys():  # the names in the file are those of other labels
            fields.pop("id2label", None)
        try:
            found = ours(**fields)
        except (TypeError, ValueError) as error:
            raise self.error(error) from error
        return ours(**{**fields, **changes}) if changes else found


def open_checkpoint(
    path: str | os.PathLike[str], options: Mapping[str, Any] | None = None
) -> Checkpoint:
    """Find a checkpoint, download it if it is on the hub, and recognise who wrote it.

    Args:
        path: A folder, the name of a model on the hub, or an .npz file.
        options: The options of `from_pretrained`, of which those in `PLACE` are used.

    Raises:
        FileNotFoundError: There is no such folder or file.
        ValueError: config.json is damaged, or has a model type that Longbird does not read.
    """
    check_path(path)
    if str(path).endswith(".npz") and not Path(path).is_dir():
        if not Path(path).is_file():
            raise MissingFileError(f"there is no file {path}")
        return Checkpoint(str(path), Path(path), {})
    options = options or {}
    hub = {name: options[name] for name in HUB if options.get(name) is not None}
    folder = model_folder(path, options.get("subfolder") or "", **hub)
    saved = read_json(folder / "config.json")
    model_type, known = saved.get("model_type"), (*OWN, *FAMILIES)
    if not isinstance(model_type, str) or model_type not in known:
        raise InvalidValueError(
            f"{folder / 'config.json'} must have one of the model types {', '.join(known)}; "
            f"received {model_type!r:.80}"
        )
    return Checkpoint(str(path), folder, saved)


def read_config(path: str | os.PathLike[str]) -> LongbirdConfig:
    """Return the configuration of a checkpoint as one of Longbird's; no weights are read."""
    checkpoint = open_checkpoint(path)
    if checkpoint.is_own:
        config_class = OWN[checkpoint.model_type]
        try:
            return config_class.from_dict(dict(checkpoint.saved))
        except (TypeError, ValueError) as error:
            raise checkpoint.error(error) from error
    return checkpoint.translated_config(checkpoint.family.base)


def no_option(config_class: type[LongbirdConfig], names: Iterable[str]) -> InvalidTypeError:
    """Return the error for options that are neither fields nor about loading."""
    return InvalidTypeError(
        f"{config_class.has_no(names)} Nor is that an option of from_pretrained or load_checkpoint"
    )
