"""FASTA files, which are checked once as a whole, and then read through an index.

The contents and the index are kept in the cache as long as the file does not change. Files that
cannot be indexed (plain gzip, lines of uneven length) are copied into the cache.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from longbird.applications.dna.genomes.extra import need
from longbird.applications.dna.genomes.letters import PLAIN, check_letters, notes_on
from longbird.errors import InvalidValueError, UnsupportedError

AT_ONCE = 2**20
"""Number of bytes in memory at once."""
WIDTH = 2**12
"""Number of bases per line of a copy."""
END_OF_BGZIP = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
SPACES = b" \t\v\f\r\n"
NO_END = "the last line has no line break: if the file was truncated there, bases are missing"


@dataclass
class SequenceContents:
    """What a file of sequences holds."""

    lengths: dict[str, int] = field(default_factory=dict[str, int])
    circular: list[str] = field(default_factory=list[str])
    letters: Counter[str] = field(default_factory=Counter[str])
    notes: list[str] = field(default_factory=list[str])
    even: bool = True
    """Whether all lines of each sequence, but its last, have the same length."""

    def add(self, name: str, file: str) -> None:
        """Start a sequence."""
        if name in self.lengths:
            raise InvalidValueError(
                f"{file} has two sequences named {name} (VERSION in GenBank), so that labels are "
                "ambiguous. Rename one, or delete it if it is a copy"
            )
        self.lengths[name] = 0

    def count(self, name: str, bases: bytes, file: str) -> None:
        """Add bases to the sequence."""
        self.lengths[name] += len(bases)
        strange = bases.translate(None, PLAIN)
        if strange:
            letters = Counter(strange.upper().decode("latin-1"))
            check_letters(letters, f"{file}: {name}")
            self.letters += letters

    def finish(self, file: str) -> None:
        """Check the contents of the complete file."""
        if not self.lengths:
            raise InvalidValueError(f"{file} has no sequences; expected at least one")
        for name, length in self.lengths.items():
            if not length:
                raise InvalidValueError(
                    f"{file}: {name} has no bases. If it is the last sequence, the file was "
                    "probably truncated; otherwise delete its line"
                )
        self.notes += notes_on(self.letters, sum(self.lengths.values()), file)

    def write(self, path: Path) -> None:
        """Write the contents as JSON."""
        path.write_text(json.dumps(vars(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> SequenceContents:
        """Read a file that `write` wrote."""
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        values["letters"] = Counter(values["letters"])
        return cls(**values)


def is_bgzip(head: bytes) -> bool:
    """Return whether a file is bgzip, which allows random access, by its first bytes."""
    return head[:4] == b"\x1f\x8b\x08\x04" and head[12:14] == b"BC"


@contextmanager
def unpacked(path: str) -> Generator[IO[bytes], None, None]:
    """Open a file, and decompress it if it is gzip; truncated files are an error."""
    with open(path, "rb") as raw:
        head = raw.read(16)
        if not head.startswith(b"\x1f\x8b"):
            raw.seek(0)
            yield raw
            return
        if is_bgzip(head):
            raw.seek(0, os.SEEK_END)
            raw.seek(max(0, raw.tell() - len(END_OF_BGZIP)))
            if raw.read() != END_OF_BGZIP:
                raise InvalidValueError(
                    f"{path} lacks the last block of bgzip files: it is truncated. "
                    "Copy or download it again"
                )
        raw.seek(0)
        try:
            with gzip.GzipFile(fileobj=raw) as opened:
                stream: Any = opened  # the stubs do not know that it is a raw stream
                yield io.BufferedReader(stream, AT_ONCE)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidValueError(
                f"{path} is not a complete gzip file ({error}): it is truncated or damaged. "
                "Copy or download it again"
            ) from error


def scan(path: str, take: Callable[[str, bytes], Any] | None = None) -> SequenceContents:
    """Read a whole FASTA file with little memory, check it, and pass its bases to `take`."""
    found, name, line = SequenceContents(), "", b""
    held: list[bytes] = []  # pieces of the sequence that are not counted yet
    size = 0

    def hand_over() -> None:
        nonlocal size
        bases = b"".join(held)
        stripped = bases.translate(None, SPACES)
        found.even = found.even and len(stripped) == len(bases)
        if stripped:
            found.count(name, stripped, path)
            if take is not None:
                take(name, stripped)
        held.clear()
        size = 0

    lines, inside = Lines(), False
    wrapped = False
    with unpacked(path) as opened:
        while piece := opened.readline(AT_ONCE):  # a line, or a part of a very long one
            line = piece
            if line[:1] == b">" and not inside:
                if name:
                    hand_over()
                    found.even = found.even and lines.end()
                    wrapped = wrapped or lines.wrapped
                name = _name(line, path, len(found.lengths) + 1)
                found.add(name, path)
                lines = Lines()
                while not line.endswith(b"\n") and (line := opened.readline(AT_ONCE)):
                    pass  # the rest of a very long heading
                continue
            bases = line.rstrip(b"\r\n")
            if not name and bases.strip(SPACES):
                raise InvalidValueError(
                    f"{path} does not begin as FASTA does, with '>' and a name; received "
                    f"{bases[:40].decode('latin-1')!r}"
                )
            inside = not line.endswith(b"\n")
            lines.add(len(bases), len(line), inside)
            held.append(bases)
            size += len(bases)
            if size >= AT_ONCE:
                hand_over()
        if name:
            hand_over()
            found.even = found.even and lines.end()
    found.finish(path)
    if not line.endswith(b"\n"):
        if wrapped or lines.wrapped:  # programs that break lines end the last one as well
            raise InvalidValueError(
                f"{path} ends in the middle of a line: it is probably truncated. Copy or download "
                f"it again; if it is whole, end its last line, for example with `echo >> {path}`"
            )
        found.notes.append(NO_END)
    return found


class Lines:
    """Tells whether all lines of a sequence, but the last, have the same length."""

    def __init__(self) -> None:
        self._even, self._over = True, False
        self._first = (0, 0)  # bases and bytes of the first line
        self._bases = self._bytes = 0
        self._number = 0

    def add(self, bases: int, bytes_: int, inside: bool) -> None:
        """Add a piece of a line, which ends here unless `inside` is set."""
        self._bases, self._bytes = self._bases + bases, self._bytes + bytes_
        if not inside:
            self.end()

    def end(self) -> bool:
        """End a line, and return whether all lines are even so far."""
        line = (self._bases, self._bytes)
        self._bases = self._bytes = 0
        self._number += line[0] > 0
        if line[0] and self._over:
            self._even = False
        elif line[0] and self._first == (0, 0):
            self._first = line
        elif line != self._first:  # a shorter line, or one without a line end, must be the last
            self._even = self._even and line[0] <= self._first[0]
            self._over = True
        return self._even

    @property
    def wrapped(self) -> bool:
        """Whether there are several lines of the same length, as programs write them."""
        return self._even and self._number > 1


def _name(line: bytes, path: str, number: int) -> str:
    heading = line[1:].rstrip(b"\r\n")
    if b"\r" in heading:
        raise InvalidValueError(
            f"{path} ends its lines with CR alone, as old Macs did: convert it, for example with "
            "`tr '\\r' '\\n' < old.fa > new.fa`"
        )
    word = heading.split(maxsplit=1)[:1]
    if not word or heading[:1].isspace():
        raise InvalidValueError(f"{path}: sequence {number} has no name right after its '>'")
    try:
        return word[0].decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidValueError(
            f"{path}: the name of sequence {number} is not text in UTF-8"
        ) from None


class EvenLines:
    """Writes sequences as FASTA with lines of equal length."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._name: str | None = None
        self._rest = bytearray()

    def take(self, name: str, bases: bytes) -> None:
        """Continue the sequence of this name, or start it."""
        if name != self._name:
            self._end()
            self._name = name
            self._file.write(b">" + name.encode() + b"\n")
        self._rest += bases
        whole = len(self._rest) // WIDTH * WIDTH
        for start in range(0, whole, WIDTH):
            self._file.write(self._rest[start : start + WIDTH] + b"\n")
        del self._rest[:whole]

    def _end(self) -> None:
        if self._rest:
            self._file.write(self._rest + b"\n")
        self._rest.clear()

    def close(self) -> None:
        """Write the last line."""
        self._end()
        self._file.close()


