"""What all models share: loading that never skips a tensor quietly."""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from longbird.models.config import LongbirdConfig


class LoadingError(ValueError, RuntimeError):
    """A file does not fit: a ValueError, and the RuntimeError that transformers raises."""


class LongbirdPreTrainedModel(PreTrainedModel):
    """What all models share: initialisation, and loading that never skips a tensor quietly."""

    config_class = LongbirdConfig
    base_model_prefix = "longbird"
    supports_gradient_checkpointing = True
    _input_embed_layer = "tokens"
    _no_split_modules = ["Layer", "CrossLayer", "DecoderLayer"]  # noqa: RUF012

    @property
    def num_labels(self) -> int:
        """How many labels the heads tell apart."""
        return self.config.num_labels or 0

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | os.PathLike[str] | None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Loads a model that Longbird saved, or a checkpoint that `load_checkpoint` can read.

        Args:
            pretrained_model_name_or_path: A folder, or the name of a model on the hub.
            *args: As for transformers.
            **kwargs: As for transformers, such as `ignore_mismatched_sizes`; and `strict=False`,
                to go on where tensors are missing or left over (they are listed) instead of
                raising; and for foreign checkpoints `random_blocks` and `graph`, see
                `longbird.load_checkpoint`.

        Raises:
            ValueError: Tensors are missing or left over; the message lists them.
        """
        from longbird.checkpoints import (
            check_folder,
            is_foreign,
            load_checkpoint,
            pooler_of,
            report,
            wrong_shapes,
        )

        path = pretrained_model_name_or_path
        if kwargs.pop("use_safetensors", True) is False:
            raise ValueError("use_safetensors=False would read a pickle, which can run any code")
        if path is not None and is_foreign(path, kwargs):
            if args or kwargs.pop("output_loading_info", False):
                raise TypeError("a checkpoint of another library is loaded by name=value options")
            return load_checkpoint(path, cls, **kwargs)
        wanted = kwargs.pop("output_loading_info", False)
        wrong_sizes = kwargs.pop("ignore_mismatched_sizes", False)
        # Who asks what was loaded, or for other sizes, looks after what is missing.
        strict = kwargs.pop("strict", not (wanted or wrong_sizes))
        if path is not None and os.path.isdir(path):
            names = check_folder(Path(path, kwargs.get("subfolder") or ""))
            kwargs.update(pooler_of(cls, names, kwargs))
        kwargs.update(output_loading_info=True, ignore_mismatched_sizes=True, use_safetensors=True)
        try:
            loaded: Any = super().from_pretrained(path, *args, **kwargs)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} cannot be loaded: {error}") from error
        except RuntimeError as error:
            raise LoadingError(f"{path} cannot be loaded: {error}") from error
        model, info = loaded
        if info["mismatched_keys"] and not wrong_sizes:
            raise LoadingError(wrong_shapes(str(path), info["mismatched_keys"]))
        report(str(path), info["missing_keys"], info["unexpected_keys"], strict, cls.__name__)
        for parameter in model.parameters():
            # Mapped from a file at any address, the same weights would give other last bits.
            if parameter.data_ptr() % 64:
                parameter.data = parameter.data.clone()
        return (model, info) if wanted else model
