"""Each format says what was put into it, at the places where it was put."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import made_files as files
import pytest

from longbird.applications.documents import Document, read_document

HOUSE = [
    "The House at Kestrel Point", "",
    "The lighthouse was sold in 1913 to a painter from Leith, who",
    "lived in it with nine cats and an organ until the great sto-",
    "rm of 1921 took the roof. He never came back to the coast.",
    "   His pictures of it are in Perth. Two of them, well-known,",
    "were stolen, and found again under a well-", "known bed.",
]  # fmt: skip


def read(folder: Path, name: str, content: bytes | str, **options: Any) -> Document:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_document(file, **options)


def at(document: Document, words: str) -> str:
    return str(document.place(document.text.index(words)))


def test_text_is_the_file_itself(tmp_path: Path) -> None:
    text = "  Ünder the bridge,\n\n\n\tthe 水 ran 😀.\nEnd"
    document = read(tmp_path, "a.txt", text)
    assert (document.text, document.kind, document.pages, document.notes) == (text, "text", (), ())
    assert document.file == str(tmp_path / "a.txt")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_lines_and_columns_are_those_of_the_file(tmp_path: Path, end: str) -> None:
    lines = ["one", "", "three is here", "four"]
    document = read(tmp_path, "a.md", end.join(lines).encode())
    assert document.text == (tmp_path / "a.md").read_text(encoding="utf-8")
    place = document.place(document.text.index("is here"))
    assert (place.page, place.line, place.column) == (None, 3, 7)
    assert document.kind == "markdown"
    assert [document.text[a:b] for a, b in document.paragraphs()] == ["one", "three is here\nfour"]


def test_every_place_of_a_long_text() -> None:
    """Against splitting the text into lines, over several stretches of the index."""
    text = "".join(f"{'x' * (n % 97)}\n" for n in range(5000)) + "end"
    document = Document("a", text)
    for character in [*range(0, len(text), 1013), len(text), 2**16 - 1, 2**16, 2**16 + 1, 2**17]:
        lines = text[:character].split("\n")
        place = document.place(character)
        assert (place.line, place.column) == (len(lines), len(lines[-1]) + 1)
    with pytest.raises(ValueError, match=r"expected a number from 0 to"):
        document.place(len(text) + 1)


@pytest.mark.parametrize(
    "codec", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "cp1252"]
)
def test_encodings(tmp_path: Path, codec: str) -> None:
    text = "Fünf Bücher über die “Straße”: 5 € für alle. " * 9
    document = read(tmp_path, "a.txt", text.encode(codec))
    assert document.text == text
    guessed = codec in ("utf-16-le", "utf-16-be", "cp1252")
    assert [codec.lower() in note.lower() for note in document.notes] == [True] * guessed
    assert read_document(tmp_path / "a.txt", encoding=codec).text == text


def test_a_named_encoding_holds(tmp_path: Path) -> None:
    text = "Старый завод закрыли."
    assert read(tmp_path, "a.txt", text.encode("koi8-r"), encoding="koi8-r").text == text
    page = f"<p>{text}".encode("koi8-r")
    assert read(tmp_path, "a.html", page, encoding="koi8-r").text == text
    with pytest.raises(ValueError, match="is not utf-8: byte 0xf3"):
        read_document(tmp_path / "a.txt", encoding="utf-8")
    with pytest.raises(ValueError, match=r"a known encoding .* received 'klingon'"):
        read_document(tmp_path / "a.txt", encoding="klingon")


def test_a_few_wrong_bytes_do_not_change_the_rest(tmp_path: Path) -> None:
    data = ("Größe, Maß und Übermut. " * 20).encode()
    document = read(tmp_path, "a.txt", data + b"\xff" + data)
    assert document.text.count("Größe") == 40
    assert "\ufffd" in document.text
    assert "1 character is not valid UTF-8" in document.notes[0]
    few = read(tmp_path, "c.txt", ("It’s old. " * 5).encode() + b"caf\xe9")  # noqa: RUF001
    assert few.text == "It’s old. " * 5 + "caf\ufffd"  # noqa: RUF001
    cut = read(tmp_path, "b.txt", "Ein Café".encode()[:-1])
    assert cut.text.startswith("Ein Caf")
    assert cut.notes


def test_a_few_nul_bytes_are_spaces(tmp_path: Path) -> None:
    document = read(tmp_path, "a.txt", b"words " * 100 + b"\0" + b"words")
    assert "\0" not in document.text
    assert "NUL" in document.notes[0]
    assert len(document.text) == 606


def test_gzip_of_text_and_of_others(tmp_path: Path) -> None:
    assert read(tmp_path, "a.txt.gz", gzip.compress(b"Packed words.")).text == "Packed words."
    packed = gzip.compress(files.pdf([HOUSE]))
    assert read(tmp_path, "a.pdf.gz", packed).kind == "pdf"


def test_html(tmp_path: Path) -> None:
    page = """<!DOCTYPE html><html><head><title>Mills of Fife</title>
