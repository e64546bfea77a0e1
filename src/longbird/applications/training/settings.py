"""All that decides a run, as one value, and as a TOML file."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from longbird.errors import InvalidTypeError, InvalidValueError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]


@dataclass(frozen=True)
class Settings:
    """All that decides a run: the same settings and the same files give the same weights.

    Attributes:
        task: A name of `longbird.applications.training.TASKS`.
        train: Files or folders to learn from.
        validation: Files that choose the best model; if there are none, a part of `train`.
        test: Files that the best model is measured with, once, at the end.
        text: Column of the text.
        label: Column of the label.
        question: Column of the question.
        context: Column of the document that a question is about.
        answer: Column of the answer, or of several.
        answer_tokens: Tokens of the longest answer that is given.
        positions: Count from the beginning of the document, or anew in each paragraph.
        choices: Column of the choices of a question.
        summary: Column of the summary.
        summary_tokens: Tokens of the longest summary that is learned or written.
        beams: Summaries that are written side by side, of which the best is kept.
        query: Column of the text that is to find another.
        positive: Column of the text that it is to find.
        negative: Column of a text that it is not to find, or of a list of such.
        group: Column whose values stay on one side when rows are held out.
        separator: What separates the labels of a row that may have several.
        encoding: Of text files.
        documents: Language modelling: what is a document in a text file: file, paragraph or line.
        hold_out: The fraction of rows held out for validation, if there are no files for it.
        model: What to start from: minilm, mpnet, a folder, the name of a model on the hub, or for
            language modelling and summaries scratch:SIZE, new weights.
        tokenizer: The folder of a tokenizer, for a model from scratch; otherwise the model's.
        length: Tokens of the longest document; the rest of a longer one is cut off, or is
            further documents in language modelling.
        graph: Which token sees which; that of the model by default.
        tokens_per_batch: Tokens of a training step, over all processes.
        accumulate: Batches of that size that make a step.
        epochs: How often all documents are seen.
        steps: Instead of epochs.
        learning_rate: At its highest.
        warmup: The fraction of the steps in which the learning rate climbs.
        schedule: How it falls afterwards: linear, cosine or constant.
        weight_decay: Of AdamW.
        clip: The largest norm of the gradient; 0 for any.
        bf16: Compute in bfloat16 where that keeps the results.
        gradient_checkpointing: Compute activations twice instead of keeping them.
        frozen_layers: Layers that do not learn, counted from the embeddings, which freeze with
            the first.
        frozen_words: The embeddings of words do not learn: half the parameters of a small model.
        lora: Rank of low-rank adapters, which then learn alone with the head; 0 for none.
        class_weights: "balanced" gives every class the same weight in the loss; "none".
        mask: Masked language modelling: the fraction of tokens to predict.
        whole_words: Masked language modelling: draw words, and mask all tokens of each.
        temperature: Embeddings: what cosines are divided by in the loss.
        symmetric: Embeddings: a document is to find its query, too.
        tokens_at_once: Embeddings: tokens of a batch that are in memory at one time.
        patience: Evaluations without a better model before the run stops; 0 for no limit.
        evaluate_every: Steps between evaluations; 0 for one after each epoch.
        save_every: Seconds between checkpoints, which are also made after each evaluation.
        seed: Of the new head, of the order of documents, of dropout and of what is held out.
    """

    task: str
    train: tuple[str, ...]
    validation: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    text: str | None = None
    label: str | None = None
    question: str | None = None
    context: str | None = None
    answer: str | None = None
    answer_tokens: int = 30
    positions: str | None = None
    choices: str | None = None
    summary: str | None = None
    summary_tokens: int = 128
    beams: int = 4
    query: str | None = None
    positive: str | None = None
    negative: str | None = None
    group: str | None = None
    separator: str | None = None
    encoding: str = "utf-8"
    documents: str = "file"
    hold_out: float = 0.1
    model: str = "minilm"
    tokenizer: str | None = None
    length: int = 4096
    graph: str | None = None
    tokens_per_batch: int = 16384
    accumulate: int = 1
    epochs: float = 3.0
    steps: int | None = None
    learning_rate: float = 5e-5
    warmup: float = 0.1
    schedule: str = "linear"
    weight_decay: float = 0.01
    clip: float = 1.0
    bf16: bool = False
    gradient_checkpointing: bool = False
    frozen_layers: int = 0
    frozen_words: bool = False
    lora: int = 0
    class_weights: str = "none"
    mask: float = 0.15
    whole_words: bool = False
    temperature: float = 0.05
    symmetric: bool = False
    tokens_at_once: int = 16384
    patience: int = 0
    evaluate_every: int = 0
    save_every: float = 300.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check what can be checked without files."""
        for field in fields(self):
            self._check_type(field.name, str(field.type))
        for name, least, most in (
            ("hold_out", 0, 0.9),
            ("length", 8, 2**31),
            ("answer_tokens", 1, 2**20),
            ("summary_tokens", 2, 2**20),
            ("beams", 1, 1024),
            ("tokens_per_batch", 8, 2**31),
            ("accumulate", 1, 2**20),
            ("epochs", 1e-9, 1e9),
            ("learning_rate", 0, 10),
            ("warmup", 0, 1),
            ("weight_decay", 0, 10),
            ("clip", 0, 1e9),
            ("frozen_layers", 0, 2**20),
            ("lora", 0, 2**20),
            ("mask", 0.01, 0.9),
            ("temperature", 0.001, 100),
            ("tokens_at_once", 1, 2**31),
            ("patience", 0, 2**31),
            ("evaluate_every", 0, 2**31),
            ("save_every", 0, 1e9),
            ("seed", 0, 2**31 - 1),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise InvalidValueError(
                    f"{name} must be between {least:,} and {most:,}, received {value}"
                )
        if self.patience and not self.validation and not self.hold_out:
            raise InvalidValueError(
                "--patience needs documents to measure with: give --validation, or a --hold-out "
                "above 0"
            )
        if self.separator == "":
            raise InvalidValueError("--separator must have a character, received none")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise InvalidValueError(
                f"--encoding {self.encoding} is not known to Python; known are utf-8, latin-1, "
                "cp1252, utf-16, shift_jis and so on"
            ) from None
        if self.steps is not None and self.steps < 1:
            raise InvalidValueError(f"steps must be at least 1, received {self.steps}")
        for name, choices in (
            ("schedule", ("linear", "cosine", "constant")),
            ("positions", (None, "document", "paragraph")),
            ("class_weights", ("none", "balanced")),
            ("documents", ("file", "line", "paragraph")),
        ):
            if getattr(self, name) not in choices:
                known = ", ".join(each for each in choices if each is not None)
                raise InvalidValueError(
                    f"{name} must be one of {known}, received {getattr(self, name)}"
                )

    def _check_type(self, name: str, kind: str) -> None:
        """Raises for what is of another type, as a file of settings may have it."""
        value = getattr(self, name)
        if kind.endswith(" | None") and value is None:
            return
        kind = kind.removesuffix(" | None")
        if kind == "tuple[str, ...]":
            fits = isinstance(value, tuple) and all(isinstance(each, str) for each in value)
        elif kind == "float":
            fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        else:
            fits = type(value) is {"int": int, "bool": bool, "str": str}[kind]
        if not fits:
            words = {
                "tuple[str, ...]": "a list of texts",
                "str": "a text",
                "int": "a whole number",
            }
            words |= {"float": "a number", "bool": "true or false"}
            raise InvalidTypeError(f"{name} must be {words[kind]}, received {value!r:.60}")

    def overridden(self, given: Mapping[str, Any]) -> Settings:
        """With what was given, where that is not None."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def toml(self) -> str:
        """As a file that `read_settings` reads; what is None is left out."""
        import tomli_w

        values = {name: value for name, value in asdict(self).items() if value is not None}
        return tomli_w.dumps({"longbird": values})


def read_settings(file: str | Path, kind: type[Settings] = Settings) -> dict[str, Any]:
    """The fields of settings of that kind in a TOML file.

    Raises:
        ValueError: It is not TOML, or has a field that they do not have.
    """
    file = Path(file)
    try:
        values = tomllib.loads(file.read_text("utf-8"))["longbird"]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValueError(f"{file} is not TOML: {error}") from error
    except KeyError:
        raise InvalidValueError(f"{file} has no table [longbird]") from None
    defaults = {field.name: field for field in fields(kind)}
    for name, value in values.items():
        if name not in defaults:
            raise InvalidValueError(
                f"{file} has the field {name}; those of a run: {', '.join(defaults)}"
            )
        if name in ("train", "validation", "test"):
            value = [value] if isinstance(value, str) else value
        if isinstance(value, list):
            values[name] = tuple(value)
    return values


def differences(old: Mapping[str, Any], new: Settings) -> list[str]:
    """What differs, as words: "seed was 0 and is 1"."""
    now = {**asdict(new)}
    # What is None is not in the file, and what came later is as it would have been.
    before = {**{field.name: field.default for field in fields(new)}, **old}
    return [
        f"{name} was {before[name]} and is {now[name]}"
        for name in now
        if before[name] != now[name]
    ]
