"""Batches with the inputs that tokenizers do not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from tokenizers.pre_tokenizers import Whitespace

import longbird as lb

WORDS = ["[PAD]", "[CLS]", "[SEP]", "A", "b", "c", ".", "x"]


def tokenizer(side: str = "right") -> Any:
    numbers = {word: number for number, word in enumerate(WORDS)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="x"))
    inner.pre_tokenizer = Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", padding_side=side
    )


EXAMPLES: list[dict[str, Any]] = [
    {
        "input_ids": [1, 3, 4, 2],
        "attention_mask": [1, 1, 1, 1],
        "segment_ids": [-1, 0, 1, -1],
        "global_attention_mask": [1, 0, 0, 0],
        "edges": [(0, 3), (1, 2)],
        "labels": [0, 1, 1, 0],
    },
    {
        "input_ids": [1, 2],
        "attention_mask": [1, 1],
        "segment_ids": np.array([-1, -1]),
        "global_attention_mask": torch.tensor([1, 1]),
        "edges": np.array([[1, 0]]),
        "labels": [1, -100],
    },
    {
        "input_ids": [1, 3, 2],
        "attention_mask": [1, 1, 1],
        "segment_ids": [0, 0, 0],
        "global_attention_mask": [0, 0, 0],
        "edges": [],
        "labels": [1, 1, 1],
    },
]


def test_padding_after():
    batch = lb.LongbirdCollator(tokenizer())(EXAMPLES)
    assert batch["input_ids"].tolist() == [[1, 3, 4, 2], [1, 2, 0, 0], [1, 3, 2, 0]]
    assert batch["segment_ids"].tolist() == [[-1, 0, 1, -1], [-1] * 4, [0, 0, 0, -1]]
    assert batch["global_attention_mask"].tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0] * 4]
    assert batch["labels"].tolist() == [[0, 1, 1, 0], [1] + [-100] * 3, [1, 1, 1, -100]]
    none = [-1, -1]
    assert batch["edges"].tolist() == [[[0, 3], [1, 2]], [[1, 0], none], [none, none]]
    assert {x.dtype for x in batch.values()} == {torch.int64}
    assert EXAMPLES[0]["labels"] == [0, 1, 1, 0]  # the examples stay as they are


def test_padding_before():
    """On the other side columns move, and nothing a model says about a document changes."""
    batch = lb.LongbirdCollator(tokenizer("left"), pad_to_multiple_of=6)(EXAMPLES)
    assert batch["input_ids"][1].tolist() == [0, 0, 0, 0, 1, 2]
    assert batch["segment_ids"][0].tolist() == [-1, -1, -1, 0, 1, -1]
    assert batch["labels"][1].tolist() == [-100] * 4 + [1, -100]
    assert batch["edges"].tolist()[:2] == [[[2, 5], [3, 4]], [[5, 4], [-1, -1]]]


def test_columns_of_answers():
    examples = [
        {"input_ids": [1, 3, 4, 2], "start_positions": 1, "end_positions": 2,
         "sentence_positions": [0, 2], "sentence_support": [1, 0], "answer_types": 2},
        {"input_ids": [1, 3], "start_positions": 0, "end_positions": 1,
         "sentence_positions": [1], "sentence_support": [1], "answer_types": 0},
    ]  # fmt: skip
    right = lb.LongbirdCollator(tokenizer())(examples)
    left = lb.LongbirdCollator(tokenizer("left"))(examples)
    assert right["start_positions"].tolist() == [1, 0]
    assert left["start_positions"].tolist() == [1, 2]
    assert left["end_positions"].tolist() == [2, 3]
    assert right["sentence_positions"].tolist() == [[0, 2], [1, -1]]
    assert left["sentence_positions"].tolist() == [[0, 2], [3, -1]]
    assert right["sentence_support"].tolist() == [[1, 0], [1, 0]]
    assert right["answer_types"].tolist() == [2, 0]
    for batch in (right, left):
        at = batch["input_ids"].gather(1, batch["start_positions"][:, None])[:, 0]
        assert at.tolist() == [3, 1]


@pytest.mark.parametrize("name", ["label", "labels", "label_ids"])
@pytest.mark.parametrize(
    ("labels", "dtype"), [([1, 0], torch.int64), ([[1.0, 0.0], [0.0, 1.0]], torch.float32)]
)
def test_labels_of_documents(name, labels, dtype):
    examples = [{"input_ids": [1] * n, name: x} for n, x in zip((4, 2), labels, strict=True)]
    batch = lb.LongbirdCollator(tokenizer())(examples)
    assert batch["labels"].tolist() == labels
    assert batch["labels"].dtype == dtype
    assert set(batch) == {"input_ids", "attention_mask", "labels"}


def test_what_cannot_be_a_batch():
    collate = lb.LongbirdCollator(tokenizer())
    for wrong, said in (
        ({"segment_ids": [0]}, r"segment_ids of example 1 .*2 tokens, received shape \[1\]"),
        ({"labels": [1, 2, 3]}, "one number for each token, or the same shape"),
        ({"edges": None}, "example 1 has no edges, and others have"),
    ):
        with pytest.raises(ValueError, match=said):
            collate([EXAMPLES[0], {**EXAMPLES[1], **wrong}])


TEXT = {"input_ids": [1, 3, 4]}


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        ([], "at least one example, received none"),
        (None, "a list of examples, received NoneType"),
        (TEXT, "a list of examples, received dict"),
        ([TEXT, [1, 3]], "received list as example 1"),
        ([{"labels": 1}], r"example 0 must have a list of input_ids, .*\['labels'\]"),
        ([{"input_ids": "abc"}], "must have a list of input_ids"),
        ([TEXT | {"edges": [(0, 1, 2)]}], r"pairs \(query, key\), received the shape \[1, 3\]"),
        ([TEXT | {"edges": [(0, 1), (2,)]}], "edges of example 0 must be numbers"),
        ([TEXT | {"edges": [(0, 0.5)]}], "edges of example 0 must be integers"),
        ([TEXT | {"segment_ids": [0.5, 0, 1]}], "segment_ids of example 0 must be integers"),
        ([TEXT | {"start_positions": 1.5}], "start_positions of example 0 must be integers"),
        ([TEXT | {"labels": "yes"}], "labels of example 0 must be numbers, received 'yes'"),
        ([TEXT | {"label": 1, "labels": 0}], r"several names \(labels, label\)"),
    ],
)
def test_examples_that_cannot_be(examples, said):
    with pytest.raises((TypeError, ValueError), match=said):
        lb.LongbirdCollator(tokenizer())(examples)


def test_whole_numbers_of_any_type_and_none_for_no_labels():
    example = TEXT | {"segment_ids": np.array([0.0, 0.0, 1.0]), "label": None, "labels": 1}
    batch = lb.LongbirdCollator(tokenizer())([example])
    assert batch["segment_ids"].tolist() == [[0, 0, 1]]
    assert batch["labels"].tolist() == [1]
    assert "labels" not in lb.LongbirdCollator(tokenizer())([TEXT | {"labels": None}])


@pytest.mark.slow  # trains
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("side", ["right", "left"])
def test_the_trainer_learns_with_it(side, tmp_path: Path):
    """Of each sentence, whether it is the first: told by its segment alone."""
    tokens = tokenizer(side)
    data = []
    for number in range(24):
        text = " ".join(["A b c ."] * (1 + number % 3))
        encoded = tokens(text, return_offsets_mapping=True)
        found = lb.segments(text, encoded.pop("offset_mapping"), most=2)
        data.append({**encoded, "segment_ids": found, "labels": [int(i == 0) for i in found]})
    config = lb.LongbirdConfig(
        vocab_size=len(WORDS), hidden_size=16, num_attention_heads=2, num_hidden_layers=1,
        intermediate_size=16, positions="none", graph=lb.Window(0), num_global_tokens=2,
        num_labels=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        sep_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    run = transformers.Trainer(
        lb.LongbirdForTokenClassification(config),
        transformers.TrainingArguments(
            str(tmp_path), max_steps=80, learning_rate=2e-2, per_device_train_batch_size=8,
            report_to=[], save_strategy="no", use_cpu=True, seed=0, disable_tqdm=True,
        ),
        train_dataset=data,  # type: ignore[arg-type]
        data_collator=lb.LongbirdCollator(tokens),
    )  # fmt: skip
    run.train()
    predicted = run.predict(data)  # type: ignore[arg-type]
    counted = predicted.label_ids != -100
    assert (predicted.predictions.argmax(-1) == predicted.label_ids)[counted].mean() > 0.95


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("bert",), TypeError, "tokenizer must be one of transformers"),
        ((None,), TypeError, "tokenizer must be one of transformers"),
    ],
)
def test_tokenizers_that_are_none(arguments, error, message):
    with pytest.raises(error, match=message):
        lb.LongbirdCollator(*arguments)


def test_a_column_of_text_and_an_odd_multiple():
    examples = [{"input_ids": [1, 2], "text": "a b"}]
    with pytest.raises(ValueError, match="example 0 has text in 'text'"):
        lb.LongbirdCollator(tokenizer())(examples)
    with pytest.raises(ValueError, match="pad_to_multiple_of must be at least 1, received 0"):
        lb.LongbirdCollator(tokenizer(), pad_to_multiple_of=0)
