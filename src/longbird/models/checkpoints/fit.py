"""Compare the tensors of a checkpoint with those of a model, and report the differences.

The body of a model, which is everything but its head and its pooler, must be in the checkpoint,
complete and in the right shapes. A head may be new, and the head of the checkpoint may be unused;
one logged line names both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from transformers.utils import logging

from longbird.models.checkpoints.names import with_originals
from longbird.models.config import LongbirdConfig
from longbird.models.field_rules import shown
from longbird.models.pretrained import LoadingError

logger = logging.get_logger(__name__)

Shape = tuple[int, ...]

HEAD_SIZES = ("num_labels", "num_answer_types", "hidden_size", "intermediate_size", "vocab_size")
"""Fields that the size of a head depends on."""

MOST_SHAPES = 20
"""Maximum number of shapes that a message lists."""

SMALL = 2**18
"""Size of a new head that is always accepted, in numbers."""


@dataclass(frozen=True)
class FitOptions:
    """The options of loading about tensors that do not fit."""

    strict: bool = True
    """Whether to raise if tensors of the body do not fit."""
    other_shapes: bool = False
    """Whether tensors of other shapes are allowed all the same."""
    info: bool = False
    """Whether to return what transformers noted about names."""

    @classmethod
    def taken_from(cls, options: dict[str, Any], **given: Any) -> FitOptions:
        """Remove these options, under the names that transformers gives them, from others."""
        return cls(
            given.get("strict", options.pop("strict", True)),
            options.pop("ignore_mismatched_sizes", False),
            options.pop("output_loading_info", False),
        )

    @property
    def same_shapes(self) -> bool:
        """Whether all shapes must be those of the file."""
        return self.strict and not self.other_shapes


@dataclass(frozen=True)
class Fit:
    """The differences between the tensors of a checkpoint and those of a model."""

    model_class: str
    new: dict[str, Shape | None]
    """New tensors of the head, and their shapes in the file if it has them."""
    left_out: list[str]
    """Tensors of the head of the file that the model does not use."""
    missing: list[str]
    """Tensors of the body that the file does not have."""
    left_over: list[str]
    """Tensors of the body of the file that the model does not have."""
    reshaped: dict[str, tuple[Shape, Shape]]
    """Tensors of the body: their shapes in the file and in the model."""
    notes: Sequence[str] = ()
    """Other differences between the model and what was saved."""

    def check(
        self, path: Any, options: FitOptions, changed: Mapping[str, Any] | None = None
    ) -> None:
        """Raise if the body does not fit.

        Args:
            path: The checkpoint, for the message.
            options: What is an error.
            changed: Fields of the configuration that the caller changed.
        """
        lines = self._body_lines(shapes=not options.other_shapes)
        if not (options.strict and lines):
            return
        model, advice = "the model", ""
        if changed:
            changes = ", ".join(f"{name}={shown(value)}" for name, value in changed.items())
            model = f"a model with {changes}, which the call asks for"
            advice = f"leave {', '.join(changed)} out to load what was saved; "
        raise LoadingError(
            f"the tensors of {path} do not fit {model}:\n  " + "\n  ".join(lines) + "\n"
            f"{advice}strict=False loads the model without those left over, and with new, random "
            "ones for those that are missing or have other shapes"
        )

    def line(self, path: Any) -> str | None:
        """Return one line that says what is new and what is not used, if anything is."""
        new = [*self.new, *self.missing, *self.reshaped]
        parts = [
            (new, "new, with random weights to be trained: "),
            ([*self.left_out, *self.left_over], "in the file, but not used: "),
        ]
        texts = [*(what + _listed(names) for names, what in parts if names), *self.notes]
        return f"{self.model_class} of {path}: {'; '.join(texts)}" if texts else None

    def report(self, path: Any) -> None:
        """Log the line."""
        if (line := self.line(path)) is not None:
            logger.warning(line)

    def _body_lines(self, shapes: bool) -> list[str]:
        lines: list[str] = []
        if self.missing:
            lines.append(f"missing: {_listed(self.missing)}")
        if self.left_over:
            lines.append(f"left over: {_listed(self.left_over)}")
        if shapes:
            reshaped = [
                f"{name}: {list(stored)} in the file, {list(wanted)} in the model"
                for name, (stored, wanted) in sorted(self.reshaped.items())
            ]
            lines += reshaped[:MOST_SHAPES]
            if (more := len(reshaped) - MOST_SHAPES) > 0:
                lines.append(f"and {more:,} more of another shape")
        return lines


def _listed(names: Iterable[str], most: int = 100) -> str:
    """Names for a message, up to a number that anyone would read."""
    every = sorted(names)
    more = f", and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def compare(
    model: Any,
    found: Mapping[str, Shape],
    left_out: Iterable[str] = (),
    left_over: Iterable[str] = (),
    notes: Sequence[str] = (),
) -> Fit:
    """Compare names and shapes.

    Args:
        model: The model; it may be on the `meta` device.
        found: Shapes of the tensors of the file, by our names.
        left_out: Tensors of the file without a name of ours that belong to a head.
        left_over: Tensors of the file without a name of ours that belong to the body.
        notes: Other parts of the report.
    """
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    ties = model.all_tied_weights_keys
    optional = model._keys_to_ignore_on_load_missing or ()
    there = {*with_originals(model, found), *ties, *optional}
    missing = [name for name in wanted if name not in there]
    reshaped = {
        name: (tuple(shape), wanted[name])
        for name, shape in found.items()
        if name in wanted and tuple(shape) != wanted[name]
    }
    unknown = [name for name in found if name not in wanted]
    head = head_names(model, (*missing, *reshaped, *unknown))
    # If an encoder becomes a decoder, its cross attention is as new as a head.
    if model.config.causal and not any("cross_attention" in name for name in found):
        head |= {name for name in missing if "cross_attention" in name}
    # Half a module is not another head, but a damaged file.
    modules = {name.rpartition(".")[0] for name in found if name in wanted and name not in ties}
    head -= {name for name in missing if name.rpartition(".")[0] in modules - {""}}
    return Fit(
        type(model).__name__,
        new={
            **{name: None for name in missing if name in head},
            **{name: stored for name, (stored, _) in reshaped.items() if name in head},
        },
        left_out=[*left_out, *(name for name in unknown if name in head)],
        missing=[name for name in missing if name not in head],
        left_over=[*left_over, *(name for name in unknown if name not in head)],
        reshaped={name: shapes for name, shapes in reshaped.items() if name not in head},
        notes=notes,
    )


def notes_on(model: Any, config: LongbirdConfig, *, without_pooler: bool) -> list[str]:
    """Return notes on differences that a caller would not expect.

    Args:
        model: The model; it may be on the `meta` device.
        config: The configuration that it was built with; some classes change it.
        without_pooler: Whether its pooler was left out because the file has none.
    """
    notes: list[str] = []
    if without_pooler:
        notes.append("without a pooler, as the file has none, so that pooler_output is None")
    if model.config.causal and not config.causal:
        notes.append("made causal, so that no token sees later tokens")
    elif config.causal and not model.can_generate():
        notes.append("still causal: is_decoder=False lets tokens see later tokens")
    return notes


def head_names(model: Any, names: Iterable[str]) -> set[str]:
    """Return those of the names that belong to the head of a model, or to its pooler."""
    prefix = f"{model.base_model_prefix}."
    with_head = any(name.startswith(prefix) for name in model.state_dict())
    return {
        name
        for name in names
        if name.removeprefix(prefix).startswith("pooler.")
        or (with_head and not name.startswith(prefix))
    }


def check_head_size(
    path: Any, model: Any, fit: Fit, found: Mapping[str, Shape], *, same_sizes: bool
) -> None:
    """Raise if a head whose size nobody asked for does not fit, or is out of proportion.

    The caller may ask for any number of labels. But if the number is that of the configuration, a
    head of another size in the file is a sign that the two do not belong together, and a head
    larger than the whole file would fill the memory with random numbers.

    Args:
        path: The checkpoint, for the message.
        model: The model; it may be on the `meta` device.
        fit: Its differences from the file.
        found: Shapes of the tensors of the file, by our names.
        same_sizes: Whether a head that the file has must be of the size that the model has.
    """
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    reshaped = [
        f"{name}: {list(stored)} in the file, {list(wanted[name])} in the model"
        for name, stored in fit.new.items()
        if stored is not None
    ]
    if same_sizes and reshaped:
        raise LoadingError(
            f"the tensors of {path} do not fit its configuration:\n  " + "\n  ".join(reshaped)
        )
    size, most = sum(prod(wanted[name]) for name in fit.new), sum(map(prod, found.values()))
    if size > max(2 * most, SMALL):
        raise LoadingError(
            f"the configuration of {path} asks for a new head of {size:,} numbers, and all "
            f"tensors of the file have {most:,}; give num_labels=... if that is intended"
        )
