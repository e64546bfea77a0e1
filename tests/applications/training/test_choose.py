"""Multiple choice: read in every format, learned, resumed, and measured."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import transformers

import longbird as lb
from longbird.applications.training.data.files import rows
from longbird.applications.training.data.token_store import Collator
from longbird.applications.training.engine.evaluation import evaluate
from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.trainer import LongbirdTrainer
from longbird.applications.training.settings.tasks import ChooseSettings
from longbird.applications.training.tasks.choose import Choose

OPTIONS: dict[str, Any] = {
    "length": 32, "tokens_per_batch": 300, "epochs": 4, "learning_rate": 1e-2, "save_every": 300,
}  # fmt: skip
SEA, MINE = ("ship", "sail", "port", "deck"), ("iron", "gold", "coal", "salt")


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The right choice is about the sea; two to four choices, and some long questions."""
    drawn, lines = random.Random(0), []
    for _ in range(80):
        choices = [
            " ".join(drawn.choices(MINE, k=drawn.randint(1, 5)))
            for _ in range(drawn.randint(1, 3))
        ]
        right = drawn.randint(0, len(choices))
        choices.insert(right, " ".join(drawn.choices(SEA, k=drawn.randint(1, 5))))
        text = " ".join(drawn.choices(["the", "sun", "rain", "of"], k=drawn.randint(1, 60)))
        lines.append({"question": text, "choices": choices, "label": right})
    file = tmp_path_factory.mktemp("choose") / "train.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.fixture(scope="module")
def run(tiny: Path, questions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("choose") / "run"
    assert finetune("choose", questions, out, model=str(tiny), **OPTIONS).finished
    return out


def read(file: Path, **options: Any) -> list[dict[str, Any]]:
    settings = ChooseSettings("choose", (str(file),), **options)
    return list(Choose().examples(rows([file]), settings, lambda _: None))


@pytest.mark.parametrize(
    ("row", "right"),
    [
        ({"question": "q", "choices": ["x", "y"], "label": 1}, 1),
        ({"question": "q", "choices": ["x", "y"], "answer": "B"}, 1),
        ({"question": "q", "choices": ["x", "y"], "answer": "x"}, 0),
        ({"question": "q", "choices": ["B", "A"], "answer": "A"}, 1),  # its text, not its letter
        ({"question": "q", "options": ["2", "1", "0"], "label": "2"}, 0),
        ({"question": "q", "options": [2, 1, 0], "label": 2}, 2),
        (
            {
                "question": "q",
                "choices": {"text": ["x", "y"], "label": ["1", "2"]},
                "answerKey": "1",
            },
            0,
        ),
        ({"text": "q", "choices": '["x", "y"]', "label": "1"}, 1),
    ],
)
def test_what_is_right(row: dict[str, Any], right: int, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(row))
    (example,) = read(file)
    assert example["label"] == right
    assert example["text"] == "q"


def test_swag_and_race(tmp_path: Path) -> None:
    file = tmp_path / "swag.csv"
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(["id", "startphrase", "sent1", "sent2", "ending0", "ending1", "label"])
        writer.writerow(["7", "A ship. It", "A ship.", "It", "sails.", "sings.", "0"])
    (example,) = read(file)
    assert example["text"] == "A ship."
    assert example["label"] == 0
    assert example["choices"] == ["It sails.", "It sings."]
    file = tmp_path / "race.jsonl"
    file.write_text(
        json.dumps({"article": "long", "question": "who?", "options": ["a", "b"], "answer": "B"})
    )
    (example,) = read(file)
    assert example["text"] == "who?\nlong"
    assert example["label"] == 1


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"question": "q", "choices": ["x"], "label": 0}, "line 1.*two or more"),
        ({"question": "q", "choices": "x", "label": 0}, "two or more"),
        ({"question": "q", "choices": ["x", None], "label": 0}, "the choice None"),
        ({"question": "q", "choices": ["x", "y"], "label": 2}, r"A to B.*0 to 1"),
        ({"question": "q", "choices": ["x", "x"], "label": "x"}, "which 2 of the choices are"),
        ({"question": "q", "choices": ["x", "y"], "label": None}, "is None"),
        ({"question": "q", "choices": ["x", "y"], "label": True}, "is True"),
        ({"question": 5, "choices": ["x", "y"], "label": 1}, "expected text"),
        ({"question": "q", "label": 1}, "which column is the choices.*`choices`"),
        ({"question": "q", "choices": ["x", "y"]}, "which column is the right choice.*`label`"),
        ({"id": "q", "choices": ["x", "y"], "label": 1}, "which column is the text"),
    ],
)
def test_what_is_wrong(row: dict[str, Any], said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(row))
    with pytest.raises(ValueError, match=said):
        read(file)


