"""What is not a document is an error of one line that says what it is; nothing hangs or breaks."""

from __future__ import annotations

import gzip
import io
import os
import socket
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import made_files as files
import pytest

from longbird.applications.documents import (
    Limits,
    UnreadableError,
    file_reader,
    read_document,
    read_documents,
    separate_process,
)

ENTITIES = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]><x>&i;</x>"
)
WORD = {"[Content_Types].xml": "<Types/>", "word/document.xml": ENTITIES}
ENCRYPTION = """<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData>
<EncryptionMethod Algorithm="{}"/><CipherData><CipherReference URI="OEBPS/a.xhtml"/></CipherData>
</EncryptedData></encryption>"""
BOOK = {"a.xhtml": "<html><body>Words</body></html>"}


def picture(kind: str) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.effect_noise((60, 60), 50).convert("RGB").save(out, kind)
    return out.getvalue()


def macros(document: Any) -> None:
    """Makes it a docm."""
    document.add_paragraph("Words")
    document.part._content_type = "application/vnd.ms-word.document.macroEnabled.main+xml"


ODD: dict[str, tuple[str, Any, str]] = {
    "empty": ("a.txt", b"", "a.txt is empty"),
    "space": ("a.txt", b" \n\t\n", "nothing in it but whitespace"),
    "no width": ("a.txt", "\u200b\u00ad \n\ufeff".encode(), "nothing in it but whitespace"),
    "empty pdf": ("a.pdf", b"", "is empty"),
    "png": ("a.txt", lambda: picture("png"), r"is a picture \(png\)"),
    "jpeg": ("a.pdf", lambda: picture("jpeg"), r"is a picture \(jpeg\)"),
    "webp": ("notes", lambda: picture("webp"), r"is a picture \(webp\)"),
    "tiff": ("a.docx", lambda: picture("tiff"), r"is a picture \(tiff\)"),
    "program": ("a.txt", b"\x7fELF\2\1\1" + bytes(99), r"is a program \(ELF\)"),
    "random": ("a.txt", bytes(range(256)) * 9, "is not text: of its first"),
    "rtf": ("a.doc", rb"{\rtf1\ansi Hello}", r"rich text \(rtf\): save it as docx"),
    "doc": ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "old Word file"),
    "locked docx": ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "by a password"),
    "zip": ("a.zip", lambda: files.zipped({"x.txt": "x"}), r"is a zip archive \(1 inside\)"),
    "xlsx": ("a.docx", lambda: files.zipped({"xl/workbook.xml": "<x/>"}), "Excel workbook"),
    "cut zip": ("a.docx", lambda: files.docx(lambda d: d.add_paragraph("x"))[:2000], "damaged"),
    "not a docx": ("a.docx", lambda: files.zipped({"word/document.xml": "<x/>"}), "damaged docx"),
    "laughs": ("a.docx", lambda: files.zipped(WORD), "declares XML entities in word/document.xml"),
    "laughs in a book": (
        "a.epub",
        lambda: files.zipped({"META-INF/container.xml": ENTITIES.encode("utf-16")}),
        "declares XML entities",
    ),
    "empty docx": ("a.docx", lambda: files.docx(lambda d: None), "docx file without text"),
    "drm": (
        "a.epub",
        lambda: files.epub(BOOK, encryption=ENCRYPTION.format("http://www.w3.org/2001/04/xmlenc#aes128-cbc")),
        r"is protected \(DRM\)",
    ),
    "drm from the root": (
        "a.epub",
        lambda: files.epub(BOOK, encryption=ENCRYPTION.replace("OEBPS", "/OEBPS").format("aes")),
        r"is protected \(DRM\)",
    ),
    "a part that is no text": (
        "a.epub",
        lambda: files.epub({**BOOK, "b.xhtml": bytes(range(256)) * 9}),
        r"part OEBPS/b.xhtml is not text.*protected \(DRM\)",
    ),
    "random html": ("a.html", b"<p>" + bytes(range(256)) * 9, "is not text: of its first"),
    "docm": ("a.docx", lambda: files.docx(macros), "macros or a template .*: save it as docx"),
    "tar": ("a.txt", b"a" * 257 + b"ustar\x0000" + bytes(500), "is a tar archive"),
    "no text in a book": ("a.epub", lambda: files.epub({"a.xhtml": "<html/>"}), "without text"),
    "cut pdf": ("a.pdf", lambda: files.pdf([["Words"]])[:300], "is a damaged or incomplete pdf"),
    "no pdf": ("a.pdf", b"%PDF-1.7\n" + b"junk " * 99, "is a damaged or incomplete pdf"),
    "password": ("a.pdf", lambda: files.pdf([["x"]], files.ENCRYPTED), "protected by a password"),
    "scan": ("a.pdf", lambda: files.pdf([[], [], []]), "no text on any of its 3 pages.*OCR"),
    "html of scripts": ("a.html", b"<html><script>draw()</script>", "without visible text"),
    "cut gzip": ("a.txt.gz", gzip.compress(os.urandom(999))[:500], "is not a complete gzip file"),
    "gzip twice": ("a.txt.gz", gzip.compress(gzip.compress(b"a")), "gzip twice"),
}  # fmt: skip


