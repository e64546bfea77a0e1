"""Checkpoints: there and back again, names that do not fit, broken and hostile files."""

from __future__ import annotations

import io
import json
import logging
import os
import pickle
import re
import shutil
import signal
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from theirs import (
    HEADS,
    SEQ2SEQ,
    assert_same,
    configuration,
    documents_of,
    forget,
    large_weights,
    random_configuration,
    theirs_of,
    twins,
)
from torch import Tensor

import longbird
from longbird.checkpoints.detect import FAMILIES

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "vocab_size": 120,
    "max_position_embeddings": 80,
}


def states_differ(first: Any, second: Any) -> set[str]:
    """Names of tensors that are not bitwise the same."""
    one, other = first.state_dict(), second.state_dict()
    return {
        name
        for name in {*one, *other}
        if name not in one or name not in other or not torch.equal(one[name], other[name])
    }


def fields_of(config: Any) -> dict[str, Any]:
    """What a configuration says, without what transformers notes about its file."""
    left_out = ["_name_or_path", "transformers_version", "dtype", "architectures"]
    if getattr(config, "attention_type", None) == "original_full":  # which has no blocks
        left_out += ["block_size", "num_random_blocks"]
    return {name: value for name, value in config.to_dict().items() if name not in left_out}


# there and back again


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
    assert not info["unexpected_keys"] and not info["mismatched_keys"]
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


# names as older files have them


def rewrite(folder: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    """Changes the tensors of a saved model."""
    tensors = change(load_file(folder / WEIGHTS))
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / WEIGHTS, {"format": "pt"})


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


# names and shapes that do not fit


