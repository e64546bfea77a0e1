"""Theirs to ours and back, and ours to ours: nothing is lost on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from folders import SMALL, fields_of, states_differ
from safetensors.torch import load_file, save_file
from theirs import (
    HEADS,
    SEQ2SEQ,
    assert_same,
    configuration,
    documents_of,
    large_weights,
    random_configuration,
    theirs_of,
    twins,
)

import longbird
from longbird.models.checkpoints.folders import FAMILIES


def pooler_without_use(family: str, head: str) -> set[str]:
    """Poolers that models of theirs have and do not use, and that ours therefore leave out."""
    name = "pooler" if family == "big_bird" else "pooler.dense"
    if head == "LongbirdForEmbedding":
        return {f"{name}.weight", f"{name}.bias"}
    if family == "big_bird" and head.endswith(("MaskedLM", "CausalLM", "Classification")):
        return {"bert.pooler.weight", "bert.pooler.bias"}
    return set()


def copies_without_use(family: str, config: Any) -> set[str]:
    """Tensors that transformers has and does not use, if vocabularies are not shared."""
    if config.tie_word_embeddings:
        return set()
    return set(FAMILIES[family].copies)


@pytest.mark.parametrize(("family", "head"), HEADS)
def test_theirs_to_ours_to_theirs(family: str, head: str, tmp_path: Path) -> None:
    config = random_configuration(family, head, 0)
    theirs, ours = twins(family, head, config, tmp_path / "theirs")
    longbird.save_checkpoint(ours, tmp_path / "again", family)
    again, info = type(theirs).from_pretrained(tmp_path / "again", output_loading_info=True)
    left_out = pooler_without_use(family, head)
    assert set(info["missing_keys"]) <= left_out
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    assert states_differ(theirs, again) <= left_out | copies_without_use(family, config)
    assert fields_of(again.config) == fields_of(theirs.config)
    assert again.config.architectures == [type(theirs).__name__]


@pytest.mark.parametrize(("family", "head"), HEADS)
def test_ours_to_theirs_to_ours(family: str, head: str, tmp_path: Path) -> None:
    _, ours = twins(family, head, configuration(family, head), tmp_path / "theirs")
    large_weights(ours, seed=7)
    longbird.save_checkpoint(ours, tmp_path / "saved", family)
    again = type(ours).from_pretrained(tmp_path / "saved")
    assert not states_differ(ours, again)
    assert fields_of(again.config) == fields_of(ours.config)


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize(
    ("family", "head"),
    [
        *((family, "LongbirdForMaskedLM") for family in FAMILIES if family not in SEQ2SEQ),
        *((family, "LongbirdForConditionalGeneration") for family in SEQ2SEQ),
    ],
)
def test_tied_and_untied_vocabularies(family: str, head: str, tie: bool, tmp_path: Path) -> None:
    config = configuration(family, head, tie_word_embeddings=tie)
    theirs, ours = twins(family, head, config, tmp_path / "theirs")
    inputs = {"decoder_input_ids": torch.tensor([[11, 12]])} if family in SEQ2SEQ else {}
    assert_same(theirs, ours, documents_of([40]), **inputs)
    longbird.save_checkpoint(ours, tmp_path / "again", family)
    again, info = type(theirs).from_pretrained(tmp_path / "again", output_loading_info=True)
    assert set(info["missing_keys"]) <= pooler_without_use(family, head)
    without_use = pooler_without_use(family, head) | copies_without_use(family, config)
    assert states_differ(theirs, again) <= without_use


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_generation_settings_are_saved(family: str, tmp_path: Path) -> None:
    head = "LongbirdForConditionalGeneration"
    _, ours = twins(family, head, configuration(family, head), tmp_path / "theirs")
    ours.generation_config.update(num_beams=4, length_penalty=0.7)
    longbird.save_checkpoint(ours, tmp_path / "saved", family)
    architecture = FAMILIES[family].architectures[getattr(longbird, head)]
    again = getattr(transformers, architecture).from_pretrained(tmp_path / "saved")
    assert (again.generation_config.num_beams, again.generation_config.length_penalty) == (4, 0.7)


def test_a_checkpoint_in_half_precision(tmp_path: Path) -> None:
    theirs = theirs_of("bert", "LongbirdModel", configuration("bert")).half()
    theirs.save_pretrained(tmp_path)
    ours = longbird.LongbirdModel.from_pretrained(tmp_path)
    assert ours.dtype == torch.float32
    assert_same(theirs.float(), ours, documents_of([30]))


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"dtype": torch.bfloat16}, torch.bfloat16),
        ({"torch_dtype": torch.bfloat16}, torch.bfloat16),
        ({"dtype": "auto"}, torch.float16),
        ({"use_safetensors": True, "local_files_only": True, "revision": "main"}, torch.float32),
    ],
)
def test_options_of_transformers(
    options: dict[str, Any], kind: torch.dtype, tmp_path: Path
) -> None:
    theirs_of("bert", "LongbirdModel", configuration("bert")).half().save_pretrained(tmp_path)
    assert longbird.LongbirdModel.from_pretrained(tmp_path, **options).dtype == kind


def test_a_checkpoint_in_several_files(tmp_path: Path) -> None:
    theirs = theirs_of("bert", "LongbirdModel", configuration("bert"))
    theirs.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert_same(theirs, longbird.LongbirdModel.from_pretrained(tmp_path), documents_of([30]))


@pytest.mark.parametrize(
    ("saved", "loaded"),
    [
        ("LongbirdModel", "LongbirdForEmbedding"),
        ("LongbirdForEmbedding", "LongbirdModel"),
        ("LongbirdForPreTraining", "LongbirdModel"),
        ("LongbirdForPreTraining", "LongbirdForMaskedLM"),
        ("LongbirdModel", "LongbirdForTokenClassification"),
    ],
)
def test_the_body_of_one_head_goes_into_another(saved: str, loaded: str, tmp_path: Path) -> None:
    theirs = theirs_of("bert", saved, configuration("bert"))
    theirs.save_pretrained(tmp_path)
    ours = getattr(longbird, loaded).from_pretrained(tmp_path, strict=False)
    body = ours if loaded == "LongbirdModel" else ours.longbird
    base = getattr(theirs, "bert", theirs)
    ids = documents_of([20])[0]["input_ids"][None]
    with torch.no_grad():
        want, got = base(ids).last_hidden_state, body(ids).last_hidden_state
    torch.testing.assert_close(got, want, atol=2e-5, rtol=0)


LEGACY = longbird.LegacyBigBird("huggingface", block=4, random=2, max_length=80)

PER_LAYER = [longbird.Window(4), longbird.bigbird(block=4, random=2, seed=5)]


@pytest.mark.parametrize(
    "graph",
    [
        longbird.Full(),
        longbird.bigbird(block=8, window=5, random=2, seed=3),
        longbird.Window(3, dilation=2) | longbird.GlobalTokens([0, -1]),
        LEGACY,
        PER_LAYER,
    ],
)
def test_our_own_form_keeps_graph_and_weights(graph: Any, tmp_path: Path) -> None:
    model = longbird.LongbirdForTokenClassification(
        longbird.LongbirdConfig(**SMALL, graph=graph, num_labels=4)
    ).eval()
    large_weights(model)
    model.save_pretrained(tmp_path)
    again, info = longbird.LongbirdForTokenClassification.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert again.config.graph == graph
    assert again.config.layer_graphs == model.config.layer_graphs
    assert isinstance(json.loads((tmp_path / "config.json").read_text())["graph"], (dict, list))
    assert not states_differ(model, again)
    ids = documents_of([60])[0]["input_ids"][None]
    with torch.no_grad():
        assert torch.equal(model(ids).logits, again(ids).logits)


def test_our_own_form_in_several_files(tmp_path: Path) -> None:
    fields = {**SMALL, "decoder_layers": 1, "decoder_attention_heads": 2}
    config = longbird.LongbirdSeq2SeqConfig(
        **fields, decoder_intermediate_size=24, max_decoder_positions=30, graph=longbird.Window(4)
    )
    model = longbird.LongbirdForConditionalGeneration(config)
    large_weights(model)
    model.save_pretrained(tmp_path, max_shard_size="10KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    again = longbird.LongbirdForConditionalGeneration.from_pretrained(tmp_path)
    assert not states_differ(model, again)
    assert again.lm_head.weight is again.model.encoder.embeddings.tokens.weight


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_a_decoder_without_a_bias_of_its_logits(family: str, tmp_path: Path) -> None:
    head = "LongbirdForConditionalGeneration"
    theirs, _ = twins(family, head, configuration(family, head), tmp_path)
    theirs.final_logits_bias.zero_()
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["final_logits_bias"]
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    ours = longbird.LongbirdForConditionalGeneration.from_pretrained(tmp_path)
    inputs = {"decoder_input_ids": torch.tensor([[11, 12]])}
    assert_same(theirs, ours, documents_of([40]), **inputs)


def test_a_model_saved_without_a_pooler(tmp_path: Path) -> None:
    theirs = transformers.BertModel(configuration("bert"), add_pooling_layer=False).eval()
    theirs.save_pretrained(tmp_path)
    asked = longbird.LongbirdModel.from_pretrained(tmp_path, add_pooling_layer=True)
    assert asked.pooler is not None  # new, as a line says
    ours = longbird.LongbirdModel.from_pretrained(tmp_path)
    ids = documents_of([40])[0]["input_ids"][None]
    assert ours(ids).pooler_output is None
    want = theirs(ids).last_hidden_state
    torch.testing.assert_close(ours(ids).last_hidden_state, want, atol=2e-5, rtol=0)