@pytest.mark.fast_cases(len(ODD))
@pytest.mark.parametrize("case", ODD)
def test_what_it_is(tmp_path: Path, case: str) -> None:
    name, content, expected = ODD[case]
    file = tmp_path / name
    file.write_bytes(content() if callable(content) else content)
    with pytest.raises(UnreadableError, match=expected) as caught:
        read_document(file)
    assert str(caught.value).startswith(f"{file} ")
    assert "\n" not in str(caught.value)


def test_garbled_fonts_are_no_drm(tmp_path: Path) -> None:
    book = files.epub(BOOK, encryption=ENCRYPTION.format("http://www.idpf.org/2008/embedding"))
    (tmp_path / "a.epub").write_bytes(book)
    assert read_document(tmp_path / "a.epub").text == "Words"


def test_a_word_at_the_place_of_a_mark_makes_no_archive(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a " * 128 + "\nustar is a word here" + " b" * 99)
    assert "ustar" in read_document(tmp_path / "a.txt").text


def test_there_may_be_no_limits(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>Words")
    for limits in (Limits(float("inf"), float("inf"), float("inf")), Limits(seconds=1e12)):
        assert read_document(tmp_path / "a.html", limits=limits).text == "Words"


def test_content_counts_more_than_the_name(tmp_path: Path) -> None:
    for name, content, kind in (
        ("a.txt", files.pdf([["Words"]]), "pdf"),
        ("a.pdf", b"<!doctype html><p>Words", "html"),
        ("b.pdf", b"Words", "text"),
        ("a.md", files.epub(BOOK), "epub"),
        ("b.epub", files.docx(lambda document: document.add_paragraph("Words")), "docx"),
    ):
        (tmp_path / name).write_bytes(content)
        document = read_document(tmp_path / name)
        assert (document.text, document.kind) == ("Words", kind)
        assert f"but it is {kind}" in document.notes[0]
    text = "To begin with: a file of this kind starts with %PDF-1.4 or <html>."
    (tmp_path / "a.txt").write_text(text)
    assert read_document(tmp_path / "a.txt").text == text


def bomb(size: int) -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("word/document.xml", "w") as part,
    ):
        for _ in range(size // 2**20):
            part.write(b" " * 2**20)
    return out.getvalue()


def test_bombs(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(bomb(2**26))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(bytes(2**25)))
    limits = Limits(unpacked=2**24)
    with pytest.raises(UnreadableError, match=r"would be 67.1 MB when it is unpacked"):
        read_document(tmp_path / "a.docx", limits=limits)
    with pytest.raises(UnreadableError, match=r"holds more than 16.8 MB, which is the limit"):
        read_document(tmp_path / "a.txt.gz", limits=limits)


@pytest.mark.slow  # unpacks megabytes
def test_a_lying_zip(tmp_path: Path) -> None:
    """The directory says that a part is small; no more than that is unpacked."""
    data = bytearray(bomb(2**26))
    entry = data.index(b"PK\1\2")
    data[entry + 24 : entry + 28] = (100).to_bytes(4, "little")
    (tmp_path / "a.docx").write_bytes(data)
    with pytest.raises(UnreadableError, match="damaged"):
        read_document(tmp_path / "a.docx", limits=Limits(memory=3e8))


def test_time_and_memory_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "a.html"
    page.write_text("<p>word</p>" * 2_000_000)
    with pytest.raises(UnreadableError, match=r"needs more than 200 MB of memory"):
        read_document(page, limits=Limits(memory=2e8))
    monkeypatch.setenv("LONGBIRD_READ_SECONDS", "0.3")
    with pytest.raises(UnreadableError, match=r"more than 0.3 s .* LONGBIRD_READ_SECONDS"):
        read_document(page)
    monkeypatch.setenv("LONGBIRD_READ_SECONDS", "soon")
    with pytest.raises(ValueError, match=r"LONGBIRD_READ_SECONDS is 'soon' in the environment"):
        read_document(page)


def test_a_parser_that_crashes_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(separate_process, "CHILD", "import os; os.abort()")
    (tmp_path / "a.html").write_text("<html>x")
    with pytest.raises(UnreadableError, match=r"its parser crashed \(signal 6\)"):
        read_document(tmp_path / "a.html")


def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("selectolax", "pypdfium2", "docx"):
        (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError('no', name='{module}')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name, content, said in (
        ("a.html", b"<html>x", "reading html and epub needs selectolax"),
        ("a.pdf", files.pdf([["x"]]), "reading pdf needs pypdfium2"),
        ("a.docx", files.zipped({"word/document.xml": "<x/>"}), "reading docx needs python-docx"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ImportError, match=said + r": pip install 'longbird\[documents\]'"):
            read_document(tmp_path / name)


def test_nothing_is_imported_from_the_folder_that_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "selectolax.py").write_text("raise SystemExit(3)")
    (tmp_path / "json.py").write_text("raise SystemExit(4)")
    (tmp_path / "a.html").write_text("<html>Words")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    assert read_document("a.html").text == "Words"


def test_things_that_are_not_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_document(tmp_path / "none.txt")
    with pytest.raises(IsADirectoryError, match="a folder, expected a file"):
        read_document(tmp_path)
    with pytest.raises(UnreadableError, match="is a device"):
        read_document("/dev/zero")
    with pytest.raises(TypeError, match="expected the path of a file"):
        read_document(None)  # type: ignore[arg-type]
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        with pytest.raises(UnreadableError, match="socket"):
            read_document(tmp_path / "s")


@pytest.mark.parametrize("kind", ["text", "pdf"])
def test_pipes(tmp_path: Path, kind: str) -> None:
    content = b"Words" if kind == "text" else files.pdf([["Words"]])
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    thread = threading.Thread(target=pipe.write_bytes, args=(content,))
    thread.start()
    document = read_document(pipe)
    thread.join()
    assert (document.text, document.kind) == ("Words", kind)


def test_a_pipe_that_nobody_writes_to_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_reader, "WRITER_SECONDS", 0.2)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UnreadableError, match="a named pipe that no program writes to"):
        read_document(pipe)


def test_a_pipe_that_is_never_closed_is_an_error(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    try:
        os.write(writer, b"Words")
        with pytest.raises(UnreadableError, match=r"still written to after 0\.3 s"):
            read_document(pipe, limits=Limits(seconds=0.3))
    finally:
        os.close(writer)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("<div>" * 300_000 + "word", "more than 50,000 open tags"),
        ("<p>word</p>" + "<b><SPAN>" * 150_000, "more than 50,000 open tags"),
        (
            "<div " + " ".join(f"a{number}=1" for number in range(100_000)) + ">word",
            "a tag with more than 10,000 attributes",
        ),
    ],
)
def test_html_that_would_take_minutes_is_an_error(tmp_path: Path, page: str, reason: str) -> None:
    (tmp_path / "a.html").write_text(page)
    with pytest.raises(UnreadableError, match=reason):
        read_document(tmp_path / "a.html", limits=Limits(seconds=20))


