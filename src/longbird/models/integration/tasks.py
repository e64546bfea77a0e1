"""The tasks of models, with the names of Longbird's classes and of transformers' Auto classes.

The table has names only, so that the command line can show them before anything large is imported.
`register` registers these classes, and `longbird convert` accepts the names of tasks.
"""

from __future__ import annotations

from typing import NamedTuple


class TaskClasses(NamedTuple):
    """The classes for a task, by name in `longbird.models` and in transformers."""

    encoder: str | None
    """Longbird's class with `LongbirdConfig`."""
    seq2seq: str | None = None
    """Longbird's class with `LongbirdSeq2SeqConfig`."""
    auto: str | None = None
    """The Auto class of transformers that chooses Longbird's class for a configuration."""


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
"""The names of the classes for encoders, by task."""
