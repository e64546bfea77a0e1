"""The trainers that are compared, each as its users run it, with random weights of one shape.

All of them learn to classify, because the head is one small layer, so that the encoder dominates a
step. In masked language modelling all would spend the same time on a vocabulary of 30,522 words.
"""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from experiments.speed.contest import Peer
from experiments.speed.encoders import peers as encoders
from experiments.speed.encoders.case import CHUNK
from experiments.speed.encoders.case import Case as EncoderCase
from experiments.speed.encoders.peers import BLOCK, RANDOM, Encoder
from experiments.speed.hugging_face import LONGFORMER_WINDOW
from experiments.speed.training.case import DROPOUT, Case, Document, documents
from experiments.speed.training.session import Session
from longbird.applications.training.data.token_store import stored
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.trainer import LongbirdTrainer, MetricLog
from longbird.applications.training.settings.definition import make_settings
from longbird.applications.training.settings.tasks import ClassifySettings
from longbird.applications.training.tasks.classify import Classify
from longbird.files.sources import minilm
from longbird.models import LongbirdForSequenceClassification

EPOCHS = 1e6  # more than anybody asks for
LEARNING_RATE = 5e-5


@dataclass(frozen=True, kw_only=True)
class Learner(Peer):
    """A contestant.

    Attributes:
        encoder: Its encoder.
        trainer: Makes its trainer from `(encoder, case, texts, folder)`.
        batch: Documents that it computes at once, given those of a step.
    """

    encoder: Encoder
    trainer: Callable[[Encoder, Case, list[Document], Path], Trainer]
    batch: Callable[[int], int] = lambda documents: documents

    def calls(self, *cases: Case) -> list[Session]:
        """Return runs, each of which waits in a separate process."""
        for case in cases:
            self.encoder.refuse_if_impossible(case.encoder(self.batch(case.batch)))
        return [Session(_start, self.name, case, documents(case)) for case in cases]

    def difference(self, case: Case) -> float:
        """Return the largest difference of its encoder from dense attention on its graph."""
        return self.encoder.difference(EncoderCase(case.shape, (case.length,), 1))


def _start(name: str, case: Case, texts: list[Document], folder: Path) -> Trainer:
    """Start the trainer in the process of a contestant."""
    peer = named(name)
    return peer.trainer(peer.encoder, case, texts, folder)


def _written(texts: Sequence[Document], folder: Path) -> Path:
    """Write the file that a user would have."""
    file = folder / "documents.jsonl"
    lines = [json.dumps({"text": each.text, "label": each.label}) for each in texts]
    file.write_text("\n".join(lines), "utf-8")
    return file


def _labels(texts: Sequence[Document]) -> list[str]:
    """Return the labels, of which there are at least two."""
    return sorted({"another", *(each.label for each in texts)})


def _model(encoder: Encoder, case: Case, tokenizer: Any, head: dict[str, Any]) -> Any:
    """Return a classifier with random weights."""
    config = encoder.model(case.encoder(1)).config
    config.update(
        {
            "vocab_size": len(tokenizer),
            "pad_token_id": tokenizer.pad_token_id,
            "hidden_dropout_prob": DROPOUT,
            "attention_probs_dropout_prob": DROPOUT,
            **head,
        }
    )
    torch.manual_seed(0)
    if config.model_type == "longbird":
        return LongbirdForSequenceClassification(config)
    return AutoModelForSequenceClassification.from_config(config)


# ---- Longbird


def _own(encoder: Encoder, case: Case, texts: list[Document], folder: Path) -> Trainer:
    """Return the trainer of `longbird finetune classify`, including logs."""
    total = sum(each.tokens for each in texts)
    options = {
        "text": "text",
        "label": "label",
        "length": case.length,
        "tokens_per_batch": total // case.steps,  # so that it has as many steps, or more
        "epochs": EPOCHS,
        "learning_rate": LEARNING_RATE,
        "hold_out": 0.0,
        "save_every": 1e9,
    }
    settings = make_settings(ClassifySettings, "classify", _written(texts, folder), options)
    run, task = RunFolder(folder / "run"), Classify(_labels(texts))
    run.path.mkdir()
    tokenizer: Any = AutoTokenizer.from_pretrained(minilm.path(), model_max_length=case.length)
    examples = task.examples(task.rows(settings.train, settings), settings, lambda _: None)
    rows = stored(task, examples, tokenizer, case.length, run.cache / "train.arrow", training=True)
    model = _model(encoder, case, tokenizer, task.head_settings())
    logs: list[TrainerCallback] = [MetricLog(run, lambda _: None)]
    return LongbirdTrainer(model, task, tokenizer, rows, None, settings, run, None, logs)


def longbird(implementation: str = "native") -> Learner:
    """Return Longbird on the BigBird graph with one implementation."""
    encoder = encoders.longbird(implementation)
    return Learner(name=encoder.name, short=encoder.short, encoder=encoder, trainer=_own)


# ---- the others


