"""Google's BigBird: variables in an .npz file, which may be hostile."""

from __future__ import annotations

import io
import logging
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from folders import SMALL, Evil, states_differ
from theirs import assert_same, configuration, documents_of, forget, theirs_of

import longbird


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


def test_variables_of_tensorflow_want_a_configuration_of_ours(tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", a=np.zeros(3))
    with pytest.raises(TypeError, match="must be a LongbirdConfig, received BertConfig"):
        longbird.LongbirdModel.from_pretrained(
            tmp_path / "model.npz", config=transformers.BertConfig()
        )
