"""Parsing in a separate process with limits: a crashing parser cannot take down this process.

The separate process receives the file as its stdin and writes a line of JSON, followed by the
text, to its stdout. It imports nothing but the parser, and starts within a tenth of a second.
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

from longbird.applications.documents.document import Document
from longbird.applications.documents.errors import NotTextError
from longbird.core.machine import in_words
from longbird.errors import InvalidValueError, MissingPackageError

SECONDS, MEMORY = "LONGBIRD_READ_SECONDS", "LONGBIRD_READ_GB"
NO_LIMIT = 1e8
"""Seconds (three years) from which on no time limit is set; system calls reject larger values."""


@dataclass(frozen=True)
class Limits:
    """Limits for reading a file.

    Args:
        seconds: Maximum time; LONGBIRD_READ_SECONDS in the environment, or 120 by default.
        memory: Maximum memory of the parsing process in bytes; LONGBIRD_READ_GB in the
            environment, or 2 GB by default.
        unpacked: Maximum size of decompressed content in bytes.
    """

    seconds: float = field(default_factory=lambda: _environment(SECONDS, 120))
    memory: float = field(default_factory=lambda: _environment(MEMORY, 2) * 1e9)
    unpacked: float = 1e9


# Formats and the modules that read them: `read(data, limits, encoding) -> Document`, without the
# name of the file.
PARSERS = {
    "pdf": "longbird.applications.documents.pdf",
    "html": "longbird.applications.documents.html",
    "zip": "longbird.applications.documents.zip_archives",
}

SEQUENCES = ("pages", "lines", "notes")
"""Fields of a document that JSON turns into lists."""

# The import path is that of the parent, so that nothing is imported from the working folder.
CHILD = """
import sys
sys.path[:] = {path!r}
inf = float("inf")  # limits may be infinite
from longbird.applications.documents.separate_process import answer
answer({kind!r}, {limits!r}, {encoding!r})
"""


def parse_separately(
    kind: str, source: IO[bytes] | bytes, limits: Limits, encoding: str | None
) -> Document:
    """Parse a file, given as bytes or opened at its beginning, in a separate process.

    Raises:
        NotTextError: The file cannot be read, or reading it exceeded a limit.
        MissingPackageError: The package that reads this format is not installed.
    """
    code = CHILD.format(
        path=[*map(str, sys.path)], kind=kind, limits=asdict(limits), encoding=encoding
    )
    stdin: dict[str, Any] = {"input": source} if isinstance(source, bytes) else {"stdin": source}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            timeout=limits.seconds if limits.seconds < NO_LIMIT else None,
            **stdin,
        )
    except subprocess.TimeoutExpired as error:
        raise NotTextError(_too_slow(limits)) from error
    head, _, body = done.stdout.partition(b"\n")
    if done.returncode or not head:
        raise NotTextError(_crash(done.returncode, done.stderr.decode(errors="replace"), limits))
    answered = json.loads(head)
    if "missing" in answered:
        raise MissingPackageError(answered["missing"])
    if "wrong" in answered:
        raise NotTextError(answered["wrong"])
    sequences = {name: tuple(answered[name]) for name in SEQUENCES}
    return Document("", body.decode("utf-8"), kind=answered["kind"], **sequences)


def answer(kind: str, limits: dict[str, Any], encoding: str | None) -> None:
    """Parse stdin and write the result to stdout; this runs in the separate process."""
    allowed, body = Limits(**limits), b""
    _restrict(allowed)
    try:
        parser = importlib.import_module(PARSERS[kind])
        document = parser.read(sys.stdin.buffer.read(), allowed, encoding)
        body = document.text.encode("utf-8")
        answered = {name: getattr(document, name) for name in ("kind", *SEQUENCES)}
    except NotTextError as error:
        answered = {"wrong": str(error)}
    except ModuleNotFoundError as error:
        answered = {"missing": _missing(kind, str(error.name))}
    except MemoryError:
        answered = {"wrong": _too_large(allowed)}
    except RecursionError:
        answered = {"wrong": "is nested too deeply to be a document"}
    sys.stdout.buffer.write(json.dumps(answered).encode() + b"\n" + body)
    sys.stdout.buffer.flush()
    os._exit(0)  # skips the cleanup of the parsers, which may crash


def _restrict(limits: Limits) -> None:
    """Limit the memory and the time of this process, and forbid it to write files."""
    try:
        import resource
    except ImportError:  # not available on this system
        return
    maxima = {
        "RLIMIT_AS": limits.memory,
        "RLIMIT_CPU": limits.seconds + 1,  # in case the parent is gone
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
    }
    for name, maximum in maxima.items():
        kind = getattr(resource, name, None)
        if kind is None or not math.isfinite(maximum) or maximum >= sys.maxsize:
            continue
        soft, hard = resource.getrlimit(kind)
        finite = [each for each in (int(maximum), soft, hard) if each != resource.RLIM_INFINITY]
        with contextlib.suppress(ValueError, OSError):  # some systems do not allow every limit
            resource.setrlimit(kind, (min(finite), hard))


def _crash(code: int, stderr: str, limits: Limits) -> str:
    last = stderr.strip().rpartition("\n")[2]
    if "MemoryError" in last or "bad_alloc" in stderr or code == -signal.SIGKILL:
        return _too_large(limits)
    if code == -signal.SIGXCPU:
        return _too_slow(limits)
    reason = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"cannot be read: its parser crashed ({last or reason}); the file is probably damaged"


def _too_slow(limits: Limits) -> str:
    return (
        f"took more than {limits.seconds:g} s to read, which is the limit: to allow more, set "
        f"{SECONDS} in the environment"
    )


def _too_large(limits: Limits) -> str:
    return (
        f"needs more than {in_words(limits.memory)} of memory to read, which is the limit: to "
        f"allow more, set {MEMORY} in the environment to a number of gigabytes"
    )


def _missing(kind: str, module: str) -> str:
    package = module.partition(".")[0]
    package = {"docx": "python-docx"}.get(package, package)
    formats = {"python-docx": "docx", "lxml": "docx", "selectolax": "html and epub"}.get(
        package, kind
    )
    return f"reading {formats} needs {package}: pip install 'longbird[documents]'"


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
