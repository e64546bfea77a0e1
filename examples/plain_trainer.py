"""Fine-tunes a classifier of long documents with nothing but transformers' `Trainer`.

    python examples/plain_trainer.py [FOLDER]

Writes a model into FOLDER (by default a temporary one), reads it back, and prints how many of the
documents that it has not seen it gets right. What `longbird finetune` adds to this: batches by
tokens, checkpoints that survive anything, the same weights after a restart, and a report.
"""

from __future__ import annotations

import random
import sys
import tempfile

from datasets import Dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Trainer,
    TrainingArguments,
)

import longbird as lb
from longbird.files.sources import minilm
from longbird.models.conversion import convert_checkpoint

SUBJECTS = {"sea": "ship sail harbour deck anchor tide", "mine": "shaft coal lamp seam tunnel ore"}
FILLER = (
    "the day was long and the men went on with their work as they had done the year before".split()
)


def document(subject: str, drawn: random.Random) -> str:
    """About 700 words, of which the last few say what it is about."""
    return " ".join(drawn.choices(FILLER, k=700) + drawn.choices(SUBJECTS[subject].split(), k=60))


def main(folder: str) -> float:
    """Trains, saves, reads back; the share of new documents that are right."""
    convert_checkpoint(minilm.path(), f"{folder}/start", 1024, task="model")
    tokenizer = AutoTokenizer.from_pretrained(f"{folder}/start")
    drawn = random.Random(0)
    subjects = [list(SUBJECTS)[number % 2] for number in range(40)]
    rows = Dataset.from_dict(
        {
            "text": [document(subject, drawn) for subject in subjects],
            "label": [list(SUBJECTS).index(subject) for subject in subjects],
        }
    )
    tokens = rows.map(lambda row: tokenizer(row["text"], truncation=True), remove_columns="text")
    start = lb.LongbirdForSequenceClassification.from_pretrained(f"{folder}/start", num_labels=2)
    trainer = Trainer(
        model=start,
        args=TrainingArguments(
            output_dir=folder, max_steps=8, per_device_train_batch_size=4, learning_rate=3e-4,
            report_to=[], save_strategy="no", logging_steps=4, use_cpu=True,
        ),
        train_dataset=tokens.select(range(32)),
        data_collator=lb.LongbirdCollator(tokenizer),
    )  # fmt: skip
    trainer.train()
    trainer.save_model(f"{folder}/model")

    model = AutoModelForSequenceClassification.from_pretrained(f"{folder}/model").eval()
    held_out = tokens.select(range(32, 40))
    batch = lb.LongbirdCollator(tokenizer)(list(held_out))
    return float((model(**batch).logits.argmax(-1) == batch["labels"]).float().mean())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        right = main(sys.argv[1] if len(sys.argv) > 1 else temporary)
    print(f"{right:.0%} of the documents that it had not seen are right")
