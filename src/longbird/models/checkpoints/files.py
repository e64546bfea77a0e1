"""Reading files that may be broken or hostile: safetensors, .npz and JSON alone, never pickle.

Of tensors the headers come first: names, shapes and types are compared with the model before any
number is read, and what has no place in the model is never read.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from longbird.errors import InvalidValueError, MissingFileError

LARGEST_JSON = 64_000_000
"""Bytes; the largest index of shards and the largest tokenizer that we know have 20 MB."""

MOST_TENSORS = 100_000
"""Of a model; each name is compared with a table."""


@dataclass(frozen=True)
class Stored:
    """A tensor in a file: what its header says, and where it is read from."""

    file: Path
    name: str
    stored_shape: tuple[int, ...]
    is_real: bool
    """Is it of real numbers?"""
    is_int8: bool = False
    """Is it of int8, as the weights of quantised layers are?"""
    transposed: bool = False
    """Is it stored transposed, as kernels of TensorFlow are?"""
    rows: int | None = None
    """Take only this many rows, the first ones."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of what `read` gives."""
        shape = self.stored_shape[::-1] if self.transposed else self.stored_shape
        return shape if self.rows is None else (min(self.rows, *shape[:1]), *shape[1:])

    def read(self) -> Tensor:
        """The tensor."""
        is_array = self.file.suffix == ".npz"
        tensor = _read_array(self) if is_array else _read_safetensor(self)
        tensor = tensor.T if self.transposed else tensor
        return tensor[: self.rows]


def read_json(file: Path, kind: type = dict) -> Any:
    """A JSON object (or another `kind`); raises if it is none, is huge, or has a key twice."""
    if not file.is_file():  # a device or a pipe would be read for ever
        raise MissingFileError(f"{file} is missing, or is not a file")
    if file.stat().st_size > LARGEST_JSON:
        raise InvalidValueError(
            f"{file} has {file.stat().st_size:,} bytes; expected JSON of at most {LARGEST_JSON:,}"
        )
    try:
        value = json.loads(file.read_text("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"{file} is not valid JSON: {error}") from None
    if not isinstance(value, kind):
        expected = "a JSON object" if kind is dict else f"a JSON {kind.__name__}"
        raise InvalidValueError(f"{file} must hold {expected}, received {type(value).__name__}")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise InvalidValueError(f"it has {counts.most_common(1)[0][0]!r} more than once")
    return found


# ---- safetensors


def files_of(folder: Path) -> list[Path]:
    """The safetensors files of a folder: model.safetensors, or those that its index names."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    if index.is_file():
        files = read_json(index).get("weight_map")
        if not isinstance(files, dict) or not files:
            raise InvalidValueError(f"{index} must have a weight_map, from tensors to files")
        for name in files.values():
            # A name with a folder in it could lead anywhere.
            plain = isinstance(name, str) and Path(name).name == name
            if not plain or not name.endswith(".safetensors"):
                raise InvalidValueError(
                    f"{index} names the file {name!r}; expected a .safetensors file beside it"
                )
        return [folder / name for name in sorted(set(files.values()))]
    pickled = [
        file.name for ext in ("bin", "pt", "pth", "ckpt") for file in folder.glob(f"*.{ext}")
    ]
    if pickled:
        raise InvalidValueError(
            f"{folder} has {', '.join(sorted(pickled))}, a pickle, which can run any code when it "
            "is read; save the model as safetensors (save_pretrained of transformers does)"
        )
    raise MissingFileError(f"{folder} has no model.safetensors")


def stored_tensors(folder: Path) -> dict[str, Stored]:
    """The tensors of a folder by their names; reads headers alone."""
    found: dict[str, Stored] = {}
    for file in files_of(folder):
        with _reading(file), safe_open(file, "np") as tensors:
            for name in tensors.keys():  # noqa: SIM118
                if name in found:  # which of them counts would be a guess
                    raise InvalidValueError(
                        f"it has {name}, which {found[name].file.name} has, too"
                    )
                header = tensors.get_slice(name)
                if len(found) >= MOST_TENSORS:
                    raise InvalidValueError(f"it has more than {MOST_TENSORS:,} tensors")
                kind, shape = header.get_dtype(), tuple(header.get_shape())
                is_real = kind.startswith(("F", "BF"))
                found[name] = Stored(file, name, shape, is_real, kind == "I8")
    return found


def _read_safetensor(stored: Stored) -> Tensor:
    with _reading(stored.file), safe_open(stored.file, "pt") as tensors:
        return tensors.get_tensor(stored.name)


@contextmanager
def _reading(file: Path) -> Generator[None, None, None]:
    """Whatever safetensors fails with names the file."""
    try:
        yield
    except (SafetensorError, OSError, ValueError, TypeError, RuntimeError) as error:
        raise InvalidValueError(f"{file} cannot be read as safetensors: {error}") from error


# ---- .npz


def stored_arrays(file: Path) -> dict[str, Stored]:
    """The arrays of an .npz file by their names; reads the headers in it alone.

    A few kilobytes of zip can be gigabytes of zeros. So the size that a header gives must be that
    of the member of the zip file, and nothing is unpacked here.
    """
    if not file.is_file():
        raise MissingFileError(f"there is no file {file}")
    with _unpacking(file), zipfile.ZipFile(file) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        if len(members) > MOST_TENSORS:
            raise InvalidValueError(f"it has more than {MOST_TENSORS:,} arrays")
        if len({member.filename for member in members}) < len(archive.infolist()):
            raise InvalidValueError("it has the same member twice, or one that is not an array")
        return {x.name: x for x in (_stored_array(file, archive, member) for member in members)}


def _stored_array(file: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Stored:
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as stream:
        # Version 1 alone: the header of a later one may have 4 GB, and plain arrays need none.
        if np.lib.format.read_magic(stream) != (1, 0):
            raise InvalidValueError(f"{name} is not a plain array")
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        size = stream.tell() + prod(shape) * dtype.itemsize
    if dtype.hasobject or dtype.kind not in "fiubc":
        raise InvalidValueError(f"{name} is an array of {dtype}; expected plain numbers")
    if size != member.file_size:
        raise InvalidValueError(
            f"{name} has {size:,} bytes by its header, and {member.file_size:,} by the zip file"
        )
    return Stored(file, name, shape, dtype.kind == "f")


def _read_array(stored: Stored) -> Tensor:
    with (
        _unpacking(stored.file),
        zipfile.ZipFile(stored.file) as archive,
        archive.open(f"{stored.name}.npy") as stream,
    ):
        array = np.lib.format.read_array(stream, allow_pickle=False)
    return torch.from_numpy(np.ascontiguousarray(array))


@contextmanager
def _unpacking(file: Path) -> Generator[None, None, None]:
    """Whatever zipfile, zlib and NumPy fail with names the file."""
    try:
        yield
    except Exception as error:
        raise InvalidValueError(
            f"{file} cannot be read as an .npz of plain arrays: {error}"
        ) from error