def index(fasta: str, folder: Path, lengths: dict[str, int]) -> None:
    """Write the index of a valid FASTA file, plain or bgzip, into a folder."""
    fai, gzi = str(folder / "index.fai"), str(folder / "index.gzi")
    need("pysam", "reading a genome").faidx(fasta, "--fai-idx", fai, "--gzi-idx", gzi)
    if read_index(fai) != lengths:
        raise UnsupportedError(
            f"the index of {fasta} does not match the file: it was changed meanwhile"
        )


def read_index(fai: str | Path) -> dict[str, int] | None:
    """Return the names and lengths in an index, or None if it is missing or invalid."""
    try:
        with open(fai, encoding="utf-8") as lines:
            columns = [line.rstrip("\n").split("\t") for line in lines]
        return {name: int(length) for name, length, *_ in columns}
    except (ValueError, FileNotFoundError):
        return None


def check_beside(path: str, lengths: dict[str, int]) -> None:
    """Raise an error if there is an index beside the file that does not match it."""
    fai = f"{path}.fai"
    if not os.path.isfile(fai):
        return
    said = read_index(fai)
    if said == lengths:
        return
    why = "is not an index"
    if said is not None:
        name = next(
            iter(name for name in {**said, **lengths} if said.get(name) != lengths.get(name))
        )
        has, says = (
            f"{lengths_[name]:,} bases" if name in lengths_ else "nothing"
            for lengths_ in (lengths, said)
        )
        why = f"has {says} under the name {name}, and the file has {has}"
    raise InvalidValueError(
        f"{fai} does not belong to {path}: it {why}. If the file is right, delete the index; if "
        "the index is, the file was changed or truncated"
    )


def take_back(path: str, folder: Path, lengths: dict[str, int]) -> None:
    """Delete the index that was put beside a file, if only its line lengths have changed."""
    if read_index(folder / "index.fai") != lengths:
        return
    for ending in ("fai", "gzi"):
        ours, beside = folder / f"index.{ending}", Path(f"{path}.{ending}")
        try:
            if ours.read_bytes() == beside.read_bytes():
                beside.unlink()
        except OSError:  # missing, or not deletable
            continue


def put_beside(path: str, folder: Path) -> None:
    """Put the index beside the file, where other programs find it, if the folder is writable."""
    for ending in ("fai", "gzi"):
        ours, beside = folder / f"index.{ending}", Path(f"{path}.{ending}")
        if not ours.exists() or beside.exists():
            continue
        try:
            with tempfile.TemporaryDirectory(prefix=".writing-", dir=beside.parent) as scratch:
                os.replace(shutil.copy(ours, scratch), beside)
        except OSError:
            return