def without_a_tensor(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    (name,) = (name for name in tensors if name.endswith("1.attention.self.value.bias"))
    return {k: v for k, v in tensors.items() if k != name}


def with_another_tensor(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {**tensors, "encoder.layer.0.adapter.weight": torch.zeros(3)}


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    """A folder with a small BERT."""
    transformers.BertModel(transformers.BertConfig(**SMALL)).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a small model of ours."""
    config = longbird.LongbirdConfig(**SMALL, graph=longbird.Full())
    longbird.LongbirdModel(config).save_pretrained(tmp_path / "own")
    return tmp_path / "own"


def with_another_shape(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {**tensors, "embeddings.LayerNorm.bias": torch.zeros(3)}


@pytest.mark.parametrize(
    ("change", "wrong", "noted"),
    [
        (without_a_tensor, "missing: layers.1.attention.value.bias", "new, with random"),
        (with_another_tensor, "left over: encoder.layer.0.adapter.weight", "left out of the"),
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


def test_a_class_that_the_family_does_not_have(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="bert has no counterpart of LongbirdForConditional"):
        longbird.LongbirdForConditionalGeneration.from_pretrained(bert)


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


# what a family cannot say is not saved

FULL: dict[str, Any] = {**SMALL, "graph": longbird.Full()}
WINDOW: dict[str, Any] = {
    **SMALL,
    "graph": longbird.Window(4),
    "positions": "padding-aware",
    "pad_token_id": 1,
    "global_projections": True,
}
LEGACY = longbird.LegacyBigBird("huggingface", block=4, random=2, max_length=80)
CANNOT_BE_SAID: list[tuple[str, str, dict[str, Any]]] = [
    ("bert", "LongbirdModel", {**SMALL, "graph": longbird.Window(4)}),
    ("bert", "LongbirdModel", {**SMALL, "graph": [longbird.Full(), longbird.Window(4)]}),
    ("bert", "LongbirdModel", {**FULL, "rescale_embeddings": True}),
    ("bert", "LongbirdModel", {**FULL, "positions": "padding-aware"}),
    ("bert", "LongbirdModel", {**FULL, "positions": "none"}),
    ("bert", "LongbirdModel", {**FULL, "attention_bias": False}),
    ("bert", "LongbirdModel", {**FULL, "type_vocab_size": 0}),
    ("bert", "LongbirdModel", {**FULL, "norm": "pre"}),
    ("bert", "LongbirdModel", {**FULL, "embedding_norm": "none"}),
    ("bert", "LongbirdModel", {**FULL, "num_global_tokens": 3}),
    ("bert", "LongbirdForMaskedLM", {**FULL, "lm_activation": "relu"}),
    ("bert", "LongbirdForMaskedLM", {**FULL, "lm_transform": False}),
    ("bert", "LongbirdForQuestionAnswering", {**FULL, "num_answer_types": 3}),
    ("roberta", "LongbirdModel", FULL),
    ("mpnet", "LongbirdModel", {**FULL, "type_vocab_size": 0, "positions": "padding-aware"}),
    ("big_bird", "LongbirdModel", {**SMALL, "graph": longbird.bigbird(block=4)}),
    ("big_bird", "LongbirdModel", {**SMALL, "graph": [LEGACY, longbird.Full()]}),
    (
        "big_bird",
        "LongbirdModel",
        {**SMALL, "graph": longbird.LegacyBigBird("huggingface", 4, 2, seed=3, max_length=80)},
    ),
    (
        "big_bird",
        "LongbirdModel",
        {**SMALL, "graph": longbird.LegacyBigBird("huggingface", 4, 2, 0, 80, full_up_to=50)},
    ),
    ("big_bird", "LongbirdForQuestionAnswering", {**SMALL, "graph": LEGACY}),
    ("longformer", "LongbirdModel", {**WINDOW, "graph": longbird.Window(4, dilation=2)}),
    ("longformer", "LongbirdModel", {**WINDOW, "graph": longbird.Window(0)}),
    ("longformer", "LongbirdModel", {**WINDOW, "graph": longbird.Full()}),
    ("longformer", "LongbirdModel", {**WINDOW, "global_projections": False}),
    ("longformer", "LongbirdModel", {**WINDOW, "positions": "absolute"}),
    ("tensorflow", "LongbirdModel", {**SMALL, "graph": longbird.Window(4)}),
    ("tensorflow", "LongbirdModel", {**SMALL, "graph": LEGACY, "norm": "pre"}),
    ("tensorflow", "LongbirdModel", {**SMALL, "graph": LEGACY, "type_vocab_size": 0}),
    ("t5", "LongbirdModel", FULL),
]


@pytest.mark.parametrize(("family", "head", "fields"), CANNOT_BE_SAID)
def test_what_a_family_cannot_say_is_refused(
    family: str, head: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    model = getattr(longbird, head)(longbird.LongbirdConfig(**fields))
    path = tmp_path / ("saved.npz" if family == "tensorflow" else "saved")
    with pytest.raises(ValueError):
        longbird.save_checkpoint(model, path, family)
    assert not path.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"layer_norm_eps": 1e-3},
        {"norm": "post"},
        {"graph": longbird.Window(4)},
        {"max_decoder_positions": 33},
        {"attention_output_bias": True},
    ],
)
def test_encoder_decoders_that_a_family_cannot_say(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    fields = {
        **FULL,
        "decoder_layers": 1,
        "decoder_attention_heads": 2,
        "decoder_intermediate_size": 24,
        "max_decoder_positions": 80,
        **changes,
    }
    model = longbird.LongbirdSeq2SeqModel(longbird.LongbirdSeq2SeqConfig(**fields))
    with pytest.raises(ValueError):
        longbird.save_checkpoint(model, tmp_path / "saved", "bigbird_pegasus")
    assert not (tmp_path / "saved").exists()


# Google's variables


def google_variables(theirs: Any) -> dict[str, np.ndarray]:
    """The variables of google-research/bigbird with the weights of a BigBirdForPreTraining."""
    state = {name: x.numpy() for name, x in theirs.state_dict().items()}
    variables: dict[str, np.ndarray] = {}

    def dense(name: str, module: str) -> None:
        variables[f"{name}/kernel"] = state[f"{module}.weight"].T
        variables[f"{name}/bias"] = state[f"{module}.bias"]

    def norm(name: str, module: str) -> None:
        variables[f"{name}/gamma"] = state[f"{module}.weight"]
        variables[f"{name}/beta"] = state[f"{module}.bias"]

    for kind in ("word", "position", "token_type"):
        name = f"{kind}_embeddings"
        variables[f"bert/embeddings/{name}"] = state[f"bert.embeddings.{name}.weight"]
    norm("bert/encoder/LayerNorm", "bert.embeddings.LayerNorm")
    for layer in range(theirs.config.num_hidden_layers):
        there, here = f"bert/encoder/layer_{layer}", f"bert.encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            dense(f"{there}/attention/self/{part}", f"{here}.attention.self.{part}")
        dense(f"{there}/attention/output/dense", f"{here}.attention.output.dense")
        norm(f"{there}/attention/output/LayerNorm", f"{here}.attention.output.LayerNorm")
        dense(f"{there}/intermediate/dense", f"{here}.intermediate.dense")
        dense(f"{there}/output/dense", f"{here}.output.dense")
        norm(f"{there}/output/LayerNorm", f"{here}.output.LayerNorm")
    dense("bert/pooler/dense", "bert.pooler")
    dense("cls/predictions/transform/dense", "cls.predictions.transform.dense")
    norm("cls/predictions/transform/LayerNorm", "cls.predictions.transform.LayerNorm")
    variables["cls/predictions/output_bias"] = state["cls.predictions.bias"]
    variables["cls/seq_relationship/output_weights"] = state["cls.seq_relationship.weight"]
    variables["cls/seq_relationship/output_bias"] = state["cls.seq_relationship.bias"]
    return variables


def google_config(plan: str = "huggingface_eval") -> Any:
    """Our configuration of the BigBird that `google_variables` are of."""
    return longbird.LongbirdConfig(
        **{**SMALL, "max_position_embeddings": 256},
        graph=longbird.LegacyBigBird(plan, block=4, random=2, max_length=256),
        embedding_norm="after_dropout",
    )


@pytest.fixture
def pretraining() -> Any:
    """A BigBirdForPreTraining of transformers."""
    config = configuration("big_bird", **{**SMALL, "max_position_embeddings": 256})
    return theirs_of("big_bird", "LongbirdForPreTraining", config)


def test_variables_of_tensorflow(pretraining: Any, tmp_path: Path) -> None:
    variables = google_variables(pretraining)
    slots = {f"{k}/{slot}": v for k, v in variables.items() for slot in ("adam_m", "adam_v")}
    np.savez(tmp_path / "in.npz", **variables, **slots, global_step=np.int64(7))
    ours = longbird.load_checkpoint(
        tmp_path / "in.npz", longbird.LongbirdForPreTraining, config=google_config()
    )
    assert_same(pretraining, ours, documents_of([60, 21]))
    longbird.save_checkpoint(ours, tmp_path / "out.npz", "tensorflow")
    with np.load(tmp_path / "out.npz") as written:
        assert set(written) == set(variables)
        for name, array in variables.items():
            np.testing.assert_array_equal(written[name], array)


def test_variables_of_tensorflow_go_on_to_transformers(pretraining: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", **google_variables(pretraining))
    head = longbird.LongbirdForPreTraining
    ours = head.from_pretrained(tmp_path / "in.npz", config=google_config())
    longbird.save_checkpoint(ours, tmp_path / "out", "big_bird")
    again = transformers.BigBirdForPreTraining.from_pretrained(tmp_path / "out")
    assert not states_differ(again, forget(pretraining))


def test_variables_that_do_not_fit(
    pretraining: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    variables = google_variables(pretraining)
    del variables["bert/encoder/layer_1/output/dense/bias"]
    np.savez(tmp_path / "in.npz", **variables, **{"bert/adapter/kernel": np.zeros((2, 2), "f4")})
    head, config = longbird.LongbirdForPreTraining, google_config()
    what = r"(?s)missing: .*layers\.1\.feed_forward\.leave\.bias.*left over: .*bert/adapter"
    with pytest.raises(ValueError, match=what):
        head.from_pretrained(tmp_path / "in.npz", config=config)
    with caplog.at_level(logging.WARNING):
        head.from_pretrained(tmp_path / "in.npz", config=config, strict=False)
    assert "bert/adapter" in caplog.text
    with pytest.raises(ValueError, match="config=LongbirdConfig"):
        head.from_pretrained(tmp_path / "in.npz")


class Evil:
    """Touches a file when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.trace),))


