"""Parsing in a process apart, with limits: what a parser does to itself is not done to us.

The other process gets the file as its stdin and answers on its stdout: a line of JSON, and behind
it the text. It imports nothing but the parser, so that it is there in a tenth of a second.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from longbird.applications.documents.errors import NotTextError
from longbird.core.machine import in_words
from longbird.errors import InvalidValueError, MissingPackageError

SECONDS, MEMORY = "LONGBIRD_READ_SECONDS", "LONGBIRD_READ_GB"
NO_LIMIT = 1e8
"""Seconds, three years: what is more, the system's calls would not take."""


@dataclass(frozen=True)
class Limits:
    """How much a file may take to be read: what the environment says, or 120 s and 2 GB.

    Args:
        seconds: Of time; LONGBIRD_READ_SECONDS in the environment.
        memory: In bytes, of the process that parses it; LONGBIRD_READ_GB in the environment.
        unpacked: In bytes, of what is compressed in a file.
    """

    seconds: float = field(default_factory=lambda: _environment(SECONDS, 120))
    memory: float = field(default_factory=lambda: _environment(MEMORY, 2) * 1e9)
    unpacked: float = 1e9


@dataclass
class Parsed:
    """What is in a file: `Document` says what the fields are."""

    text: str
    kind: str
    pages: list[int] = field(default_factory=list[int])
    lines: list[int] = field(default_factory=list[int])
    notes: list[str] = field(default_factory=list[str])


# The format, and the module that reads it: `read(data, limits, ...) -> Parsed`.
PARSERS = {kind: f"longbird.applications.documents.{kind}" for kind in ("pdf", "html", "zip")}
PARSERS["zip"] = "longbird.applications.documents.zip_archives"

# The parent's own path, so that nothing is imported from the folder that the user is in.
CHILD = """
import sys
sys.path[:] = {path!r}
inf = float("inf")  # as limits may say
from longbird.applications.documents.separate_process import answer
answer({kind!r}, {limits!r}, {encoding!r})
"""


def parse_apart(
    kind: str, source: IO[bytes] | bytes, limits: Limits, encoding: str | None
) -> Parsed:
    """Parses a file in another process.

    Args:
        kind: "pdf", "html" or "zip".
        source: A file that is open at its beginning, or its bytes.
        limits: Of time, memory and size.
        encoding: Of html, if the caller knows it.

    Raises:
        NotTextError: What is wrong with the file, or that parsing it was too much.
        ImportError: A package is not installed.
    """
    code = CHILD.format(
        path=[*map(str, sys.path)], kind=kind, limits=asdict(limits), encoding=encoding
    )
    given: dict[str, Any] = {"input": source} if isinstance(source, bytes) else {"stdin": source}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            timeout=limits.seconds if limits.seconds < NO_LIMIT else None,
            **given,
        )
    except subprocess.TimeoutExpired as error:
        raise NotTextError(
            f"took more than {limits.seconds:g} s to be read, which is the limit: if it may take "
            f"longer, say so with {SECONDS} in the environment"
        ) from error
    head, _, body = done.stdout.partition(b"\n")
    if done.returncode == 0 and head:
        said = json.loads(head)
        if "missing" in said:
            raise MissingPackageError(said["missing"])
        if "wrong" in said:
            raise NotTextError(said["wrong"])
        return Parsed(text=body.decode("utf-8"), **said)
    raise NotTextError(_crash(done.returncode, done.stderr.decode(errors="replace"), limits))


def answer(kind: str, limits: dict[str, Any], encoding: str | None) -> None:
    """The other process: parses its stdin."""
    allowed = Limits(**limits)
    _restrict(allowed)
    try:
        parsed = importlib.import_module(PARSERS[kind]).read(
            sys.stdin.buffer.read(), allowed, encoding
        )
        body = parsed.text.encode("utf-8")
        said = {name: value for name, value in asdict(parsed).items() if name != "text"}
    except NotTextError as error:
        body, said = b"", {"wrong": str(error)}
    except ModuleNotFoundError as error:
        body, said = b"", {"missing": _missing(kind, str(error.name))}
    except MemoryError:
        body, said = b"", {"wrong": _too_large(allowed)}
    except RecursionError:
        body, said = b"", {"wrong": "is nested too deeply to be a document"}
    sys.stdout.buffer.write(json.dumps(said).encode() + b"\n" + body)
    sys.stdout.buffer.flush()
    os._exit(0)  # what a parser does at its end is of no interest


def _restrict(limits: Limits) -> None:
    """Memory and time of this process, and no files written."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    wanted = {
        "RLIMIT_AS": limits.memory,
        "RLIMIT_CPU": limits.seconds + 1,  # if nobody is left to end this process
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
    }
    for name, most in wanted.items():
        which = getattr(resource, name, None)
        if which is None or not math.isfinite(most) or most >= sys.maxsize:
            continue
        soft, hard = resource.getrlimit(which)
        least = [each for each in (int(most), soft, hard) if each != resource.RLIM_INFINITY]
        with contextlib.suppress(ValueError, OSError):  # systems have limits that cannot be set
            resource.setrlimit(which, (min(least), hard))


def _crash(code: int, stderr: str, limits: Limits) -> str:
    last = stderr.strip().rpartition("\n")[2]
    if "MemoryError" in last or "bad_alloc" in stderr or code == -signal.SIGKILL:
        return _too_large(limits)
    why = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"cannot be read: its parser broke down ({last or why}); the file is probably damaged"


def _too_large(limits: Limits) -> str:
    return (
        f"takes more than {in_words(limits.memory)} of memory to be read, which is the limit: if "
        f"it may take more, say how many gigabytes with {MEMORY} in the environment"
    )


def _missing(kind: str, module: str) -> str:
    package = {"docx": "python-docx", "lxml": "lxml"}.get(module, module.partition(".")[0])
    what = {"docx": "docx", "selectolax": "html and epub", "pypdfium2": "pdf"}.get(package, kind)
    what = "docx" if package in ("python-docx", "lxml") else what
    return f"reading {what} needs {package}: pip install 'longbird[documents]'"


def _environment(name: str, default: float) -> float:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not value > 0:
        raise InvalidValueError(
            f"{name} is {text!r} in the environment; expected a number above 0"
        )
    return value
