"""Options that several tasks share."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import ClassVar, Literal

from longbird.applications.training.settings.definition import Definition, option
from longbird.errors import InvalidValueError


@dataclass(frozen=True)
class ModelOptions(Definition):
    """Options of the model that a run starts from."""

    title: ClassVar[str] = "Model"

    model: str = option(
        "minilm",
        "Model to start from: minilm, mpnet, a folder, a model on the hub, or scratch:SIZE with "
        "SIZE one of tiny, mini, small, medium, base, large.",
    )
    tokenizer: str | None = option(
        None,
        "Folder of a tokenizer, as `longbird tokenizer train` writes it; scratch:SIZE needs one.",
        shown="that of the model",
    )
    length: int = option(
        4096, "Maximum number of tokens that the model reads at once.", least=8, most=2**31
    )
    graph: str | None = option(
        None,
        'Attention graph, such as "bigbird(block=32)".',
        shown="that of the model",
    )


@dataclass(frozen=True)
class OptimisationOptions(Definition):
    """Options of the steps that change the weights."""

    title: ClassVar[str] = "Optimisation"

    tokens_per_batch: int = option(
        16384,
        "Maximum number of tokens per batch, over all processes.",
        least=8,
        most=2**31,
        reading=True,
    )
    accumulate: int = option(1, "Number of batches per optimisation step.", least=1, most=2**20)
    epochs: float = option(
        3.0, "Number of passes over the training documents.", least=1e-9, most=1e9
    )
    steps: int | None = option(None, "Number of optimisation steps, instead of epochs.", least=1)
    learning_rate: float = option(5e-5, "Peak learning rate.", least=0, most=10)
    warmup: float = option(
        0.1, "Fraction of the steps over which the learning rate rises.", least=0, most=1
    )
    schedule: Literal["linear", "cosine", "constant"] = option(
        "linear", "How the learning rate falls after the warmup: linear, cosine or constant."
    )
    weight_decay: float = option(0.01, "Weight decay of AdamW.", least=0, most=10)
    clip: float = option(1.0, "Maximum norm of the gradient; 0 for no limit.", least=0, most=1e9)
    bf16: bool = option(False, "Compute in bfloat16.")
    gradient_checkpointing: bool = option(
        False, "Recompute activations instead of storing them: less memory, a third more time."
    )
    frozen_layers: int = option(
        0,
        "Number of layers that are not trained, from the first on; with them, the embeddings.",
        least=0,
        most=2**20,
    )
    frozen_words: bool = option(False, "Do not train the word embeddings.")
    lora: int = option(
        0,
        "Rank of low-rank adapters, which are trained instead of the weights; 0 for none.",
        least=0,
        most=2**20,
    )


@dataclass(frozen=True)
class RunOptions(Definition):
    """Options of the course of a run."""

    title: ClassVar[str] = "Run"

    patience: int = option(
        0,
        "Stop after this many evaluations without improvement; 0 for never.",
        least=0,
        most=2**31,
    )
    evaluate_every: int = option(
        0, "Steps between evaluations; 0 for one after each epoch.", least=0, most=2**31
    )
    save_every: float = option(300.0, "Seconds between checkpoints.", least=0, most=1e9)
    seed: int = option(
        0,
        "Seed of new weights, the order of documents, dropout, and the held-out rows.",
        least=0,
        most=2**31 - 1,
    )


@dataclass(frozen=True)
class Settings(RunOptions, OptimisationOptions, ModelOptions):
    """The options of every run: the same settings and files give the same weights."""


@dataclass(frozen=True)
class DataOptions(Definition):
    """Options of the files that a run reads."""

    title: ClassVar[str] = "Data"

    validation: tuple[str, ...] = option((), "Validation files, which choose the best model.")
    test: tuple[str, ...] = option((), "Files to measure the best model on at the end.")
    hold_out: float = option(
        0.1,
        "Fraction of the rows held out for validation if there are no validation files.",
        least=0,
        most=0.9,
    )
    group: str | None = option(
        None, "Column whose equal values stay on one side of a split, as equal texts do."
    )
    encoding: str = option("utf-8", "Encoding of text files.", reading=True)

    def files(self) -> dict[str, tuple[str, ...]]:
        """Return the files that were given, by part."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def check(self) -> None:
        """Raise an error for an unknown encoding."""
        super().check()
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise InvalidValueError(
                option="encoding",
                expected="an encoding that Python knows, such as utf-8, latin-1 or cp1252",
                received=self.encoding,
            ) from None


@dataclass(frozen=True)
class FileSettings(Settings, DataOptions):
    """The options of a run on documents in files."""

    def check(self) -> None:
        """Raise an error if there is nothing to measure with."""
        super().check()
        if self.patience and not self.validation and not self.hold_out:
            raise InvalidValueError(
                "`patience` needs documents to measure with: set `validation` to files, or "
                "`hold_out` to more than 0"
            )


@dataclass(frozen=True)
class TextColumn(Definition):
    """The column of the text."""

    text: str | None = option(None, "Column of the text.", reading=True)


@dataclass(frozen=True)
class LabelColumn(Definition):
    """The column of the label."""

    label: str | None = option(None, "Column of the label.", reading=True)


@dataclass(frozen=True)
class Separator(Definition):
    """The separator of several values in a column."""

    separator: str | None = option(
        None, "Text between the labels or answers of a row that has several.", reading=True
    )

    def check(self) -> None:
        """Raise an error for an empty separator."""
        super().check()
        if self.separator == "":
            raise InvalidValueError(
                option="separator", expected="at least one character", received=""
            )


@dataclass(frozen=True)
class ClassWeights(Definition):
    """The weights of the classes in the loss."""

    class_weights: Literal["none", "balanced"] = option(
        "none", "Weights of the classes in the loss: none, or balanced for rare classes."
    )
