"""The options of each task on files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longbird.applications.training.settings.definition import Definition, option, redefined
from longbird.applications.training.settings.groups import (
    ClassWeights,
    FileSettings,
    LabelColumn,
    OptimisationOptions,
    Separator,
    TextColumn,
)


@dataclass(frozen=True)
class AskSettings(FileSettings, Separator):
    """The options of question answering."""

    question: str | None = option(None, "Column of the question.", reading=True)
    context: str | None = option(
        None, "Column of the document that the question is about.", reading=True
    )
    answer: str | None = option(None, "Column of the answer, or of several.", reading=True)
    answer_tokens: int = option(30, "Maximum number of tokens in an answer.", least=1, most=2**20)
    positions: Literal["document", "paragraph"] | None = option(
        None,
        "Whether positions are counted from the start of the document or of each paragraph.",
        shown="document",
    )


@dataclass(frozen=True)
class ChooseSettings(FileSettings, LabelColumn, TextColumn):
    """The options of multiple choice."""

    question: str | None = option(None, "Column of the question.", reading=True)
    choices: str | None = option(None, "Column of the choices.", reading=True)


@dataclass(frozen=True)
class ClassifySettings(FileSettings, ClassWeights, Separator, LabelColumn, TextColumn):
    """The options of classification."""


@dataclass(frozen=True)
class EmbedSettings(FileSettings, LabelColumn, TextColumn):
    """The options of embeddings."""

    # The other documents of a batch are what a query learns from; `tokens_at_once` limits memory.
    tokens_per_batch: int = redefined(OptimisationOptions, "tokens_per_batch", 65536)
    query: str | None = option(None, "Column of the text that should find another.", reading=True)
    positive: str | None = option(None, "Column of the text that it should find.", reading=True)
    negative: str | None = option(
        None, "Column of a text that it should not find, or of a list of them.", reading=True
    )
    temperature: float = option(0.05, "Softmax temperature of the loss.", least=0.001, most=100)
    symmetric: bool = option(False, "Let documents learn to find their queries as well.")
    tokens_at_once: int = option(
        16384, "Maximum number of tokens of a batch in memory at a time.", least=1, most=2**31
    )


@dataclass(frozen=True)
class SummarizeSettings(FileSettings, TextColumn):
    """The options of summaries."""

    learning_rate: float = redefined(OptimisationOptions, "learning_rate", 1e-4)
    summary: str | None = option(None, "Column of the summary.", reading=True)
    summary_tokens: int = option(
        128, "Maximum number of tokens in a summary.", least=2, most=2**20
    )
    beams: int = option(4, "Number of beams of the beam search.", least=1, most=1024)


@dataclass(frozen=True)
class TagSettings(FileSettings, ClassWeights, LabelColumn, TextColumn):
    """The options of tagging."""


@dataclass(frozen=True)
class CausalSettings(FileSettings, TextColumn):
    """The options of causal language modelling."""

    learning_rate: float = redefined(OptimisationOptions, "learning_rate", 1e-4)
    documents: Literal["file", "paragraph", "line"] = option(
        "file", "What one document is in a text file: file, paragraph or line.", reading=True
    )


@dataclass(frozen=True)
class MaskedSettings(CausalSettings):
    """The options of masked language modelling."""

    mask: float = option(0.15, "mlm: fraction of the tokens to predict.", least=0.01, most=0.9)
    whole_words: bool = option(False, "mlm: mask whole words.")


SETTINGS: dict[str, type[Definition]] = {
    "ask": AskSettings,
    "choose": ChooseSettings,
    "classify": ClassifySettings,
    "embed": EmbedSettings,
    "summarize": SummarizeSettings,
    "tag": TagSettings,
    "causal": CausalSettings,
    "mlm": MaskedSettings,
}
"""The settings class of each task."""
