"""Names as older files have them; names and shapes that do not fit are listed."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from folders import rewrite
from theirs import SEQ2SEQ, assert_same, configuration, documents_of, theirs_of
from torch import Tensor

import longbird
from longbird.models.checkpoints.folders import FAMILIES


def old_norm_names(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    new = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    for old, older in new.items():
        tensors = {name.replace(old, older): x for name, x in tensors.items()}
    return tensors


def test_norms_called_gamma_and_beta(tmp_path: Path) -> None:
    # As bert-base-uncased has them.
    theirs = theirs_of("bert", "LongbirdForMaskedLM", configuration("bert"))
    theirs.save_pretrained(tmp_path)
    rewrite(tmp_path, old_norm_names)
    assert_same(theirs, longbird.LongbirdForMaskedLM.from_pretrained(tmp_path), documents_of([20]))


@pytest.mark.parametrize(
    ("family", "kept", "copy"),
    [
        ("bert", "bert.embeddings.word_embeddings", "cls.predictions.decoder"),
        ("roberta", "roberta.embeddings.word_embeddings", "lm_head.decoder"),
        ("longformer", "longformer.embeddings.word_embeddings", "lm_head.decoder"),
        ("led", "led.shared", "lm_head"),
        ("led", "led.shared", "led.encoder.embed_tokens"),
        ("bigbird_pegasus", "model.shared", "model.decoder.embed_tokens"),
    ],
)
def test_only_one_name_of_a_shared_tensor(
    family: str, kept: str, copy: str, tmp_path: Path
) -> None:
    # Files hold a tensor with several names once, under any of them.
    head = "LongbirdForConditionalGeneration" if family in SEQ2SEQ else "LongbirdForMaskedLM"
    theirs = theirs_of(family, head, configuration(family, head))
    theirs.save_pretrained(tmp_path)
    rewrite(tmp_path, lambda x: {k.replace(f"{kept}.weight", f"{copy}.weight"): x[k] for k in x})
    ours = getattr(longbird, head).from_pretrained(tmp_path)
    inputs = {"decoder_input_ids": torch.tensor([[11, 12]])} if family in SEQ2SEQ else {}
    assert_same(theirs, ours, documents_of([20]), **inputs)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in SEQ2SEQ])
def test_buffers_of_older_versions_are_left_out(family: str, tmp_path: Path) -> None:
    theirs = theirs_of(family, "LongbirdModel", configuration(family))
    theirs.save_pretrained(tmp_path)
    rewrite(tmp_path, lambda x: {**x, "embeddings.position_ids": torch.arange(512)[None]})
    longbird.LongbirdModel.from_pretrained(tmp_path)


def without_a_tensor(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    (name,) = (name for name in tensors if name.endswith("1.attention.self.value.bias"))
    return {k: v for k, v in tensors.items() if k != name}


def with_another_tensor(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {**tensors, "encoder.layer.0.adapter.weight": torch.zeros(3)}


def with_another_shape(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {**tensors, "embeddings.LayerNorm.bias": torch.zeros(3)}


@pytest.mark.parametrize(
    ("change", "wrong", "noted"),
    [
        (without_a_tensor, "missing: layers.1.attention.value.bias", "new, with random"),
        (
            with_another_tensor,
            "left over: encoder.layer.0.adapter.weight",
            "in the file, but not used",
        ),
        (with_another_shape, "embeddings.norm.bias: [3] in the file, [16]", "new, with random"),
    ],
)
def test_tensors_that_do_not_fit_are_listed(
    change: Any, wrong: str, noted: str, bert: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rewrite(bert, change)
    with pytest.raises(ValueError, match=rf"(?s){bert}.*{re.escape(wrong)}.*strict=False"):
        longbird.LongbirdModel.from_pretrained(bert)
    with caplog.at_level(logging.WARNING):
        longbird.LongbirdModel.from_pretrained(bert, strict=False)
    (record,) = caplog.records
    assert noted in record.message
    assert any(word.strip(":") in record.message for word in wrong.split() if "." in word)


@pytest.mark.parametrize("saved", ["bert", "own"])
@pytest.mark.parametrize("strict", [True, False])
def test_an_encoder_is_not_an_encoder_decoder(
    saved: str, strict: bool, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(saved)
    with pytest.raises(ValueError, match="has an encoder, not an encoder-decoder") as caught:
        longbird.LongbirdForConditionalGeneration.from_pretrained(folder, strict=strict)
    named = str(caught.value).partition("load it with one of ")[2].split(", ")
    assert "LongbirdForMaskedLM" in named
    assert "LongbirdSeq2SeqModel" not in named
    assert "weight" not in str(caught.value)


def test_an_encoder_decoder_is_not_an_encoder(tmp_path: Path) -> None:
    theirs_of("led", "LongbirdSeq2SeqModel", configuration("led")).save_pretrained(tmp_path / "0")
    longbird.LongbirdSeq2SeqModel.from_pretrained(tmp_path / "0").save_pretrained(tmp_path / "1")
    for folder in ("0", "1"):
        with pytest.raises(ValueError, match=r"an encoder-decoder, not an .*LongbirdSeq2SeqModel"):
            longbird.LongbirdForMaskedLM.from_pretrained(tmp_path / folder)


@pytest.mark.parametrize("saved", ["bert", "own"])
def test_fields_that_the_caller_changed_are_named(
    saved: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(saved)
    given = {"hidden_size": 64, "vocab_size": 5}
    with pytest.raises(ValueError) as caught:
        longbird.LongbirdModel.from_pretrained(folder, **given)
    first, *rest = str(caught.value).splitlines()
    assert "hidden_size=64" in first
    assert "vocab_size=5" in first
    assert "num_hidden" not in first
    assert "leave" in rest[-1]
    assert "hidden_size" in rest[-1]
    longbird.LongbirdModel.from_pretrained(folder, **given, ignore_mismatched_sizes=True)


@pytest.mark.parametrize("saved", ["bert", "own"])
@pytest.mark.parametrize(
    ("typed", "meant"), [("num_labls", "num_labels"), ("hiden_size", "hidden_size")]
)
def test_the_field_that_was_meant_is_named(
    typed: str, meant: str, saved: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(saved)
    with pytest.raises(TypeError, match=rf"{typed} \(did you mean {meant}\?\)"):
        longbird.LongbirdForSequenceClassification.from_pretrained(folder, **{typed: 4})


def test_random_blocks_are_one_of_the_meanings(tmp_path: Path) -> None:
    theirs_of("big_bird", "LongbirdModel", configuration("big_bird")).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"random_blocks must be one of .*received 'eval'"):
        longbird.LongbirdModel.from_pretrained(tmp_path, random_blocks="eval")


@pytest.mark.parametrize("typo", [{"random_block": "hf_eval"}, {"strikt": False}])
def test_an_unknown_option_is_not_taken_quietly(typo: dict[str, Any], bert: Path) -> None:
    with pytest.raises((TypeError, ValueError), match=next(iter(typo))):
        longbird.LongbirdModel.from_pretrained(bert, **typo)


def test_labels_and_another_graph(bert: Path) -> None:
    model = longbird.LongbirdForSequenceClassification.from_pretrained(
        bert, strict=False, num_labels=5, graph=longbird.Window(3)
    )
    assert model.config.num_labels == len(model.config.id2label) == 5
    assert model.config.graph == longbird.Window(3)


def test_half_a_pooler_is_a_damaged_file(own: Path, caplog: pytest.LogCaptureFixture) -> None:
    rewrite(own, lambda x: {k: v for k, v in x.items() if k != "pooler.bias"})
    with pytest.raises(ValueError, match=r"(?s)missing: pooler\.bias.*strict=False"):
        longbird.LongbirdModel.from_pretrained(own)
    with caplog.at_level(logging.WARNING):
        longbird.LongbirdModel.from_pretrained(own, strict=False)
    assert "pooler.bias" in caplog.text
