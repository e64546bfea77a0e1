"""A full disk, or any other failure while writing: all or nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import transformers
from theirs import large_weights

import longbird as lb
from longbird.files.writing import writing_file, writing_files, writing_folder

SIZES: dict[str, Any] = {
    "vocab_size": 3000,
    "hidden_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 80,
}
MEGABYTE = 2**20


def small(seed: int = 0) -> Any:
    """A model of 1 MB."""
    model = lb.LongbirdForMaskedLM(lb.LongbirdConfig(**SIZES, graph=lb.Full())).eval()
    large_weights(model, seed)
    return model


def contents(folder: Path) -> dict[str, bytes]:
    """All files under a folder."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB; where it cannot be mounted, the test is left to the one that patches."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def save(model: Any, folder: Path, form: str) -> None:
    if form == "own":
        model.save_pretrained(folder)
    else:
        lb.save_checkpoint(model, folder, form)


@pytest.mark.parametrize("form", ["own", "bert"])
def test_a_full_disk(form: str, disk: Path) -> None:
    model = small()
    save(model, disk / "first", form)
    (disk / "taken").write_bytes(bytes(2 * MEGABYTE // 3))
    there = contents(disk)
    for target in ("first", "second", "a/b/c"):
        with pytest.raises(
            OSError, match=r"was not written: No space left .*Nothing partial"
        ) as e:
            save(small(1), disk / target, form)
        assert e.value.errno == errno.ENOSPC
        assert contents(disk) == there
        assert sorted(x.name for x in disk.iterdir()) == ["first", "taken"]
    again = lb.LongbirdForMaskedLM.from_pretrained(disk / "first")
    assert torch.equal(again.lm_head.bias, model.lm_head.bias)


def test_converting_onto_a_full_disk(disk: Path, tmp_path: Path, monkeypatch: Any) -> None:
    config = transformers.BertConfig(**SIZES)
    transformers.BertModel(config).save_pretrained(tmp_path / "short")
    (disk / "taken").write_bytes(bytes(3 * MEGABYTE // 2))
    # Asked beforehand: nothing is begun.
    with pytest.raises(ValueError, match=r"MB on the disk of .*are free; choose a shorter"):
        lb.convert_checkpoint(tmp_path / "short", disk / "long", 600)
    # Somebody else takes the room in the meantime.
    monkeypatch.setattr("longbird.models.conversion.lengthen._check_space", lambda *_: None)
    with pytest.raises(OSError, match=r"long was not written: No space left"):
        lb.convert_checkpoint(tmp_path / "short", disk / "long", 600)
    assert [file.name for file in disk.iterdir()] == ["taken"]
    monkeypatch.setattr(
        sys, "argv", ["longbird", "convert", str(tmp_path / "short"), str(disk / "long")]
    )
    from longbird.cli.app import main

    with pytest.raises(SystemExit) as exit:
        main()
    assert exit.value.code == 1  # not the user's mistake


def no_space(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def half_written(tensors: Any, filename: Any, *_: Any, **__: Any) -> Any:
    """What safetensors does on a full disk: a part of the file, and its own kind of error."""
    Path(filename).write_bytes(bytes(1000))
    raise safetensors.SafetensorError(
        "Error while serializing: I/O error: No space left on device (os error 28)"
    )


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("form", ["own", "bert"])
def test_a_writer_that_fails_half_way(
    form: str, before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    if before:
        save(small(), folder, form)
        (folder / "notes.txt").write_text("mine")
    there = contents(tmp_path)
    monkeypatch.setattr("transformers.modeling_utils.safe_save_file", half_written)
    monkeypatch.setattr("longbird.models.checkpoints.save.save_file", half_written)
    with pytest.raises(OSError, match="No space left") as caught:
        save(small(1), folder, form)
    assert caught.value.errno == errno.ENOSPC
    assert contents(tmp_path) == there
    assert [x.name for x in tmp_path.iterdir()] == (["model"] if before else [])


def test_variables_of_tensorflow_are_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = lb.LegacyBigBird("google", block=4, random=2, max_length=80)
    model = lb.LongbirdModel(
        lb.LongbirdConfig(**SIZES, graph=graph, embedding_norm="after_dropout")
    )
    lb.save_checkpoint(model, tmp_path / "one", "tensorflow")  # as np.savez, with a suffix
    assert [x.name for x in tmp_path.iterdir()] == ["one.npz"]
    there = contents(tmp_path)
    monkeypatch.setattr(np, "savez", no_space)
    for name in ("one.npz", "two.npz", "new/three.npz"):
        with pytest.raises(OSError, match=rf"{name} was not written: No space left"):
            lb.save_checkpoint(model, tmp_path / name, "tensorflow")
    assert contents(tmp_path) == there
    assert not (tmp_path / "new").exists()


def test_any_failure_leaves_nothing(tmp_path: Path) -> None:
    for error in (KeyboardInterrupt, ValueError, MemoryError):
        with pytest.raises(error), writing_folder(tmp_path / "a" / "b") as folder:
            (folder / "x").write_text("x")
            raise error
        with pytest.raises(error), writing_file(tmp_path / "c" / "d") as file:
            file.write_text("x")
            raise error
    assert list(tmp_path.iterdir()) == []


def test_what_else_is_in_the_folder_stays_and_old_weights_go(tmp_path: Path) -> None:
    first, second = small(0), small(1)
    (tmp_path / "sub").mkdir()
    for name in ("notes.txt", "sub/model.safetensors", "optimizer.pt", "adapter.safetensors"):
        (tmp_path / name).write_text("mine")
    first.save_pretrained(tmp_path)
    # transformers would leave model.safetensors there, and load it.
    second.save_pretrained(tmp_path, max_shard_size="300KB")
    assert not (tmp_path / "model.safetensors").exists()
    again = lb.LongbirdForMaskedLM.from_pretrained(tmp_path)
    assert torch.equal(again.lm_head.bias, second.lm_head.bias)
    first.save_pretrained(tmp_path)
    assert sorted(x.name for x in tmp_path.glob("*model*")) == ["model.safetensors"]
    again = lb.LongbirdForMaskedLM.from_pretrained(tmp_path)
    assert torch.equal(again.lm_head.bias, first.lm_head.bias)
    for name in ("notes.txt", "sub/model.safetensors", "optimizer.pt", "adapter.safetensors"):
        assert (tmp_path / name).read_text() == "mine"


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("mine")
    for form in ("own", "bert"):
        with pytest.raises(NotADirectoryError, match="model is a file"):
            save(small(), tmp_path / "model", form)
    assert (tmp_path / "model").read_text() == "mine"


def test_a_folder_where_a_file_should_be(tmp_path: Path) -> None:
    """Nothing moves, where not all can."""
    (tmp_path / "config.json").mkdir()
    with (
        pytest.raises(IsADirectoryError, match=r"config\.json is a folder"),
        writing_folder(tmp_path) as scratch,
    ):
        (scratch / "config.json").write_text("{}")
        (scratch / "model.safetensors").write_text("weights")
    assert os.listdir(tmp_path) == ["config.json"]


def test_two_writers_of_one_file(tmp_path: Path) -> None:
    """The second is refused, the first is not disturbed, and what a kill left behind goes."""
    paths = [tmp_path / "a.npy", tmp_path / "a.json"]
    left = tmp_path / ".a.npy.writing"
    left.mkdir()
    (left / "half").write_text("of a process that was killed")
    with writing_files(paths) as (first, last):
        first.write_text("1")
        with (
            pytest.raises(FileExistsError, match="is being written by another process"),
            writing_files(paths),
        ):
            pass
        last.write_text("2")
    assert [path.read_text() for path in paths] == ["1", "2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.npy"]
