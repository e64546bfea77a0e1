"""Files of every kind are read alike, and what is wrong with one is said with its line."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import docx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from longbird.applications.documents import read_document
from longbird.applications.training.data.columns import find_column
from longbird.applications.training.data.files import find_files, fingerprint, rows, text_reader

ROWS = [
    {"text": 'two lines,\nand "quotes"; a\ttab', "label": "007"},
    {"text": "", "label": "NA"},
    {"text": "naïve — 雪", "label": "b"},
]


def write(file: Path) -> Path:
    kind = file.name.partition(".")[2].removesuffix(".gz")
    raw = file.with_name("raw")
    if kind in ("csv", "tsv"):
        with raw.open("w", newline="", encoding="utf-8") as opened:
            writer = csv.DictWriter(
                opened, ["text", "label"], delimiter={"csv": ",", "tsv": "\t"}[kind]
            )
            writer.writeheader()
            writer.writerows(ROWS)
    elif kind == "jsonl":
        raw.write_text("\n".join(map(json.dumps, ROWS)) + "\n\n")
    elif kind == "json":
        raw.write_text(json.dumps(ROWS))
    else:
        pq.write_table(pa.Table.from_pylist(ROWS), raw)
    data = raw.read_bytes()
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)
    raw.unlink()
    return file


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "json", "parquet"])
@pytest.mark.parametrize("zipped", ["", ".gz"])
def test_kinds(kind: str, zipped: str, tmp_path: Path) -> None:
    file = write(tmp_path / f"rows.{kind}{zipped}")
    assert [row.values for row in rows([file])] == ROWS


def test_a_folder_of_classes(tmp_path: Path) -> None:
    for label, name in (("sea", "a.txt"), ("mine", "b.txt"), ("mine", "deep/c.md")):
        file = tmp_path / label / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"about {name}")
    (tmp_path / ".hidden.txt").write_text("no")
    found = [(row.values["label"], row.values["text"]) for row in rows([tmp_path])]
    assert found == [("mine", "about b.txt"), ("mine", "about deep/c.md"), ("sea", "about a.txt")]


def test_other_separators_and_marks(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(b"\xef\xbb\xbftext;label\na;b\n")  # as spreadsheets write it
    assert [row.values for row in rows([file])] == [{"text": "a", "label": "b"}]
    file.write_bytes("text,label\né,b\n".encode("latin-1"))
    assert next(iter(rows([file], "latin-1"))).values["text"] == "é"


def test_a_long_line(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("text,label\n" + "word " * 400_000 + ",b\n")
    assert len(next(iter(rows([file]))).values["text"]) == 2_000_000


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "a.csv is empty"),
        ("a.csv", b"text,text\na,b\n", "two columns of one name"),
        (
            "a.csv",
            b"text,label\na,b\nc\n",
            "line 3: the number of fields is 1, and in the first line it is 2",
        ),
        ("a.csv", "text,label\né,b\n".encode("latin-1"), "is not utf-8.*0xe9.*`encoding="),
        ("a.csv.gz", gzip.compress(b"text,label\na,b\n", mtime=0)[:-9], "not a whole gzip file"),
        ("a.jsonl", b'{"text": "a"}\n{"text"\n', "line 2, is not JSON"),
        ("a.jsonl", b"[1, 2]\n", r"line 1, holds \[1, 2\], expected an object"),
        ("a.json", b'"a"', "holds a str, expected a list"),
        ("a.parquet", b"PAR1 but not", "is not a parquet file"),
        ("a.odt", b"", "ends in '.odt', expected one of"),
        ("a.txt", b"\x89PNG\r\n\x1a\n" + bytes(99), r"a.txt is a picture \(png\)"),
        ("a.txt", b"a" + bytes(99), "a.txt has NUL bytes"),
        ("a.txt", "\ufeffa é".encode("utf-16-le"), "`encoding=utf-16`"),
        ("a.csv", "\ufefftext,label\né,b".encode("utf-16-le"), "0xff.*`encoding=utf-16`"),
    ],
)
def test_what_is_wrong(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ValueError, match=said):
        list(rows([file]))


def test_texts_are_read_as_ask_reads_them(tmp_path: Path) -> None:
    """Line ends are one character, and a docx is one under any name."""
    file = tmp_path / "a.txt"
    file.write_bytes(b"one\r\ntwo\rthree\n")
    assert next(iter(rows([file]))).values["text"] == read_document(file).text
    letter = docx.Document()
    letter.add_paragraph("A page.")
    letter.save(str(file))
    assert next(iter(rows([file]))).values["text"] == "A page."


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        find_files([tmp_path / "none.csv"])
    with pytest.raises(FileNotFoundError, match="has no files"):
        find_files([tmp_path])
    with pytest.raises(ValueError, match="at least one file"):
        find_files([])


def test_fingerprints_are_of_contents(tmp_path: Path) -> None:
    file = write(tmp_path / "rows.csv")
    before = fingerprint([file])
    assert fingerprint([file]) == before
    file.write_bytes(file.read_bytes() + b"\n")
    assert fingerprint([file]) != before


@pytest.mark.parametrize(
    ("wanted", "named", "columns", "found", "lines"),
    [
        ("text", None, ["text", "content"], "text", 0),
        ("text", None, ["id", "Review"], "Review", 1),
        ("label", "stars", ["text", "stars"], "stars", 0),
    ],
)
def test_columns(wanted: str, named: str, columns: list[str], found: str, lines: int) -> None:
    said: list[str] = []
    assert find_column(wanted, named, columns, said.append) == found
    assert len(said) == lines


@pytest.mark.parametrize(
    ("named", "columns", "said"),
    [
        ("body", ["text"], "`text=body` names a column that is not among text"),
        (None, ["content", "body"], "any of content, body could be; name it with `text`"),
        (None, ["a", "b"], "there are a, b; name it"),
    ],
)
def test_columns_that_are_not_certain(named: str, columns: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        find_column("text", named, columns, print)


@pytest.mark.slow  # trains
def test_papers_are_read_as_their_text(tmp_path: Path) -> None:
    """A web page and a letter among the texts of a class, and their paragraphs as documents."""
    folder = tmp_path / "letters"
    (folder / "anna").mkdir(parents=True)
    page = "<html><meta charset='latin-1'><p>Dear B\u00f6rn,</p><p>it rains.</p></html>"
    (folder / "anna" / "1.html").write_bytes(page.encode("latin-1"))
    letter = docx.Document()
    letter.add_paragraph("Yours, Anna")
    letter.save(str(folder / "anna" / "2.docx"))
    (folder / "anna" / "3.txt").write_text("Dear all")
    found = list(rows([folder]))
    assert [row.values["text"].strip() for row in found] == [
        "Dear B\u00f6rn,\n\nit rains.",
        "Yours, Anna",
        "Dear all",
    ]
    assert {row.values["label"] for row in found} == {"anna"}
    parts = rows([folder / "anna" / "1.html"], texts=text_reader("paragraph", 1000))
    assert [row.values["text"] for row in parts] == ["Dear B\u00f6rn,", "it rains."]
    (folder / "anna" / "2.docx").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(ValueError, match=r"2\.docx"):
        list(rows([folder]))
