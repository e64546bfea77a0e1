"""Every failure is one line on stderr and an exit code, never a traceback."""

from __future__ import annotations

import ast
import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import longbird
from longbird.cli import errors
from longbird.cli.app import main
from longbird.cli.flags import current_flags
from longbird.cli.terminal import note
from longbird.errors import (
    InvalidTypeError,
    InvalidValueError,
    MissingFileError,
    MissingPackageError,
    UnsupportedError,
)


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the command, which must fail without a traceback: its exit code and last line."""

    def fail(*arguments: str) -> tuple[Any, str]:
        monkeypatch.setattr(sys, "argv", ["longbird", *arguments])
        with pytest.raises(SystemExit) as exit:
            main()
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return exit.value.code, said

    return fail


@pytest.fixture
def raising(fail, monkeypatch: pytest.MonkeyPatch):
    """Runs a command in which something raises an error."""

    def raising(error: BaseException) -> tuple[int, str]:
        def parse(text: str):
            raise error

        monkeypatch.setattr("longbird.cli.graph.parse_graph", parse)
        return fail("graph", "show", "bigbird")

    return raising


# ---- the user's mistakes: exit code 2 ----


@pytest.mark.parametrize(
    "arguments",
    [
        ["graph", "show", "Widow(3)"],
        ["graph", "show", "--json"],
        ["graph", "show", "GlobalTokens([50])", "-n", "10"],
        ["graph", "show", "Full", "-n", "10", "--head", "1"],
        ["graph", "show", "Full", "-n", "10", "-o", "picture.jpeg"],
        ["graph", "show", "Full", "-n", "10", "-o", "no/such/folder/picture.png"],
        ["graph", "show", "Full", "-n", "1" + "0" * 30],
        ["graph", "show", "x" * 5000],
        ["graph", "show", "x" * 5000 + ".json"],
        ["check", "Full", "--impl", "fastest"],
        ["check", "Full", "--dtype", "int8"],
        ["graph", "show", "Full", "-n", "0"],
        ["plan", "Full", "--threads", "0"],
        ["nonsense"],
        ["demo", "nonsense"],
    ],
    ids=lambda words: " ".join(words)[:60],
)
def test_the_users_mistakes(fail, arguments: list[str]) -> None:
    code, said = fail(*arguments)
    assert code == 2
    assert "error" in said.lower()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a graph"),
        (b"[1, 2", "is not a graph"),
        (b"null", "is not a graph"),
        (b'{"type": 3}', "is not a graph"),
        (b'{"type": "Window", "radius": {}}', "is not a graph"),
        (b'{"type": "Window", "width": 3}', "is not a graph"),
        (b'{"type": "Union", "parts": 7}', "is not a graph"),
        (b'{"type":' * 100_000, "nested too deeply"),
        (b"\x89PNG\r\n", "not text in UTF-8"),
    ],
)
def test_a_wrong_graph_file(fail, tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(content)
    code, said = fail("graph", "show", str(path))
    assert code == 2
    assert words in said
    assert "graph.json" in said
    assert len(said.splitlines()) == 1


def test_folders_and_other_files_given_as_graphs(fail, tmp_path: Path) -> None:
    folder = tmp_path / "folder.json"
    folder.mkdir()
    assert "folder.json is a folder; expected a graph" in fail("check", str(folder))[1]
    assert "is a folder" in fail("check", str(tmp_path))[1]
    other = tmp_path / "graph.txt"
    other.write_text("Full()")
    code, said = fail("plan", str(other))
    assert code == 2
    assert "does not end in .json" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file(fail, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text("{}")
    path.chmod(0)
    code, said = fail("graph", "show", str(path))
    assert code == 2
    assert "Permission denied" in said


def test_a_type_error_that_longbird_raises_is_the_users(raising) -> None:
    with pytest.raises(TypeError) as found:
        import longbird

        longbird.core.graph.as_graph(3)
    code, said = raising(found.value)
    assert code == 2
    assert "graph must be a graph" in said
    assert "traceback" not in said


# ---- others: exit code 1 ----


def torchs_own_error() -> Exception:
    try:
        torch.empty(10**15)
    except RuntimeError as error:
        return error
    raise AssertionError("a petabyte was there")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "out of memory"),
        (MemoryError("Unable to allocate 7.45 GiB"), "out of memory: Unable to allocate 7.45"),
        (torchs_own_error(), "out of memory: 4,000,000.0 GB were requested at once"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "out of memory"),
        (RuntimeError("std::bad_alloc"), "out of memory"),
        (
            OSError(errno.ENOSPC, "No space left on device", "model"),
            "No space left on device: m",
        ),
        (RuntimeError("I/O error: No space left on device (os error 28)"), "the disk is full"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_machine_is_out_of_something(raising, error: Exception, words: str) -> None:
    code, said = raising(error)
    assert code == 1
    assert words in said
    assert "inside longbird" not in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("error", [KeyError("key"), AssertionError(), TypeError("NoneType + 1")])
def test_an_internal_error_says_how_to_see_more(raising, error: Exception) -> None:
    code, said = raising(error)
    assert code == 1
    assert "LONGBIRD_DEBUG=1" in said
    assert type(error).__name__ in said
    assert len(said.splitlines()) == 1


def test_debugging_shows_the_traceback(raising, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(errors.DEBUG, "1")
    with pytest.raises(KeyError):
        raising(KeyError("key"))


def test_the_option_debug_does_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(errors.DEBUG, "0")  # to be put back
    monkeypatch.setattr(sys, "argv", ["longbird", "--debug", "graph", "show", "Widow"])
    with pytest.raises(ValueError, match="Did you mean Window"):
        main()


def test_options_are_named_as_on_the_command_line(raising) -> None:
    error = InvalidValueError(
        "there is nothing to draw", remedy="set `n=9`, `json=True` or `steps`"
    )
    # `steps` is no option of `longbird graph show`.
    expected = "error: there is nothing to draw: set --tokens 9, --json or steps\n"
    assert raising(error) == (2, expected)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (InvalidTypeError, 2),
        (MissingFileError, 2),
        (MissingPackageError, 1),
        (UnsupportedError, 1),
    ],
)
def test_errors_raised_on_purpose_need_no_report(raising, kind: type, status: int) -> None:
    assert raising(kind("no such thing")) == (status, "error: no such thing\n")


def test_a_message_of_several_lines_is_one_line(raising) -> None:
    assert raising(ValueError("first\n  second")) == (2, "error: first second\n")


def test_ctrl_c_is_130(raising) -> None:
    assert raising(KeyboardInterrupt()) == (130, "error: interrupted\n")


# ---- as the shell sees it ----


def shell(line: str) -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -c 'from longbird.cli.app import main; main()'"
    script = f"set -o pipefail; {line.replace('longbird', program, 1)}"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True)


@pytest.mark.slow  # a process for each
def test_a_closed_pipe_is_silent_and_files_are_written(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    done = shell(f"longbird graph show bigbird -n 300 -o {path} | head -n 1")
    assert done.stdout == "bigbird\n"
    assert done.stderr == ""
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_pipe_that_nobody_reads() -> None:
    done = shell("longbird graph show bigbird --json | true")
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_full_disk() -> None:
    done = shell("longbird graph show bigbird -n 64 > /dev/full")
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


def test_a_closed_standard_output() -> None:
    done = shell("longbird graph show bigbird -n 64 >&-")
    assert (done.returncode, done.stderr) == (1, "error: standard output is closed\n")


@pytest.mark.slow  # a process
def test_ctrl_c_in_a_running_command() -> None:
    # What is started in the background ignores Ctrl-C, and so would its children.
    code = "import longbird.cli.graph as g, signal, time"
    code += "; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code += "; g.parse_graph = lambda x: (print('in', flush=True), time.sleep(60))"
    script = f"import sys; sys.argv = ['longbird', 'graph', 'show', 'x']; {code}"
    script += "; from longbird.cli.app import main; main()"
    running = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "in\n"
    time.sleep(1)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert (running.returncode, said) == (130, "error: interrupted\n")


def test_ctrl_c_while_the_command_is_imported(tmp_path: Path) -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    ((module, function),) = re.findall(r'^longbird = "(.*):(.*)"$', project, re.M)
    (tmp_path / "typer.py").write_text(
        "import os, signal\nsignal.signal(2, signal.default_int_handler)\n"
        "os.kill(os.getpid(), 2)\nwhile True: pass"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"from {module} import {function}; {function}()", "info"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


# ---- what is not read ----


@pytest.mark.parametrize("command", [["graph", "show"], ["plan"], ["check"]])
def test_a_pipe_is_not_read(fail, tmp_path: Path, command: list[str]) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    code, said = fail(*command, str(tmp_path / "pipe.json"))
    assert code == 2
    assert "pipe.json is not a regular file; expected a graph" in said
    code, said = fail(*command, "/dev/null")
    assert code == 2
    assert "'/dev/null' is not a regular file; expected a graph" in said


@pytest.mark.parametrize("text", ["nofolder", "./no-folder", "no/folder", "/"])
def test_plan_says_that_it_takes_a_folder(fail, text: str) -> None:
    code, said = fail("plan", text)
    assert code == 2
    assert said.endswith("or the folder of a model, which has a config.json\n")


@pytest.mark.parametrize("text", ["Window", "Widow(3)", "nofile.json", "{}"])
def test_plan_does_not_take_a_graph_for_a_folder(fail, text: str) -> None:
    code, said = fail("plan", text)
    assert code == 2
    assert "folder" not in said


def test_too_many_threads(fail) -> None:
    code, said = fail("plan", "Full", "--threads", "100000")
    assert code == 2
    assert "received 100000" in said


def test_plan_of_more_tokens_than_positions(tmp_path: Path, capfd) -> None:
    from typer.testing import CliRunner

    import longbird as lb
    from longbird.cli.app import app

    sizes = {"hidden_size": 16, "num_attention_heads": 1, "num_hidden_layers": 1}
    config = lb.LongbirdConfig(**sizes, graph="Window(8)", max_position_embeddings=200)
    config.save_pretrained(tmp_path)
    for n, warned in ((200, False), (300, True)):
        answer = CliRunner().invoke(app, ["plan", str(tmp_path), "-n", str(n)])
        assert answer.exit_code == 0, answer.output
        said = answer.output + "".join(capfd.readouterr())
        assert ("positions for 200 tokens only" in said) == warned


def test_notes_name_options_as_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    outside = current_flags.set({"text": "--text"})
    try:
        note("the column body is taken as the text (`text` names another)")
    finally:
        current_flags.reset(outside)
    assert capsys.readouterr().err.endswith("(--text names another)\n")


# They call other commands, or name an option in both ways because the values differ.
NAMING_FLAGS = {
    "applications/dna/genomes/fasta.py",
    "applications/dna/genomes/feature.py",
    "applications/dna/genomes/names.py",
    "applications/training/engine/processes.py",
    "applications/training/settings/definition.py",
    "core/operator/native.py",
    "files/sources/packages.py",
}


def test_the_library_names_options_as_python_does() -> None:
    package = Path(longbird.__file__).parent
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name.startswith("cli/") or name in NAMING_FLAGS:
            continue
        tree = ast.parse(path.read_text())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in docstrings:
                text = re.sub(r"`longbird [^`]*(`|$)", "", str(node.value))
                assert not re.search(r"(?<![\w-])--[a-z]", text), f"{name}:{node.lineno}: {text}"
