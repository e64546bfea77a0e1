"""Files that are small, and would be huge in memory: refused by their headers."""

from __future__ import annotations

import io
import json
import os
import resource
import struct
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import longbird as lb
from longbird.models.checkpoints.files import LARGEST_JSON

SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "intermediate_size": 24,
    "max_position_embeddings": 80,
}
GRAPH = lb.LegacyBigBird("google", block=4, random=2, max_length=80)
GIGABYTE = 2**30


def config() -> Any:
    return lb.LongbirdConfig(**SIZES, graph=GRAPH, embedding_norm="after_dropout")


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """Fails if a test takes much memory; a bomb that goes off would take gigabytes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 300_000, f"{grown} kB"


def npy(shape: tuple[int, ...], kind: str = "<f4") -> bytes:
    """The header of an array."""
    file = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)  # type: ignore[arg-type]
    return file.getvalue()


def zeros(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], kind: str = "<f4") -> None:
    """A member of zeros, written in pieces: a thousandth of its size."""
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as member:
        member.write(npy(shape, kind))
        left = int(np.prod(shape)) * np.dtype(kind).itemsize
        while left > 0:
            left -= member.write(bytes(min(left, 2**24)))


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    """A good file of variables."""
    lb.save_checkpoint(lb.LongbirdModel(config()), tmp_path / "good.npz", "tensorflow")
    return tmp_path / "good.npz"


def with_member(good: Path, name: str, shape: tuple[int, ...], kind: str = "<f4") -> Path:
    """The good file with one member replaced or added, compressed."""
    bad = good.with_name("bad.npz")
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            if member.filename != name:
                new.writestr(member.filename, old.read(member))
        zeros(new, name, shape, kind)
    return bad


def load(file: Path) -> Any:
    return lb.load_checkpoint(file, lb.LongbirdModel, config=config())


WORDS = "bert/embeddings/word_embeddings.npy"


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("name", "shape", "kind", "said"),
    [
        (WORDS, (2**27,), "<f4", "embeddings.tokens.weight"),
        (WORDS, (60, 16, 2**17), "<f4", "embeddings.tokens.weight"),
        ("bert/encoder/layer_9/output/dense/kernel.npy", (2**13, 2**14), "<f4", "layers.9"),
        (WORDS, (60, 16), "<c16", "floating point"),
    ],
)
def test_a_bomb_of_arrays(
    name: str, shape: tuple[int, ...], kind: str, said: str, arrays: Path
) -> None:
    load(arrays)
    bad = with_member(arrays, name, shape, kind)
    assert bad.stat().st_size < 2**22
    with pytest.raises(ValueError, match=said):
        load(bad)


@pytest.mark.slow  # a file of gigabytes
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "name", ["bert/pooler/dense/kernel/adam_m.npy", "global_step.npy", "cls/big.npy"]
)
def test_a_bomb_that_has_no_place_is_never_read(name: str, arrays: Path) -> None:
    model = load(with_member(arrays, name, (2**27,)))
    assert torch.equal(model.pooler.weight, load(arrays).pooler.weight)


def test_a_header_that_lies(arrays: Path) -> None:
    bad = arrays.with_name("bad.npz")
    for content in (
        npy((2**40,)) + bytes(10),
        npy((60, 16)),  # and no numbers
        npy((-1, 16)) + bytes(100),
        b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + bytes(2**20),  # a header of 4 GB
        b"\x93NUMPY\x09\x00" + bytes(100),
    ):
        with zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(WORDS, content)
        with pytest.raises(ValueError, match=r"bad\.npz"):
            load(bad)


def test_members_that_are_no_arrays_or_twice_there(arrays: Path) -> None:
    bad = arrays.with_name("bad.npz")
    for names in (["a.txt"], ["a.npy", "a.npy"]):
        with zipfile.ZipFile(bad, "w") as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the zip file is odd on purpose
            for name in names:
                archive.writestr(name, npy((0,)))
        with pytest.raises(ValueError, match=r"bad\.npz.*member"):
            load(bad)


# ---- folders


@pytest.fixture(params=["bert", "own"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with a model, of transformers and of ours."""
    if request.param == "bert":
        transformers.BertModel(transformers.BertConfig(**SIZES)).save_pretrained(tmp_path)
    else:
        lb.LongbirdModel(lb.LongbirdConfig(**SIZES)).save_pretrained(tmp_path)
    return tmp_path


def sparse_tensor(file: Path, name: str, shape: list[int]) -> None:
    """A file with a good header whose numbers are a hole: it takes no room on the disk."""
    size = int(np.prod(shape)) * 4
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}
    text = json.dumps({name: entry}).encode()
    with file.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        stream.truncate(8 + len(text) + size)


@pytest.mark.parametrize("known", [True, False])
def test_a_tensor_of_a_terabyte(known: bool, folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    name = next(name for name in tensors if name.endswith("norm.weight") or "Norm.w" in name)
    huge = name if known else "somebody.else"
    rest = {k: v for k, v in tensors.items() if k != huge}
    save_file(rest, folder / "a.safetensors", {"format": "pt"})
    sparse_tensor(folder / "b.safetensors", huge, [2**28, 2**10])
    files = {**dict.fromkeys(rest, "a.safetensors"), huge: "b.safetensors"}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": files}))
    with pytest.raises(ValueError, match="somebody" if not known else r"\[268435456, 1024\]"):
        lb.LongbirdModel.from_pretrained(folder)


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
def test_json_of_a_gigabyte(name: str, tmp_path: Path) -> None:
    config = lb.LongbirdConfig(**SIZES, graph=lb.Full(), is_decoder=True)
    lb.LongbirdForCausalLM(config).save_pretrained(tmp_path)
    with (tmp_path / name).open("r+b") as file:
        file.truncate(GIGABYTE)
    with pytest.raises(ValueError, match=rf"{name} has 1,073,741,824 bytes; expected"):
        lb.LongbirdForCausalLM.from_pretrained(tmp_path)
    assert LARGEST_JSON < GIGABYTE


@pytest.mark.parametrize("text", ['{"a": ' * 50_000, "[" * 200_000, '{"model_type": "bert",' * 2])
def test_json_that_is_deep_or_says_things_twice(text: str, folder: Path) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"config\.json is not valid JSON"):
        lb.LongbirdModel.from_pretrained(folder)


def test_a_key_that_is_there_twice(folder: Path) -> None:
    file = folder / "config.json"
    file.write_text(file.read_text().replace("{", '{"vocab_size": 9,', 1))
    with pytest.raises(ValueError, match="'vocab_size' more than once"):
        lb.LongbirdModel.from_pretrained(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "generation_config.json"])
def test_files_that_never_end(name: str, tmp_path: Path) -> None:
    config = lb.LongbirdConfig(**SIZES, graph=lb.Full(), is_decoder=True)
    lb.LongbirdForCausalLM(config).save_pretrained(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises((ValueError, FileNotFoundError), match=name):
        lb.LongbirdForCausalLM.from_pretrained(tmp_path)


def test_weights_under_another_name_are_not_read(tmp_path: Path) -> None:
    lb.LongbirdModel(lb.LongbirdConfig(**SIZES)).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    fields = {**json.loads(file.read_text()), "transformers_weights": "../other.safetensors"}
    file.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match="names another file of weights"):
        lb.LongbirdModel.from_pretrained(tmp_path)