def _theirs(
    encoder: Encoder,
    case: Case,
    texts: list[Document],
    folder: Path,
    *,
    multiple: int = 8,
    least: int = 0,
    chunk: int = 0,
    one_by_one: bool = False,
) -> Trainer:
    """Return a trainer as in the examples of transformers.

    Args:
        encoder: The encoder.
        case: The case.
        texts: The documents.
        folder: Folder to work in.
        multiple: Number of which the length of a batch is a multiple.
        least: Minimum length of a batch.
        chunk: Tokens per chunk into which documents are cut; 0 for whole documents.
        one_by_one: Whether to accumulate gradients of single documents, which are never padded to
            the length of another.
    """
    tokenizer: Any = AutoTokenizer.from_pretrained(minilm.path(), model_max_length=case.length)
    file = str(_written(texts, folder))
    labels = _labels(texts)

    def tokenized(rows: dict[str, list[str]]) -> dict[str, list[Any]]:
        every = tokenizer(rows["text"], truncation=True)["input_ids"]
        cut = [(ids, label) for ids, label in zip(every, rows["label"], strict=True)]
        cut = [(part, label) for ids, label in cut for part in _chunks(ids, chunk or case.length)]
        return {
            "input_ids": [ids for ids, _ in cut],
            "labels": [labels.index(label) for _, label in cut],
        }

    rows: Any = Dataset.from_json(file, cache_dir=str(folder / "cache"))
    rows = rows.map(tokenized, batched=True, remove_columns=rows.column_names)
    batch = -(-len(rows) // case.steps)
    arguments = TrainingArguments(
        output_dir=str(folder / "run"),
        per_device_train_batch_size=1 if one_by_one else batch,
        gradient_accumulation_steps=batch if one_by_one else 1,
        num_train_epochs=EPOCHS,
        learning_rate=LEARNING_RATE,
        weight_decay=0.01,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
        use_cpu=True,
    )
    model = _model(encoder, case, tokenizer, {"num_labels": len(labels)})
    return Trainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        data_collator=Padding(tokenizer, multiple, least),
        processing_class=tokenizer,
        callbacks=[StaysSparse()] if config_is_bigbird(model.config) else [],
    )


def _chunks(ids: list[int], size: int) -> Iterator[list[int]]:
    return (ids[at : at + size] for at in range(0, len(ids), size))


class Padding:
    """The collator of transformers with a minimum length for Hugging Face's BigBird.

    A single shorter batch would switch it to full attention for good.
    """

    def __init__(self, tokenizer: Any, multiple: int, least: int) -> None:
        self.least = least
        self.to_longest = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=multiple)
        self.to_least = DataCollatorWithPadding(tokenizer, "max_length", least)

    def __call__(self, rows: list[dict[str, Any]]) -> Any:
        """Return a batch."""
        short = max(len(row["input_ids"]) for row in rows) < self.least
        return (self.to_least if short else self.to_longest)(rows)


class StaysSparse(TrainerCallback):
    """Check after each epoch that BigBird has not switched to full attention."""

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Raise an error if it has switched."""
        if kwargs["model"].bert.attention_type != "block_sparse":
            raise RuntimeError("it switched to full attention")


def config_is_bigbird(config: Any) -> bool:
    """Return whether this is a configuration of Hugging Face's BigBird."""
    return config.model_type == "big_bird"


_bigbird = partial(_theirs, multiple=BLOCK, least=(6 + 2 * RANDOM) * BLOCK)
_longformer = partial(_theirs, multiple=LONGFORMER_WINDOW)

HUGGING_FACE_BIGBIRD = Learner(
    name="Hugging Face BigBird",
    short="HF BigBird",
    growth=encoders.HUGGING_FACE_BIGBIRD.growth,
    encoder=encoders.HUGGING_FACE_BIGBIRD,
    trainer=_bigbird,
)
HUGGING_FACE_LONGFORMER = Learner(
    name=f"Hugging Face Longformer (window {LONGFORMER_WINDOW}, first token global)",
    short=f"HF Longformer ({LONGFORMER_WINDOW})",
    encoder=encoders.HUGGING_FACE_LONGFORMER,
    trainer=_longformer,
)
BERT = Learner(
    name=f"BERT with SDPA on chunks of {CHUNK}",
    short=f"BERT (chunks of {CHUNK})",
    encoder=encoders.BERT,
    trainer=partial(_theirs, chunk=CHUNK),
)
PEERS = (HUGGING_FACE_BIGBIRD, HUGGING_FACE_LONGFORMER, BERT)


def _one_by_one(peer: Learner, trainer: Any) -> Learner:
    return Learner(
        name=f"{peer.name}, one document at a time",
        short=f"{peer.short}, one by one",
        growth=peer.growth,
        encoder=peer.encoder,
        trainer=partial(trainer, one_by_one=True),
        batch=lambda documents: 1,
    )


ONE_BY_ONE = {
    HUGGING_FACE_BIGBIRD.name: _one_by_one(HUGGING_FACE_BIGBIRD, _bigbird),
    HUGGING_FACE_LONGFORMER.name: _one_by_one(HUGGING_FACE_LONGFORMER, _longformer),
}
"""The same without padding, by the peer's name: what a careful user does with ragged documents."""


def named(name: str) -> Learner:
    """Return the contestant with this name, in a separate process."""
    here = {peer.name: peer for peer in (*PEERS, *ONE_BY_ONE.values())}
    return here.get(name) or longbird(name.removeprefix("longbird "))