@pytest.mark.slow  # trains
def test_it_learns_and_is_measured_as_one_by_one(run: Path, questions: Path) -> None:
    found = evaluate(run, questions, say=lambda _: None)
    assert found.metrics["accuracy"] > 0.9
    model = lb.LongbirdForMultipleChoice.from_pretrained(RunFolder(run).model).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(RunFolder(run).model)
    right, reciprocal = [], []
    for line in questions.read_text().splitlines():
        row = json.loads(line)
        logits = []
        for choice in row["choices"]:
            one = tokenizer(
                row["question"], choice, truncation=True, max_length=64, return_tensors="pt"
            )
            with torch.no_grad():
                inputs = {name: x[None] for name, x in one.items()}  # [1, 1, n]
                logits.append(float(model(**inputs).logits))
        order = sorted(range(len(logits)), key=lambda each: -logits[each])
        rank = 1 + order.index(row["label"])
        right.append(rank == 1)
        reciprocal.append(1 / rank)
    assert found.metrics["accuracy"] == pytest.approx(sum(right) / len(right))
    assert found.metrics["mean_reciprocal_rank"] == pytest.approx(sum(reciprocal) / len(right))


def test_the_loss_of_a_batch_is_the_mean_of_questions(run: Path, questions: Path) -> None:
    """Whatever the number of their choices."""
    task = Choose()
    model = lb.LongbirdForMultipleChoice.from_pretrained(RunFolder(run).model).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(RunFolder(run).model)
    features = list(task.features(read(questions)[:6], tokenizer, 32))
    assert len({len(each["input_ids"]) for each in features}) > 1
    collate = Collator(task, tokenizer)

    def loss(several: list[dict[str, Any]]) -> torch.Tensor:
        parts = [{**task.inputs_of(row, 0, 0, None), "number": 0} for row in several]
        batch = collate(parts)
        assert batch["items"] == len(several)
        batch = {name: x for name, x in batch.items() if name not in ("items", "numbers")}
        with torch.no_grad():
            return task.loss(model(**batch), batch, None)

    alone = torch.stack([loss([each]) for each in features]).mean()
    assert torch.allclose(loss(features), alone, atol=1e-5)


@pytest.mark.slow  # trains, more than once
def test_a_stopped_run_ends_with_the_same_weights(
    run: Path, tiny: Path, questions: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    class Killed(BaseException):
        pass

    original = LongbirdTrainer.training_step

    def dies(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == 5:
            raise Killed
        return original(self, *args, **kwargs)

    out = tmp_path / "run"
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(LongbirdTrainer, "training_step", dies)
        finetune("choose", questions, out, model=str(tiny), **OPTIONS)
    assert finetune("choose", questions, out, model=str(tiny), **OPTIONS).finished
    one, two = (
        safetensors.torch.load_file(RunFolder(each).model / "model.safetensors")
        for each in (run, out)
    )
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())


def test_batches_keep_to_the_tokens_of_all_choices(run: Path) -> None:
    lines = [line for line in RunFolder(run).logged() if "loss" in line]
    assert len(lines) > 4 * 4  # 80 questions of about 100 tokens, 300 a batch


def test_an_empty_file(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("")
    with pytest.raises(ValueError, match="has no rows"):
        finetune("choose", file, tmp_path / "run", model=str(tiny), **OPTIONS)
