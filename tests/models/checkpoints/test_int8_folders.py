"""Folders with int8 weights: what is read, in which class, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from folders import SMALL, rewrite, say, states_differ
from safetensors.torch import load_file

import longbird

IDS = torch.arange(4, 60)[None]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder with a small model with int8 weights."""
    torch.manual_seed(0)
    config = longbird.LongbirdConfig(**SMALL, graph=longbird.Full())
    longbird.quantize(longbird.LongbirdForMaskedLM(config)).save_pretrained(tmp_path / "small")
    return tmp_path / "small"


def test_the_file_is_a_quarter(small: Path) -> None:
    tensors = load_file(small / "model.safetensors")
    layers = {name: x for name, x in tensors.items() if ".layers." in name and x.ndim == 2}
    assert layers
    assert all(x.dtype == torch.int8 for x in layers.values())
    assert {x.dtype for name, x in tensors.items() if name not in layers} == {torch.float32}


def test_auto_classes(small: Path, own: Path) -> None:
    known = longbird.LongbirdForMaskedLM.from_pretrained(small)
    found = transformers.AutoModelForMaskedLM.from_pretrained(small)
    assert type(found) is type(known)
    assert not states_differ(found, known)
    rounded = transformers.AutoModel.from_pretrained(own, quantize="int8")
    want = longbird.quantize(longbird.LongbirdModel.from_pretrained(own))
    assert rounded.config.quantize == "int8"
    assert not states_differ(rounded, want)


def test_another_head(small: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = longbird.LongbirdForSequenceClassification.from_pretrained(small, num_labels=3)
    body = longbird.LongbirdForMaskedLM.from_pretrained(small).longbird
    assert not states_differ(model.longbird, body)
    assert model(IDS).logits.shape == (1, 3)


def test_a_checkpoint_of_another_library(bert: Path) -> None:
    found = longbird.LongbirdModel.from_pretrained(bert, quantize="int8")
    want = longbird.quantize(longbird.LongbirdModel.from_pretrained(bert))
    assert found.config.quantize == "int8"
    assert not states_differ(found, want)
    with pytest.raises(ValueError, match=r"quantize='int8'.*Save the model with save_pretrained"):
        longbird.save_checkpoint(found, bert.parent / "other", "bert")


@pytest.mark.parametrize("folder", ["bert", "own", "small"])
def test_types(folder: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(folder)
    for dtype in ("auto", torch.float32, "float32"):
        model = longbird.LongbirdModel.from_pretrained(path, quantize="int8", dtype=dtype)
        assert model.dtype == torch.float32
    with pytest.raises(ValueError, match=r"goes with float32.*received dtype=torch.bfloat16"):
        longbird.LongbirdModel.from_pretrained(path, quantize="int8", dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="quantize must be one of int8, or None"):
        longbird.LongbirdModel.from_pretrained(path, quantize="int2")


def test_a_folder_in_half_precision(tmp_path: Path) -> None:
    model = longbird.LongbirdModel(longbird.LongbirdConfig(**SMALL)).to(torch.bfloat16)
    model.save_pretrained(tmp_path)
    found = longbird.LongbirdModel.from_pretrained(tmp_path, quantize="int8")
    assert not states_differ(found, longbird.quantize(model.float()))


def test_the_way_back(small: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"are int8.*load the folder that it was made from"):
        longbird.LongbirdForMaskedLM.from_pretrained(small, quantize=None)
    with pytest.raises(ValueError, match="int8"):
        longbird.convert_checkpoint(small, tmp_path / "long", 200)
    assert not (tmp_path / "long").exists()


def changed(end: str, change: Any) -> Any:
    return lambda tensors: {k: change(x) if k.endswith(end) else x for k, x in tensors.items()}


HOSTILE: dict[str, tuple[Any, str]] = {
    "real weights": (changed("key.weight", lambda x: x.float()), "is not int8"),
    "long weights": (changed("key.weight", lambda x: x.long()), "is not int8"),
    "unsigned weights": (changed("key.weight", lambda x: x.to(torch.uint8)), "is not int8"),
    "an integer scale": (changed("key.scale", lambda x: x.to(torch.int8)), "not in floating"),
    "a wide scale": (changed("key.scale", lambda x: x.repeat(2)), r"key.scale: \[32\]"),
    "other weights": (changed("key.weight", lambda x: x[:, :3]), r"key.weight: \[16, 3\]"),
    "too large": (changed("key.weight", lambda x: x.fill_(100)), "from -64 to 64, received 100"),
    "no scale": (lambda t: {k: x for k, x in t.items() if "scale" not in k}, "missing: .*scale"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files(case: str, small: Path) -> None:
    change, message = HOSTILE[case]
    rewrite(small, change)
    with pytest.raises(ValueError, match=message):
        longbird.LongbirdForMaskedLM.from_pretrained(small)


def test_a_configuration_that_does_not_fit(small: Path, own: Path) -> None:
    say(small, quantize=None)
    with pytest.raises(ValueError, match="not in floating point"):
        longbird.LongbirdForMaskedLM.from_pretrained(small)
    say(own, quantize="int8")
    with pytest.raises(ValueError, match="is not int8"):
        longbird.LongbirdModel.from_pretrained(own)
    for odd in (8, True, "int4", ["int8"]):
        say(own, quantize=odd)
        with pytest.raises((TypeError, ValueError), match="quantize must be"):
            longbird.LongbirdModel.from_pretrained(own)


def test_a_state_dict(small: Path) -> None:
    model = longbird.LongbirdForMaskedLM.from_pretrained(small)
    options = {"config": model.config, "state_dict": model.state_dict()}
    again = longbird.LongbirdForMaskedLM.from_pretrained(None, **options)
    assert not states_differ(again, model)
    options["state_dict"] = {k: x.float() for k, x in model.state_dict().items()}
    with pytest.raises(ValueError, match="int8 weights go with quantize='int8' only"):
        longbird.LongbirdForMaskedLM.from_pretrained(None, **options)