def a_lie_about_size() -> bytes:
    """An .npy file of ten bytes that says it has 4 TB."""
    file = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)}
    np.lib.format.write_array_header_1_0(file, header)  # type: ignore[arg-type]
    return file.getvalue() + bytes(10)


def zipped(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


def saved(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


HOSTILE_ARRAYS: dict[str, Callable[[Path], bytes]] = {
    "object": lambda trace: saved(a=np.array([Evil(trace)], dtype=object)),
    "pickle": lambda trace: pickle.dumps(Evil(trace)),
    "text": lambda _: saved(a=np.array(["x"])),
    "structured": lambda _: saved(a=np.zeros(3, dtype=[("a", "f4")])),
    "truncated": lambda _: saved(a=np.zeros(1000))[:400],
    "garbage": lambda _: bytes(range(256)) * 9,
    "empty": lambda _: b"",
    "a lie about the size": lambda _: zipped("a.npy", a_lie_about_size()),
    "a path": lambda _: zipped("../../a.npy", b"x"),
}


@pytest.mark.parametrize("case", HOSTILE_ARRAYS)
def test_hostile_arrays(case: str, tmp_path: Path) -> None:
    file, trace = tmp_path / "in.npz", tmp_path / "trace"
    file.write_bytes(HOSTILE_ARRAYS[case](trace))
    with pytest.raises(ValueError, match=str(file)):
        longbird.LongbirdModel.from_pretrained(file, config=google_config())
    assert not trace.exists()


@pytest.mark.parametrize("kind", ["i4", "?", "c8"])
def test_variables_that_are_not_real_numbers(kind: str, pretraining: Any, tmp_path: Path) -> None:
    variables = google_variables(pretraining)
    variables["bert/pooler/dense/bias"] = np.zeros(16, kind)
    np.savez(tmp_path / "in.npz", **variables)
    with pytest.raises(ValueError, match="pooler"):
        longbird.LongbirdForPreTraining.from_pretrained(
            tmp_path / "in.npz", config=google_config()
        )


def test_a_file_of_variables_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz"):
        longbird.LongbirdModel.from_pretrained(tmp_path / "nothing.npz", config=google_config())


# broken and hostile folders, of theirs and of ours


def header(value: Any, data: bytes = b"") -> bytes:
    """A safetensors file with this header."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(shape: list[int], kind: str = "F32") -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": [0, 8]}


BAD_WEIGHTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda good: b"",
    "four bytes": lambda good: good[:4],
    "only the length": lambda good: good[:8],
    "half of the header": lambda good: good[:100],
    "a byte short": lambda good: good[:-1],
    "a byte long": lambda good: good + b"\0",
    "garbage": lambda good: bytes(range(256)) * 9,
    "a header of 4 EB": lambda good: struct.pack("<Q", 1 << 62) + b"{}",
    "a header of 90 MB": lambda good: struct.pack("<Q", 90_000_000) + b"{}",
    "a header that is no JSON": lambda good: header(b"not JSON"),
    "a header that is a list": lambda good: header([1, 2]),
    "more tensor than file": lambda good: header({"a": entry([1 << 40, 1 << 10])}, bytes(8)),
    "overlap": lambda good: header({"a": entry([2]), "b": entry([2])}, bytes(8)),
    "a negative shape": lambda good: header({"a": entry([-2])}, bytes(8)),
    "an unknown type": lambda good: header({"a": entry([2], "F99")}, bytes(8)),
    "no tensors": lambda good: header({}),
}


@pytest.fixture(params=["bert", "own"])
def folder(request: pytest.FixtureRequest) -> Path:
    """A folder with a model, of transformers and of ours."""
    return request.getfixturevalue(request.param)


def is_refused(folder: Path, *words: str, **options: Any) -> None:
    """Loading fails soon, with a clear error that names the folder."""
    with at_most(5), pytest.raises((ValueError, FileNotFoundError)) as caught:
        longbird.LongbirdModel.from_pretrained(folder, **options)
    message = str(caught.value)
    assert folder.name in message, message
    for word in words:
        assert word in message, message


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fails, rather than to go on and on."""

    def fail(*_: Any) -> None:
        pytest.fail(f"took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_broken_weights(case: str, folder: Path) -> None:
    file = folder / WEIGHTS
    file.write_bytes(BAD_WEIGHTS[case](file.read_bytes()))
    is_refused(folder)


@pytest.mark.parametrize("kind", [torch.int64, torch.bool])
def test_weights_that_are_not_real_numbers(kind: torch.dtype, folder: Path) -> None:
    rewrite(folder, lambda x: {k: v.to(kind) if "value.w" in k else v for k, v in x.items()})
    is_refused(folder, "value.weight")


def test_weights_of_another_shape(folder: Path) -> None:
    rewrite(folder, lambda x: {k: v[:3] if "value.b" in k else v for k, v in x.items()})
    is_refused(folder, "value.bias", "[3] in the file")
    for option in ({"strict": False}, {"ignore_mismatched_sizes": True}):
        model = longbird.LongbirdModel.from_pretrained(folder, **option)
        assert model.layers[0].attention.value.bias.shape == (16,)


def test_the_option_of_transformers_is_for_other_shapes_alone(folder: Path) -> None:
    rewrite(folder, lambda x: {k: v for k, v in x.items() if "1.attention" not in k})
    is_refused(folder, "missing: layers.1.attention", ignore_mismatched_sizes=True)


def test_missing_and_other_weights(folder: Path) -> None:
    rewrite(folder, lambda x: {k.replace("1.attention", "9.attention"): x[k] for k in x})
    is_refused(folder, "layers.1.attention", "9.attention")


def in_shards(folder: Path, second: Any = "b.safetensors", weight_map: Any = None) -> None:
    """The weights as two files, and an index that names `second` for the second of them."""
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    half = len(tensors) // 2
    first = dict(list(tensors.items())[:half])
    save_file(first, folder / "a.safetensors", {"format": "pt"})
    rest = {name: x for name, x in tensors.items() if name not in first}
    save_file(rest, folder / "b.safetensors", {"format": "pt"})
    files = {name: "a.safetensors" if name in first else second for name in tensors}
    index = {"metadata": {}, "weight_map": files if weight_map is None else weight_map}
    (folder / INDEX).write_text(json.dumps(index))


def test_weights_in_shards(folder: Path) -> None:
    whole = longbird.LongbirdModel.from_pretrained(folder)
    in_shards(folder)
    assert not states_differ(whole, longbird.LongbirdModel.from_pretrained(folder))


@pytest.mark.parametrize(
    "second",
    [
        "../b.safetensors",
        "/b.safetensors",
        "sub/b.safetensors",
        "sub/../b.safetensors",
        "c.safetensors",
        "b.bin",
        "config.json",
        "",
        3,
        None,
        ["b.safetensors"],
    ],
)
def test_shards_that_lead_elsewhere(second: Any, folder: Path) -> None:
    in_shards(folder, second)
    # What is there can be read: the name alone must be refused.
    for place in (folder.parent, folder / "sub"):
        place.mkdir(exist_ok=True)
        shutil.copy(folder / "b.safetensors", place / "b.safetensors")
    torch.save({}, folder / "b.bin")
    is_refused(folder)


@pytest.mark.parametrize("weight_map", [[], {}, 3, "a.safetensors", ["a.safetensors"]])
def test_an_index_without_a_map(weight_map: Any, folder: Path) -> None:
    in_shards(folder, weight_map=weight_map)
    is_refused(folder)


@pytest.mark.parametrize("text", ["", "[]", "{", "\0", '{"weight_map": '])
def test_an_index_that_is_no_json(text: str, folder: Path) -> None:
    in_shards(folder)
    (folder / INDEX).write_text(text)
    is_refused(folder)


def test_a_tensor_in_two_shards_is_that_of_the_index(folder: Path) -> None:
    whole = longbird.LongbirdModel.from_pretrained(folder)
    in_shards(folder)
    first, second = load_file(folder / "a.safetensors"), load_file(folder / "b.safetensors")
    name = next(iter(first))
    save_file({**second, name: first[name] + 1}, folder / "b.safetensors", {"format": "pt"})
    try:
        again = longbird.LongbirdModel.from_pretrained(folder)
    except ValueError:
        return
    assert not states_differ(whole, again)


@pytest.mark.parametrize("where", ["itself", "/dev/zero", "nothing", "a folder"])
def test_weights_that_are_no_file(where: str, folder: Path) -> None:
    file = folder / WEIGHTS
    file.unlink()
    if where == "a folder":
        file.mkdir()
    else:
        file.symlink_to(file if where == "itself" else where)
    is_refused(folder)


def test_a_symbolic_link_to_weights_is_followed(folder: Path) -> None:
    # The cache of the hub is made of them.
    (folder / WEIGHTS).rename(folder.parent / "blob")
    (folder / WEIGHTS).symlink_to(folder.parent / "blob")
    longbird.LongbirdModel.from_pretrained(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "model.ckpt"])
def test_pickles_are_refused(name: str, folder: Path, tmp_path: Path) -> None:
    (folder / WEIGHTS).unlink()
    torch.save({"a": Evil(tmp_path / "trace")}, folder / name)
    is_refused(folder, name, "pickle")
    assert not (tmp_path / "trace").exists()


def test_a_pickle_under_another_name(folder: Path, tmp_path: Path) -> None:
    torch.save({"a": Evil(tmp_path / "trace")}, folder / WEIGHTS)
    is_refused(folder)
    assert not (tmp_path / "trace").exists()


def test_code_beside_the_weights_is_not_run(folder: Path, tmp_path: Path) -> None:
    code = f"import os\nos.mkdir({str(tmp_path / 'trace')!r})\nclass Evil: pass\n"
    (folder / "modeling_evil.py").write_text(code)
    say(folder, auto_map={"AutoModel": "modeling_evil.Evil", "AutoConfig": "modeling_evil.Evil"})
    longbird.LongbirdModel.from_pretrained(folder)
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("name", [WEIGHTS, "config.json"])
def test_a_file_that_is_not_there(name: str, folder: Path) -> None:
    (folder / name).unlink()
    is_refused(folder, name)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    is_refused(tmp_path / "nothing")


def test_a_file_instead_of_a_folder(folder: Path) -> None:
    is_refused(folder / WEIGHTS)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", "3", "null", '"bert"', "[" * 100_000, '{"a":' * 100_000, "\xff\0"],
    ids=["empty", "open", "list", "number", "null", "text", "deep", "deeper", "binary"],
)
def test_a_configuration_that_is_no_json_object(text: str, folder: Path) -> None:
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    is_refused(folder, "config.json")


def say(folder: Path, **fields: Any) -> None:
    """Changes fields of config.json."""
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


def test_numbers_with_many_digits(folder: Path) -> None:
    (folder / "config.json").write_text(f'{{"hidden_size": {"9" * 5000}}}')
    is_refused(folder, "config.json")


@pytest.mark.parametrize("value", ["evil", None, ["bert"], {"a": 1}, 3])
def test_unknown_model_types(value: Any, folder: Path) -> None:
    say(folder, model_type=value)
    is_refused(folder, "model")


HUGE = 10**13  # beyond the memory of any machine
BAD_VALUES: dict[str, list[Any]] = {
    "hidden_size": [-16, 0, 17, "16", 1.5, None, HUGE, [16], True],
    "num_hidden_layers": [-1, 0, 1, 3, 10**9, "2", None],
    "num_attention_heads": [0, -2, 3, 10**9, "2", None],
    "vocab_size": [-1, 0, 119, HUGE, "120", None],
    "max_position_embeddings": [-1, 0, HUGE],
    "type_vocab_size": [-1, HUGE],
    "intermediate_size": [-1, 0, HUGE],
    "hidden_act": ["evil", "__import__('os')", None, 5],
    "layer_norm_eps": ["x", None],
    "pad_token_id": [HUGE, "a", 130],
    "hidden_dropout_prob": [-1, 2, "x"],
    "id2label": [5, {"a": "b"}, ["x"]],
    "tie_word_embeddings": ["x"],
}


@pytest.mark.parametrize(
    ("field", "value"), [(name, value) for name, values in BAD_VALUES.items() for value in values]
)
def test_hostile_configurations(field: str, value: Any, folder: Path) -> None:
    say(folder, **{field: value})
    is_refused(folder)


@pytest.mark.parametrize("value", ["evil", {"type": "os"}, [1], 5, [{"type": "Full"}] * 3])
def test_graphs_that_are_none(value: Any, own: Path) -> None:
    say(own, graph=value)
    is_refused(own, "graph")


def test_a_generation_configuration_that_is_broken(tmp_path: Path) -> None:
    head = "LongbirdForConditionalGeneration"
    theirs_of("led", head, configuration("led", head)).save_pretrained(tmp_path / "led")
    (tmp_path / "led" / "generation_config.json").write_text("{")
    with pytest.raises(ValueError, match=r"led.generation_config\.json"):
        longbird.LongbirdForConditionalGeneration.from_pretrained(tmp_path / "led")


# our own form

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
    assert not info["missing_keys"] and not info["unexpected_keys"]
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


def test_half_a_pooler_is_a_damaged_file(own: Path, caplog: pytest.LogCaptureFixture) -> None:
    rewrite(own, lambda x: {k: v for k, v in x.items() if k != "pooler.bias"})
    with pytest.raises(ValueError, match=r"(?s)missing: pooler\.bias.*strict=False"):
        longbird.LongbirdModel.from_pretrained(own)
    with caplog.at_level(logging.WARNING):
        longbird.LongbirdModel.from_pretrained(own, strict=False)
    assert "pooler.bias" in caplog.text


@pytest.mark.parametrize("size", ["16", 1.5, -16, 0])
def test_configurations_check_sizes(size: Any) -> None:
    with pytest.raises(Exception, match=r"hidden_size"):
        longbird.LongbirdConfig(hidden_size=size)


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


def test_variables_of_tensorflow_want_a_configuration_of_ours(tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", a=np.zeros(3))
    with pytest.raises(TypeError, match="must be a LongbirdConfig, received BertConfig"):
        longbird.LongbirdModel.from_pretrained(
            tmp_path / "model.npz", config=transformers.BertConfig()
        )


def test_names_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = theirs_of("bert", "LongbirdModel", configuration("bert"))
    theirs.save_pretrained(tmp_path)
    asked: list[tuple[str, bool]] = []

    def download(name: str, **options: Any) -> str:
        asked.append((name, options.get("local_files_only", False)))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    longbird.load_checkpoint("google-bert/bert-base-uncased", longbird.LongbirdModel)
    # Without an owner, most likely a folder with a typing mistake: downloads are looked at alone.
    longbird.load_checkpoint("bert-base-uncased", longbird.LongbirdModel)
    assert asked == [("google-bert/bert-base-uncased", False), ("bert-base-uncased", True)]

    def unreachable(name: str, **options: Any) -> str:
        raise ConnectionError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(FileNotFoundError, match=r"no folder google-bert/bert.*hub: no network"):
        longbird.load_checkpoint("google-bert/bert-base-uncased", longbird.LongbirdModel)


def test_a_typing_mistake_in_the_name_of_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> Any:
        raise AssertionError("the network was asked")

    monkeypatch.setattr("socket.socket.connect", fail)
    with at_most(2), pytest.raises(FileNotFoundError, match=r"no folder my-modle, .*owner/name"):
        longbird.LongbirdForMaskedLM.from_pretrained("my-modle")
    with at_most(2), pytest.raises(FileNotFoundError, match=r"no folder \./a/modle"):
        longbird.LongbirdForMaskedLM.from_pretrained("./a/modle")
