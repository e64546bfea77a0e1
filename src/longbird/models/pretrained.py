"""The base class of all models: loading that reports every tensor, and atomic saving."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import PreTrainedModel

from longbird.errors import InvalidValueError
from longbird.files.paths import check_path
from longbird.models.config import LongbirdConfig
from longbird.models.layers.int8 import Int8Linear
from longbird.models.layers.layer import Layer


class LoadingError(ValueError, RuntimeError):
    """The tensors of a file do not fit: a ValueError, and the RuntimeError of transformers."""


class LongbirdPreTrainedModel(PreTrainedModel):
    """The base class of all models of Longbird."""

    config_class: type[LongbirdConfig] = LongbirdConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    base_model_prefix = "longbird"
    supports_gradient_checkpointing = True
    _input_embed_layer = "tokens"
    _no_split_modules = ["Layer", "CrossLayer", "DecoderLayer"]  # noqa: RUF012
    if TYPE_CHECKING:
        config: LongbirdConfig  # pyright: ignore[reportIncompatibleVariableOverride]
        loss_function: Any  # callers may set another one

    def post_init(self) -> None:
        """Finish the construction of a model."""
        super().post_init()
        # FSDP raises for a layer that it is told to keep whole and that the model does not have.
        present = {type(module).__name__ for module in self.modules()}
        unsplit: Any = present & {*(self._no_split_modules or ())}
        self._no_split_modules = unsplit
        if self.config.quantize:
            self.to_int8()

    @property
    def quantized(self) -> bool:
        """Whether the weights of its layers are int8."""
        return any(isinstance(module, Int8Linear) for module in self.modules())

    def to_int8(self) -> Any:
        """Round the weights of its layers in place; `longbird.quantize` makes a copy first."""
        for module in self.modules():
            if isinstance(module, Layer):
                module.to_int8()
            if isinstance(module, LongbirdPreTrainedModel):
                module.config.quantize = "int8"
        return self.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> Any:
        """Set training or evaluation mode; a model with int8 weights has no training mode."""
        if mode and self.quantized:
            raise InvalidValueError(
                "a model with int8 weights is for inference only and cannot be trained: train "
                "the model that it was made from, and quantise the result"
            )
        return super().train(mode)

    @property
    def num_labels(self) -> int:
        """Number of labels that its classification head distinguishes."""
        return self.config.num_labels or 0

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        """Load a model that Longbird saved, or any checkpoint that `load_checkpoint` reads.

        The checkpoint may have another head, or a head for another number of labels. One logged
        line names the tensors that are new, with random weights, and those that are not used.

        Args:
            pretrained_model_name_or_path: A folder, or the name of a model on the hub; None if
                `config` and `state_dict` are given instead.
            *args: As for transformers.
            **kwargs: As for transformers, such as fields of the configuration (`num_labels=6`);
                for checkpoints of other libraries also `random_blocks`, see
                `longbird.load_checkpoint`. With `strict=False`, tensors of the encoder that are
                missing or of another shape are new, and those left over are not used; the line
                names them too. (transformers' `ignore_mismatched_sizes=True` does so for other
                shapes only.) `quantize="int8"` rounds the weights of the layers, as
                `longbird.quantize` does.

        Raises:
            ValueError: Tensors of the encoder do not fit; the message lists them.
        """
        from longbird.models.checkpoints.load import load_model

        return load_model(pretrained_model_name_or_path, cls, args, kwargs)

    @classmethod
    def fill(cls, *args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Call `from_pretrained` of transformers; return the model and transformers' loading info.

        Unlike transformers', it reports nothing: `longbird.models.checkpoints` does.
        """
        kwargs |= {"output_loading_info": True, "ignore_mismatched_sizes": True}
        with without_load_report():
            loaded: Any = super().from_pretrained(*args, use_safetensors=True, **kwargs)
        model, info = loaded
        for parameter in model.parameters():
            # Weights mapped from a file at any address would give other last bits.
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
        """Save the model and its configuration; if that fails, the folder stays as it was.

        Args:
            save_directory: The folder to write; other files in it are kept.
            is_main_process: Whether this process writes, as for transformers.
            *args: As for transformers.
            **kwargs: As for transformers.

        Raises:
            TypeError: `save_directory` is not a path.
            OSError: The folder cannot be written, for example because the disk is full.
        """
        from longbird.files.writing import writing_folder
        from longbird.models.checkpoints.sentence_transformers import write_sentence_transformers

        check_path(save_directory, "the folder to write")
        if bool(self.config.quantize) != self.quantized:
            raise InvalidValueError(
                f"the configuration has quantize={self.config.quantize!r}, and the weights do not "
                "agree with it: longbird.quantize(model) makes a model with int8 weights"
            )
        if kwargs.get("distributed_checkpoint"):  # all processes write into one folder
            super().save_pretrained(save_directory, is_main_process, *args, **kwargs)
            return
        if kwargs.get("push_to_hub"):
            kwargs.setdefault("repo_id", Path(save_directory).name)
        card = not (Path(save_directory) / "README.md").exists()
        with writing_folder(save_directory) as folder:
            super().save_pretrained(folder, is_main_process, *args, **kwargs)
            if is_main_process:
                write_sentence_transformers(self, folder, card=card)


@contextmanager
def without_load_report() -> Generator[None, None, None]:
    """Suppress the load report of transformers in this thread, because Longbird writes its own."""
    thread = threading.get_ident()

    def keep(record: logging.LogRecord) -> bool:
        return record.thread != thread or "LOAD REPORT" not in str(record.msg)

    logger = logging.getLogger("transformers.modeling_utils")
    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)