<script>let closed = 1850;</script>
<style>p {color: red}</style></head><body><nav><a href=/>Home</a></nav><h1>The mills</h1>
<p>The <b>Low</b> mill&nbsp;was clo&shy;sed in <i>1931</i>&mdash;<a href="x">so</a> it is
   said.<br>Then it burned &amp; fell.</p><div hidden>1851</div><p style="display:none">1852</p>
<template>1853</template><noscript>1854</noscript><ul><li>wool</li><li><p>flax</p></li></ul>
<table><tr><th>Mill</th><th>Men</th></tr><tr><td><p>Low</p></td><td>40</td></tr></table>loose
<pre>a  b
  c</pre></body></html>"""
    document = read(tmp_path, "a.html", page)
    assert document.text == (
        "Mills of Fife\n\nThe mills\n\nThe Low mill was closed in 1931—so it is said.\n"
        "Then it burned & fell.\n\n- wool\n- flax\n\nMill | Men\nLow | 40\n\nloose\n\na  b\n  c"
    )
    assert len(document.paragraphs()) == 7
    assert at(document, "burned") == "line 6"


@pytest.mark.parametrize("declared", ["windows-1251", "utf-16", "utf-8", None])
def test_the_encoding_that_a_page_declares(tmp_path: Path, declared: str | None) -> None:
    meta = f'<meta charset="{declared}">' if declared else ""
    data = f"<html>{meta}<p>Мельница".encode(declared or "utf-8")
    assert read(tmp_path, "a.htm", data).text == "Мельница"


def test_closed_elements_of_xhtml(tmp_path: Path) -> None:
    head = '<?xml version="1.0"?><html><head><title/></head>'
    page = f'{head}<body><a id="x"/><p>Seen.</p></body></html>'
    assert read(tmp_path, "a.xhtml", page).text == "Seen."


@pytest.mark.slow  # pages of megabytes
def test_pages_nested_deeply(tmp_path: Path) -> None:
    assert read(tmp_path, "a.html", "<div>" * 20_000 + "deep").text == "deep"


def test_pdf(tmp_path: Path) -> None:
    document = read(tmp_path, "a.pdf", files.pdf([["Cover"], [], HOUSE]))
    assert document.kind == "pdf"
    assert len(document.pages) == 3
    assert [document.text[a:b] for a, b in document.paragraphs()] == [
        "Cover",
        "The House at Kestrel Point",
        "The lighthouse was sold in 1913 to a painter from Leith, who lived in it with nine cats "
        "and an organ until the great storm of 1921 took the roof. He never came back to the "
        "coast.",
        "His pictures of it are in Perth. Two of them, well-known, were stolen, and found again "
        "under a well-known bed.",
    ]
    assert document.notes == ("1 of 3 pages has no text; scanned pages need OCR",)
    assert at(document, "Cover") == "page 1, line 1"
    assert at(document, "The House") == "page 3, line 1"
    assert at(document, "nine cats") == "page 3, line 3"  # as on the page, without the empty line
    assert at(document, "known bed") == "page 3, line 7"
    assert document.place(document.text.index("lived")).column == 1


def test_sentences_go_on_over_pages_and_running_heads_are_left_out(tmp_path: Path) -> None:
    pages = [
        [f"Report of the Board {number}", "", f"Chapter {'abcdef'[number]} tells", "",
         f"of {'abcdef'[number]} matter that was long delayed and at last was put to a vote",
         f"in the assembly, where the {'abcdef'[number]} members of the houses argued"]
        for number in range(6)
    ]  # fmt: skip
    for number in range(1, 6):
        pages[number][2:4] = ["and argued until the evening, and then they went home. The end."]
    document = read(tmp_path, "a.pdf", files.pdf(pages))
    assert document.text.count("Report of the Board") == 1
    assert document.text.count("houses argued and argued until") == 5
    assert "running heads" in document.notes[0]
    assert at(document, "and argued until") == "page 2, line 2"  # the head is a line of the page


def with_feet(bodies: list[list[str]], foot: str, size: int = 20) -> list[list[str]]:
    """Pages of so many lines, each with a foot and its number at the bottom."""
    pages = [body + [""] * (size - len(body)) for body in bodies]
    return [[*page, foot.format(n), "", f"Page {n}"] for n, page in enumerate(pages, 1)]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_sentence_is_not_cut_by_the_foot_of_a_page(count: int, tmp_path: Path) -> None:
    bodies = [
        ["deleted after some days.", f"Then came {word}.", word, "All of the recordings shall be"]
        for word in ["rain", "snow", "wind", "hail", "fog"][:count]
    ]
    pages = with_feet(bodies, "Code of practice 4410")
    document = read(tmp_path, "a.pdf", files.pdf(pages))
    assert document.text.count("recordings shall be deleted after some days.") == count - 1
    assert document.text.endswith("shall be\n\nCode of practice 4410")  # and once it is kept
    assert "Page" not in document.text
    assert document.notes == ("running heads and page numbers are skipped",)


def test_lines_are_counted_from_the_top_of_their_page(tmp_path: Path) -> None:
    """Also where a word goes on over a foot that is left out."""
    words = ["rain", "snow", "wind", "hail", "fog"]
    bodies = [
        ["tory was old, and then", f"came {word} and {word}ing.", "It was", f"a {word} fac-"]
        for word in words
    ]
    document = read(tmp_path, "a.pdf", files.pdf([*with_feet(bodies, "A code"), []]))
    assert document.text.count("factory was old") == len(words) - 1
    for number, word in enumerate(words, 1):
        assert at(document, f"{word}ing") == f"page {number}, line 2"
        assert at(document, f"a {word} fac") == f"page {number}, line 4"
    assert str(document.place(len(document.text))) == f"page {len(words) + 1}, line 1"


def test_what_differs_on_two_pages_is_no_running_head(tmp_path: Path) -> None:
    bodies = [["The first of them", "went home."], ["The second", "stayed here."]]
    document = read(tmp_path, "a.pdf", files.pdf(with_feet(bodies, "Patient {}")))
    assert "Patient 1" in document.text
    assert "Patient 2" in document.text
    assert "Page" not in document.text
    same = [["A title", "", "The first of them went home."], ["", "A title", "", "They stayed."]]
    document = read(tmp_path, "b.pdf", files.pdf(same))
    assert document.text.count("A title") == 2
    assert not document.notes


def test_pdf_of_another_program(tmp_path: Path) -> None:
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 8))
    for number, line in enumerate(["Œuvre of the efficient", "builders §3 ±4"]):
        figure.text(0.1, 0.9 - 0.03 * number, line)
    out = io.BytesIO()
    FigureCanvasPdf(figure).print_pdf(out)
    text = read(tmp_path, "a.pdf", out.getvalue()).text
    assert text.split() == "Œuvre of the efficient builders §3 ±4".split()


def test_equations_and_symbols_in_docx(tmp_path: Path) -> None:
    from docx.oxml import parse_xml

    def build(document: Any) -> None:
        word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
        math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
        symbols = (("Symbol", "F0B0"), ("Symbol", "F06D"), ("Arial", "00A7"), ("Symbol", "F001"))
        marks = "".join(f'<w:sym w:font="{font}" w:char="{code}"/>' for font, code in symbols)
        paragraph = document.add_paragraph("Energy is ")
        for piece in ("<m:oMath><m:r><m:t>E=mc2</m:t></m:r></m:oMath>", f"<w:r>{marks}</w:r>"):
            declared = piece.replace(">", f' xmlns:w="{word}" xmlns:m="{math}">', 1)
            paragraph._p.append(parse_xml(declared))

    assert read(tmp_path, "a.docx", files.docx(build)).text == "Energy is E=mc2°μ§\ufffd"


def test_what_only_xml_has_in_a_page(tmp_path: Path) -> None:
    page = (
        '<?xml version="1.0"?><!DOCTYPE html [<!ENTITY mill "a mill">]><html><head><title/></head>'
        "<body><p>The <![CDATA[<b> & ]]>old &mill; closed.</p></body></html>"
    )
    assert read(tmp_path, "a.xhtml", page).text == "The <b> & old &mill; closed."


def test_docx(tmp_path: Path) -> None:
    def build(document: Any) -> None:
        document.add_heading("Harbour dues", 1)
        paragraph = document.add_paragraph("Dues were ")
        paragraph.add_run("doubled").bold = True
        paragraph.add_run(" in 1888.\nNobody paid.")
        table = document.add_table(2, 2)
        for number, cell in enumerate(["Year", "Pounds", "1888", "412"]):
            table.cell(*divmod(number, 2)).text = cell
        document.add_paragraph("")
        document.add_paragraph("Signed: the harbour master")

    document = read(tmp_path, "a.docx", files.docx(build))
    assert document.text == (
        "Harbour dues\n\nDues were doubled in 1888.\nNobody paid.\n\nYear | Pounds\n1888 | 412\n\n"
        "Signed: the harbour master"
    )
    assert (document.kind, document.pages) == ("docx", ())


def test_what_word_hides_from_simple_readers(tmp_path: Path) -> None:
    """Content controls, changes that are tracked, text boxes, and fields."""
    from docx.oxml import parse_xml

    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    parts = [
        "<w:sdt {}><w:sdtPr/><w:sdtContent><w:p><w:r><w:t>In a control</w:t></w:r></w:p>"
        "</w:sdtContent></w:sdt>",
        "<w:p {}><w:r><w:t>Kept </w:t></w:r><w:ins><w:r><w:t>inserted</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>deleted</w:delText></w:r></w:del></w:p>",
        "<w:p {}><w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:t>Outside</w:t></w:r>"
        "<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>Inside a box</w:t></w:r></w:p></w:txbxContent>"
        "</w:pict></w:r></w:p>",
    ]

    def build(document: Any) -> None:
        for part in parts:
            document.element.body.append(parse_xml(part.format(space)))

    text = read(tmp_path, "a.docx", files.docx(build)).text
    assert text == "In a control\n\nKept inserted\n\nOutside\n\nInside a box"


def test_footnotes_stand_at_the_end(tmp_path: Path) -> None:
    from docx.opc.packuri import PackURI
    from docx.opc.part import Part
    from docx.oxml import parse_xml

    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    notes = (
        f'<w:footnotes {space}><w:footnote w:type="separator" w:id="-1"><w:p><w:r><w:t>no</w:t>'
        '</w:r></w:p></w:footnote><w:footnote w:id="1"><w:p><w:r><w:t>See the map.</w:t></w:r>'
        "</w:p></w:footnote></w:footnotes>"
    )
    claim = (
        f'<w:p {space}><w:r><w:t>A claim</w:t></w:r><w:r><w:footnoteReference w:id="1"/></w:r>'
        "<w:r><w:t>.</w:t></w:r></w:p>"
    )

    def build(document: Any) -> None:
        document.element.body.insert(0, parse_xml(claim))
        name = PackURI("/word/footnotes.xml")
        part = Part(name, "application/xml", notes.encode(), document.part.package)
        document.part.relate_to(part, kind)

    text = read(tmp_path, "a.docx", files.docx(build)).text
    assert text == "A claim[1].\n\n[1] See the map."


def test_epub_in_the_order_of_reading(tmp_path: Path) -> None:
    book = files.epub(
        {
            "cover.xhtml": '<html><body><img src="x.png"/></body></html>',
            "z first.xhtml": "<html><body><h1>One</h1><p>It began.</p></body></html>",
            "a.xhtml": "<html><body><h1>Two</h1><p>It ended.</p></body></html>",
        }
    )
    document = read(tmp_path, "a.epub", book)
    assert document.text == "One\n\nIt began.\n\nTwo\n\nIt ended."
    assert (document.kind, document.pages) == ("epub", (0, 16))
    assert at(document, "It ended") == "part 2, line 3"