def test_large_pages_that_are_not_nested_are_read(tmp_path: Path) -> None:
    picture = f'<img alt="a" src="data:image/png;base64,{"A+/ " * 50_000}">'
    page = "<div><p>word" * 20_000 + "</div>" * 20_000 + "<p>text<br>" * 60_000 + picture
    page += f"<svg>{'<path d=x />' * 60_000}</svg>"
    (tmp_path / "a.html").write_text(page)
    assert read_document(tmp_path / "a.html").text.count("word") == 20_000


def test_a_docx_that_exceeds_the_memory_limit_is_not_called_damaged(tmp_path: Path) -> None:
    file, many = tmp_path / "a.docx", io.BytesIO()
    small = files.docx(lambda document: document.add_paragraph("The mill was closed in 1931. "))
    with zipfile.ZipFile(io.BytesIO(small)) as source, zipfile.ZipFile(many, "w", 8) as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "word/document.xml":
                start, end = content.index(b"<w:p>"), content.index(b"</w:p>") + 6
                content = content[:start] + content[start:end] * 60_000 + content[end:]
            target.writestr(name, content)
    file.write_bytes(many.getvalue())
    reasons: set[str] = set()
    for megabytes in (46, 52, 58, 64):
        with pytest.raises(UnreadableError) as caught:
            read_document(file, limits=Limits(memory=megabytes * 1e6))
        reasons.add(str(caught.value).partition(" more than ")[0].rpartition("/")[2])
    assert reasons == {"a.docx needs"}
    assert len(read_document(file).text) > 1_000_000


SCRIPT = (
    "from longbird.applications.documents import *; d = read_document('-'); "
    "print(d.file, d.kind, d.text)"
)


@pytest.mark.parametrize("through", ["pipe", "file"])
def test_stdin(tmp_path: Path, through: str) -> None:
    content = files.pdf([["Words"]])
    (tmp_path / "x").write_bytes(content)
    with (tmp_path / "x").open("rb") as file:
        given: dict[str, Any] = {"stdin": file} if through == "file" else {"input": content}
        done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, **given)
    assert done.stdout.decode() == "- pdf Words\n", done.stderr
    empty = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, input=b"")
    assert "UnreadableError: stdin is empty" in empty.stderr.decode()


