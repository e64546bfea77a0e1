"""A disk that takes no more, at each stage of a run: the file is named, and the run goes on."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import transformers

from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.run_folder import RunFolder, naming, write_text

# Files can have so many bytes, in a process of its own.
LIMITED = """
import json, resource, signal, sys
from longbird.cli.errors import describe
from longbird.applications.training.engine.finetune import finetune

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
options = json.loads(sys.argv[1])
for number, limit in enumerate((0, 4000, 60000)):
    out = f"{options['out']}{number}"
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        finetune("classify", options["train"], out, model=options["model"], say=lambda line: None,
                 length=128, steps=2)
        told = "nothing", 0
    except Exception as error:
        told = describe(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    run = finetune("classify", options["train"], out, model=options["model"], length=128, steps=2,
                   say=lambda line: None)
    print(json.dumps([*told, run.finished]))
"""


@pytest.mark.slow  # starts a process
@pytest.mark.skipif(sys.platform != "linux", reason="limits of other systems are others")
def test_files_that_may_not_grow(tiny: Path, table: Path, tmp_path: Path) -> None:
    options = {"train": str(table), "model": str(tiny), "out": str(tmp_path / "run")}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, json.dumps(options)],
        stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    told = [json.loads(line) for line in done.stdout.splitlines()]
    for (message, code, finished), name in zip(
        told, ("run.toml", "cache/train-", "checkpoints/checkpoint-1"), strict=True
    ):
        assert name in message
        assert "Make room" in message
        assert code == 1
        assert finished


@pytest.mark.slow  # trains
@pytest.mark.parametrize("place", ["tokenizer_config.json", "loss.png", "result.json"])
@pytest.mark.fast_cases(1)
def test_the_end_of_a_run(
    place: str, tiny: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, full = tmp_path / "run", OSError(errno.ENOSPC, "No space left on device")

    def refuses(original: Any) -> Any:
        def write(self: Any, *args: Any, **kwargs: Any) -> Any:
            if place in str(self):
                raise full
            return original(self, *args, **kwargs)

        return write

    options: dict[str, Any] = {"model": str(tiny), "length": 64, "steps": 2}
    with monkeypatch.context() as patched, pytest.raises(OSError, match="Make room") as caught:
        if place == "tokenizer_config.json":
            tokenizer = transformers.PreTrainedTokenizerFast
            original = tokenizer.save_pretrained

            def fails(self: Any, folder: Any, *args: Any, **kwargs: Any) -> Any:
                if ".making" in str(folder):
                    raise full
                return original(self, folder, *args, **kwargs)

            patched.setattr(tokenizer, "save_pretrained", fails)
        else:
            patched.setattr(Path, "write_bytes", refuses(Path.write_bytes))
            patched.setattr(Path, "write_text", refuses(Path.write_text))
        finetune("classify", table, out, **options)
    named = RunFolder(out).model if place == "tokenizer_config.json" else place
    assert str(named) in str(caught.value)
    assert finetune("classify", table, out, **options).finished


def test_other_errors_stay_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="elsewhere"), naming(tmp_path):
        (tmp_path / "elsewhere").read_text()
    with pytest.raises(KeyError), naming(tmp_path):
        raise KeyError("No such thing")
    write_text(tmp_path / "a" / "b", "c")
    assert (tmp_path / "a" / "b").read_text() == "c"
