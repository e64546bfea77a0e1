"""What all models share: loading that never skips a tensor quietly, and saving all or nothing."""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.files.paths import check_path
from longbird.models.config import LongbirdConfig
from longbird.models.layers.int8 import Int8Linear
from longbird.models.layers.layers import Layer


class LoadingError(ValueError, RuntimeError):
    """A file does not fit: a ValueError, and the RuntimeError that transformers raises."""


class LongbirdPreTrainedModel(PreTrainedModel):
    """What all models share: initialisation, and loading that never skips a tensor quietly."""

    config_class: type[LongbirdConfig] = LongbirdConfig
    base_model_prefix = "longbird"
    supports_gradient_checkpointing = True
    _input_embed_layer = "tokens"
    _no_split_modules = ["Layer", "CrossLayer", "DecoderLayer"]  # noqa: RUF012

    def post_init(self) -> None:
        """Is called at the end of each model's making."""
        super().post_init()
        # FSDP raises for a layer that it is told to keep whole and that the model does not have.
        present = {type(module).__name__ for module in self.modules()}
        self._no_split_modules = present & {*(self._no_split_modules or ())}
        if self.config.quantize:
            self.to_int8()

    @property
    def quantized(self) -> bool:
        """Are the weights of its layers int8?"""
        return any(isinstance(module, Int8Linear) for module in self.modules())

    def to_int8(self) -> Any:
        """Rounds the weights of its layers in place; `longbird.quantize` makes a copy first."""
        for module in self.modules():
            if isinstance(module, Layer):
                module.to_int8()
            if isinstance(module, LongbirdPreTrainedModel):
                module.config.quantize = "int8"
        return self.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> Any:
        """Sets training or evaluation mode; a model with int8 weights has no training mode."""
        if mode and self.quantized:
            raise InvalidValueError(
                "a model with int8 weights is for inference alone, and cannot be trained: train "
                "the model that it was made of, and quantise the result"
            )
        return super().train(mode)

    @property
    def num_labels(self) -> int:
        """How many labels the heads tell apart."""
        return self.config.num_labels or 0

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Loads a model that Longbird saved, or a checkpoint that `load_checkpoint` can read.

        The file may have another head, or a head for another number of labels: one line names the
        tensors that are new, with random weights, and those of the file that were left out.

        Args:
            pretrained_model_name_or_path: A folder, or the name of a model on the hub; None where
                `config` and `state_dict` are given instead.
            *args: As for transformers.
            **kwargs: As for transformers, such as fields of the configuration (`num_labels=6`);
                for foreign checkpoints also `random_blocks`, see `longbird.load_checkpoint`.
                `strict=False` goes on with new tensors where those of the encoder are missing or
                of other shapes, and without those left over, and names them in that line.
                (transformers' `ignore_mismatched_sizes=True` does so for other shapes alone.)
                `quantize="int8"` rounds the weights of the layers, as `longbird.quantize` does.

        Raises:
            ValueError: Tensors of the encoder do not fit; the message lists them.
        """
        from longbird.models import checkpoints

        path = pretrained_model_name_or_path
        if kwargs.pop("use_safetensors", True) is False:
            raise InvalidValueError(
                "use_safetensors=False would read a pickle, which can run any code"
            )
        if path is None and "state_dict" in kwargs:
            return checkpoints.load_state(cls, args, kwargs)
        check_path(path)
        if (folder := checkpoints.own_folder(path, kwargs)) is not None:
            return checkpoints.load_own(path, folder, cls, args, kwargs)
        if args:
            raise InvalidTypeError(
                "for a checkpoint of another library, from_pretrained takes its options as "
                f"name=value; received {len(args)} without a name"
            )
        return checkpoints.load_checkpoint(path, cls, **kwargs)

    @classmethod
    def filled(cls, *args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """What `from_pretrained` of transformers gives, and its notes on names; says nothing."""
        kwargs |= {"output_loading_info": True, "ignore_mismatched_sizes": True}
        with without_their_report():
            loaded: Any = super().from_pretrained(*args, use_safetensors=True, **kwargs)
        model, info = loaded
        for parameter in model.parameters():
            # Mapped from a file at any address, the same weights would give other last bits.
            if parameter.data_ptr() % 64:
                parameter.data = parameter.data.clone()
        if model.quantized:
            model.requires_grad_(False)
        return model, info

    def save_pretrained(
        self,
        save_directory: str | os.PathLike[str],
        is_main_process: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Saves the model and its configuration, all or nothing.

        Args:
            save_directory: The folder; what else is in it stays.
            is_main_process: Does this process write? As for transformers.
            *args: As for transformers.
            **kwargs: As for transformers.

        Raises:
            TypeError: `save_directory` is not a path.
            OSError: It cannot be written, on a full disk say. Nothing partial is left then, and a
                model that was there before is as it was.
        """
        check_path(save_directory, "the folder to write")
        if bool(self.config.quantize) != self.quantized:
            raise InvalidValueError(
                f"the configuration has quantize={self.config.quantize!r}, and the weights are "
                "others: longbird.quantize(model) makes a model with int8 weights"
            )
        if kwargs.get("distributed_checkpoint"):  # all processes write into one folder
            super().save_pretrained(save_directory, is_main_process, *args, **kwargs)
            return
        from longbird.models.checkpoints import write_sentence_transformers, writing_folder

        if kwargs.get("push_to_hub"):
            kwargs.setdefault("repo_id", Path(save_directory).name)
        with writing_folder(save_directory) as folder:
            super().save_pretrained(folder, is_main_process, *args, **kwargs)
            if is_main_process:
                write_sentence_transformers(self, folder)


@contextmanager
def without_their_report() -> Generator[None, None, None]:
    """Keeps the load report of transformers back: there is one report, and it is ours."""
    thread = threading.get_ident()

    def keep(record: logging.LogRecord) -> bool:
        return record.thread != thread or "LOAD REPORT" not in str(record.msg)

    logger = logging.getLogger("transformers.modeling_utils")
    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)