def test_something_in_the_place_of_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Words")))
    assert read_document("-").text == "Words"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "a.txt").chmod(0)
    with pytest.raises(PermissionError):
        read_document(tmp_path / "a.txt")


def test_reading_brings_neither_torch_nor_numpy() -> None:
    heavy = ("torch", "numpy", "pypdfium2", "docx", "selectolax")
    script = (
        "import sys, longbird.applications.documents; "
        f"print([n for n in {heavy} if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    for name in ("b/deep/2.md", "b/1.txt", "c.txt", "a.text", ".hidden.txt"):
        (tmp_path / name).write_text(f"Words of {name}")
    (tmp_path / "b" / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (tmp_path / "picture.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "b" / "gone.txt").symlink_to("nowhere")
    (tmp_path / "b" / "around").symlink_to(tmp_path)
    (tmp_path / "b" / "self.txt").symlink_to("self.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    return tmp_path


def test_a_folder_is_read_to_the_bottom_and_says_what_it_leaves_out(folder: Path) -> None:
    told: list[str] = []
    found = [each.file for each in read_documents([folder], tell=told.append)]
    names = ["a.text", "b/1.txt", "b/deep/2.md", "c.txt"]
    assert found == [str(folder / name) for name in names]
    assert [line.startswith("skipped: ") for line in told] == [True] * 4
    assert "broken.pdf is a damaged" in told[0]
    assert "gone.txt" in told[1]
    assert "self.txt" in told[2]
    assert "2 files of other kinds" in told[3]
    assert "picture.jpg" in told[3]


def test_links_to_folders_outside_are_not_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "deep").mkdir(parents=True)
    outside.mkdir()
    (inside / "a.txt").write_text("Words")
    (outside / "b.txt").write_text("Others")
    (inside / "all").symlink_to("/")
    (inside / "deep" / "other").symlink_to(outside)
    (inside / "again").symlink_to(inside / "deep")
    (inside / "b.txt").symlink_to(outside / "b.txt")  # a link to a file is followed
    told: list[str] = []
    found = [each.file for each in read_documents([inside], tell=told.append)]
    assert found == [str(inside / "a.txt"), str(inside / "b.txt")]
    assert told == [
        f"skipped: 2 links to other folders (such as {inside / 'all'}); name a folder to read it"
    ]
    (named,) = read_documents([inside / "deep" / "other"], tell=told.append)
    assert named.text == "Others"


def test_a_folder_that_may_not_be_opened_does_not_lose_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.scandir

    def scandir(place: str) -> Any:
        if place.endswith("deep"):
            raise PermissionError(13, "Permission denied", place)
        return opened(place)

    monkeypatch.setattr(os, "scandir", scandir)
    told: list[str] = []
    found = [each.text for each in read_documents([folder], tell=told.append)]
    assert found == [f"Words of {name}" for name in ("a.text", "b/1.txt", "c.txt")]
    assert f"skipped: Permission denied: {folder / 'b' / 'deep'}" in told


def test_what_is_left_out_is_a_warning_if_nobody_listens(folder: Path) -> None:
    with pytest.warns(UserWarning, match="skipped: ") as caught:
        assert len(list(read_documents([folder / "b"]))) >= 2
    assert caught[0].filename == __file__


def test_a_file_that_was_named_is_an_error(folder: Path) -> None:
    found = read_documents([folder / "c.txt", folder / "b" / "broken.pdf"])
    assert next(found).text == "Words of c.txt"
    with pytest.raises(UnreadableError, match=r"broken\.pdf"):
        next(found)
    with pytest.raises(FileNotFoundError, match=r"no\.txt"):  # before anything is read
        read_documents([folder / "c.txt", folder / "no.txt"])
    with pytest.raises(TypeError, match="expected several paths"):
        read_documents(str(folder))


def test_a_folder_without_documents_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="has no files of a supported kind: txt, md"):
        list(read_documents([tmp_path]))
    (tmp_path / "a.pdf").write_bytes(b"%PDF-")
    with pytest.raises(UnreadableError, match=r"has no file that can be read \(tried 1\)"):
        list(read_documents([tmp_path], tell=lambda line: None))


@pytest.mark.slow  # 300 MB
def test_a_large_text(tmp_path: Path) -> None:
    from longbird.core.machine import peak_memory

    line = "All work and no play makes the long bird read another line of this.\n"
    file = tmp_path / "a.txt"
    with file.open("w") as out:
        for _ in range(300):
            out.write(line * (10**6 // len(line)))
    size = file.stat().st_size
    with peak_memory() as memory:
        document = read_document(file)
        place = document.place(size - 5)
    assert place.line == size // len(line)
    assert memory.more < 3 * size
