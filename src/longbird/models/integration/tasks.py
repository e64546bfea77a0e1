"""What models can be for: the names of tasks, of our classes and of transformers' Auto classes.

Names alone, so that the command can show them before anything large is imported. `register` tells
transformers of them, and `longbird convert` takes the names of tasks.
"""

from __future__ import annotations

from typing import NamedTuple


class TaskClasses(NamedTuple):
    """The classes for a task, by name in `longbird.models` and in transformers."""

    encoder: str | None
    """Ours with `LongbirdConfig`."""
    seq2seq: str | None = None
    """Ours with `LongbirdSeq2SeqConfig`."""
    auto: str | None = None
    """The class of transformers that finds ours for a configuration."""


TASKS = {
    "model": TaskClasses("LongbirdModel", "LongbirdSeq2SeqModel", "AutoModel"),
    # transformers has no Auto class for embeddings: SentenceTransformer(folder) finds it.
    "embedding": TaskClasses("LongbirdForEmbedding"),
    "masked-lm": TaskClasses("LongbirdForMaskedLM", auto="AutoModelForMaskedLM"),
    "pretraining": TaskClasses("LongbirdForPreTraining", auto="AutoModelForPreTraining"),
    "causal-lm": TaskClasses("LongbirdForCausalLM", auto="AutoModelForCausalLM"),
    "sequence-classification": TaskClasses(
        "LongbirdForSequenceClassification",
        "LongbirdSeq2SeqForSequenceClassification",
        "AutoModelForSequenceClassification",
    ),
    "token-classification": TaskClasses(
        "LongbirdForTokenClassification", auto="AutoModelForTokenClassification"
    ),
    "multiple-choice": TaskClasses("LongbirdForMultipleChoice", auto="AutoModelForMultipleChoice"),
    "question-answering": TaskClasses(
        "LongbirdForQuestionAnswering",
        "LongbirdSeq2SeqForQuestionAnswering",
        "AutoModelForQuestionAnswering",
    ),
    "seq2seq": TaskClasses(None, "LongbirdForConditionalGeneration", "AutoModelForSeq2SeqLM"),
}
ENCODER_TASKS = {name: task.encoder for name, task in TASKS.items() if task.encoder is not None}
"""By task: the name of our class for an encoder."""
