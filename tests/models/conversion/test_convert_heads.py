"""Heads that the source has not: an error, or made anew where that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from short_models import GRAPH, ids_of, make, records

import longbird as lb
from longbird.models.conversion import convert_checkpoint


def test_a_missing_head_is_an_error_unless_it_may_be_new(tmp_path: Path) -> None:
    make(tmp_path / "short", "BertForMaskedLM")
    options: dict[str, Any] = {"task": "question-answering", "graph": GRAPH}
    with pytest.raises(
        ValueError, match=r"head of LongbirdForQuestionAnswering.*span\.weight.*new_head"
    ):
        convert_checkpoint(tmp_path / "short", tmp_path / "long", 100, **options)
    before = torch.get_rng_state()
    for name in ("long", "again"):
        certificate = convert_checkpoint(
            tmp_path / "short", tmp_path / name, 100, new_head=True, **options
        )
        torch.rand(1)
    assert not torch.equal(before, torch.get_rng_state())  # by the line above, and by nothing else
    torch.set_rng_state(before)
    assert records(certificate, "new") == ["span.weight", "span.bias"]
    assert all(name.startswith("cls.") for name in records(certificate, "left out"))
    assert len(records(certificate, "left out")) == 5
    assert certificate.model[0] == "BertModel"
    assert certificate.exact
    long, again = (tmp_path / name / "model.safetensors" for name in ("long", "again"))
    assert long.read_bytes() == again.read_bytes()


def test_a_pooler_becomes_the_first_layer_of_a_new_classifier(tmp_path: Path) -> None:
    theirs = make(tmp_path / "short", "BertModel")
    certificate = convert_checkpoint(
        tmp_path / "short", tmp_path / "long", 100, task="sequence-classification", new_head=True
    )
    assert records(certificate, "new") == ["classifier.out.weight", "classifier.out.bias"]
    model = lb.LongbirdForSequenceClassification.from_pretrained(tmp_path / "long")
    assert torch.equal(model.classifier.dense.weight, theirs.pooler.dense.weight)


def test_a_body_is_never_new(tmp_path: Path) -> None:
    make(tmp_path / "short", "BertModel")
    file = tmp_path / "short" / "model.safetensors"
    tensors = load_file(file)
    del tensors["encoder.layer.1.output.dense.bias"]
    save_file(tensors, file, {"format": "pt"})
    with pytest.raises(ValueError, match=r"layers\.1\.feed_forward\.leave\.bias"):
        convert_checkpoint(tmp_path / "short", tmp_path / "long", 100, new_head=True)


def test_labels_of_a_new_head(tmp_path: Path) -> None:
    theirs = make(tmp_path / "short", "BertForMaskedLM")
    certificate = convert_checkpoint(
        tmp_path / "short", tmp_path / "long", 100, task="sequence-classification", num_labels=6,
        problem_type="multi_label_classification",
    )  # fmt: skip
    assert "classifier.out.weight" in records(certificate, "new")
    assert certificate.exact
    model = lb.LongbirdForSequenceClassification.from_pretrained(tmp_path / "long")
    assert model.config.num_labels == len(model.config.id2label) == 6
    labels = torch.zeros(1, 6)
    assert model(ids_of(90)[0], labels=labels).loss > 0
    assert model.config.problem_type == "multi_label_classification"
    embeddings = theirs.bert.embeddings.word_embeddings.weight
    assert torch.equal(model.longbird.embeddings.tokens.weight, embeddings)


def test_other_labels_than_the_source_has(tmp_path: Path) -> None:
    make(tmp_path / "short", "BertForTokenClassification", num_labels=3)
    certificate = convert_checkpoint(tmp_path / "short", tmp_path / "same", 100)
    assert not records(certificate, "new")
    certificate = convert_checkpoint(tmp_path / "short", tmp_path / "long", 100, num_labels=5)
    assert records(certificate, "new") == ["classifier.weight", "classifier.bias"]
    model = lb.LongbirdForTokenClassification.from_pretrained(tmp_path / "long")
    assert model.classifier.out_features == 5


def test_answers_of_a_new_head(tmp_path: Path) -> None:
    make(tmp_path / "short", "BertModel")
    convert_checkpoint(
        tmp_path / "short", tmp_path / "long", 100, task="question-answering", num_answer_types=3,
        supporting_sentences=True,
    )  # fmt: skip
    model = lb.LongbirdForQuestionAnswering.from_pretrained(tmp_path / "long")
    out = model(ids_of(90)[0], sentence_positions=torch.tensor([[5]]))
    assert out.answer_type_logits.shape == (1, 3)
    assert out.sentence_logits.shape == (1, 1)


def test_options_that_no_head_has(short: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"no option num_lables; .*num_labels"):
        convert_checkpoint(short, tmp_path / "long", num_lables=3)
    with pytest.raises(ValueError, match="num_labels is for the task sequence-classification or"):
        convert_checkpoint(short, tmp_path / "long", task="embedding", num_labels=3)
    for value in (-1, 1.5, "3", 10**9, True):
        with pytest.raises((TypeError, ValueError), match="num_labels must be"):
            convert_checkpoint(
                short, tmp_path / "long", task="token-classification", num_labels=value
            )
