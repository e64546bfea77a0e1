"""Read untrusted files: safetensors, .npz and JSON only, never pickle.

Only headers are read at first. Names, shapes and types are compared with the model before any
tensor is read, and tensors that have no place in the model are never read.
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
"""Maximum size in bytes; the largest known indexes of shards and tokenizers have 20 MB."""

MOST_TENSORS = 100_000
"""Maximum number of tensors of a model; each name is compared with a table."""


@dataclass(frozen=True)
class Stored:
    """A tensor in a file, as its header describes it."""

    file: Path
    name: str
    stored_shape: tuple[int, ...]
    is_real: bool
    """Whether it is in floating point."""
    is_int8: bool = False
    """Whether it is int8, like the weights of quantised layers."""
    transposed: bool = False
    """Whether it is stored transposed, like kernels of TensorFlow."""
    rows: int | None = None
    """Number of first rows to read; None for all."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor that `read` returns."""
        shape = self.stored_shape[::-1] if self.transposed else self.stored_shape
        return shape if self.rows is None else (min(self.rows, *shape[:1]), *shape[1:])

    def read(self) -> Tensor:
        """Read the tensor."""
        is_array = self.file.suffix == ".npz"
        tensor = _read_array(self) if is_array else _read_safetensor(self)
        tensor = tensor.T if self.transposed else tensor
        return tensor[: self.rows]


def read_json(file: Path, kind: type = dict) -> Any:
    """Read a JSON object, or another `kind`; raise if it is huge or has a key twice."""
    if not file.is_file():  # a device or a pipe could block for ever
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
    """Return model.safetensors of a folder, or the files that its index names."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    if index.is_file():
        files = read_json(index).get("weight_map")
        if not isinstance(files, dict) or not files:
            raise InvalidValueError(f"{index} must have a weight_map, from tensors to files")
        for name in files.values():
            # A name with a folder in it could lead out of the folder.
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
    """Return the tensors of a folder by their names; only headers are read."""
    found: dict[str, Stored] = {}
    for file in files_of(folder):
        with _reading(file), safe_open(file, "np") as tensors:
            for name in tensors.keys():  # noqa: SIM118
                if name in found:  # it would be a guess which of them counts
                    raise InvalidValueError(
                        f"it has {name}, which {found[name].file.name} also has"
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
    """Add the name of the file to errors of safetensors."""
    try:
        yield
    except (SafetensorError, OSError, ValueError, TypeError, RuntimeError) as error:
        raise InvalidValueError(f"{file} cannot be read as safetensors: {error}") from error


# ---- .npz


def stored_arrays(file: Path) -> dict[str, Stored]:
    """Return the arrays of an .npz file by their names; only headers are read.

    A few kilobytes of zip can be gigabytes of zeros. So the size in a header must be that of the
    member of the zip file, and nothing is unpacked here.
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
        # Only version 1: later headers may have 4 GB, and plain arrays do not need them.
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
    """Add the name of the file to errors of zipfile, zlib and NumPy."""
    try:
        yield
    except Exception as error:
        raise InvalidValueError(
            f"{file} cannot be read as an .npz of plain arrays: {error}"
        ) from error
