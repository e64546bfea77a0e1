"""docx: paragraphs, tables and notes of a Word file, with tracked changes accepted."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from longbird.applications.documents.characters import clean
from longbird.applications.documents.document import Document
from longbird.applications.documents.errors import NotTextError

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
ALTERNATIVES = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"
SKIPPED = frozenset(
    W + name for name in ("del", "moveFrom", "rPr", "pPr", "sectPr", "tblPr", "sdtPr", "instrText")
)
"""Deleted text, formatting properties, and the formulas of fields."""

CHARACTERS = {
    W + "tab": "\t", W + "br": "\n", W + "cr": "\n", W + "noBreakHyphen": "-", W + "ptab": "\t",
}  # fmt: skip
SYMBOLS = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ\xa3\xa5\xb0\xb1\xb3\xb4\xb7\xb8\xb9",
        "αβχδεφγηιϕκλμνοπθρστυϖωξψζΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ≤∞°±≥×•÷≠",  # noqa: RUF001
        strict=True,
    )
)
"""Characters of the font Symbol, which Word uses for inserted symbols."""
NOTES = ("footnote", "endnote")


def read(data: bytes) -> Document:
    """Return the body, then footnotes and endnotes; headers and footers are skipped.

    Raises:
        NotTextError: The file is damaged, has no text, or is another kind of Word file.
        MemoryError: lxml ran out of memory.
    """
    import docx
    from docx.opc.exceptions import PackageNotFoundError
    from lxml.etree import LxmlError

    try:
        document: Any = docx.Document(io.BytesIO(data))
        paragraphs = [*_blocks(document.element.body), *_notes(document.part)]
    except (LxmlError, KeyError, ValueError, AttributeError, PackageNotFoundError) as error:
        # Out of memory, lxml reports an unknown error in line 0.
        if getattr(error, "lineno", None) == 0:
            raise MemoryError from error
        if "is not a Word file" in str(error):  # according to its content type
            raise NotTextError(
                "is a Word file with macros or a template (docm, dotx or dotm): save it as docx"
            ) from error
        raise NotTextError(f"is a damaged docx file: {' '.join(str(error).split())}") from error
    text = "\n\n".join(paragraphs)
    if not text:
        raise NotTextError(
            "is a docx file without text: if it has pictures of text, run it through OCR first"
        )
    return Document("", text, kind="docx")


def _blocks(element: Any) -> Iterator[str]:
    """Yield the paragraphs and tables below an element; frames are entered."""
    for child in element:
        if child.tag == W + "p":
            yield from _paragraph(child)
        elif child.tag == W + "tbl":
            if rows := list(_rows(child)):
                yield "\n".join(rows)
        elif child.tag not in SKIPPED and isinstance(child.tag, str):
            yield from _blocks(child[0] if child.tag == ALTERNATIVES and len(child) else child)


def _paragraph(element: Any) -> Iterator[str]:
    """Yield the text of a paragraph, then the text of the boxes anchored to it."""
    boxes: list[Any] = []
    lines = clean("".join(_runs(element, boxes))).split("\n")
    kept = [" ".join(line.split()) for line in lines]
    if text := "\n".join(filter(None, kept)):
        yield text
    for box in boxes:
        yield from _blocks(box)


def _runs(element: Any, boxes: list[Any]) -> Iterator[str]:
    for child in element:
        if child.tag in (W + "t", M + "t"):  # text, and text of an equation
            yield child.text or ""
        elif child.tag in CHARACTERS:
            yield CHARACTERS[child.tag]
        elif child.tag == W + "sym":
            yield _symbol(child.get(W + "font"), child.get(W + "char"))
        elif child.tag in (W + "footnoteReference", W + "endnoteReference"):
            yield f"[{child.get(W + 'id')}]"
        elif child.tag == W + "txbxContent":
            boxes.append(child)
        elif child.tag == ALTERNATIVES and len(child):
            yield from _runs(child[0], boxes)  # alternatives with the same content
        elif child.tag not in SKIPPED:
            yield from _runs(child, boxes)


def _symbol(font: str | None, code: str | None) -> str:
    """Return a character by its code in a font; symbol fonts use codes from F000 on."""
    try:
        number = int(code or "", 16)
        return SYMBOLS[chr(number & 0xFF)] if font == "Symbol" else chr(number)
    except (ValueError, OverflowError, KeyError):
        return "\ufffd"


def _rows(table: Any) -> Iterator[str]:
    for row in table.iter(W + "tr"):
        if next(row.iterancestors(W + "tbl")) is not table:
            continue  # a row of a nested table, which is text of the cell around it
        cells = [" ".join(" ".join(_blocks(cell)).split()) for cell in row.iter(W + "tc")
                 if next(cell.iterancestors(W + "tr")) is row]  # fmt: skip
        if any(cells):
            yield " | ".join(cells)


def _notes(part: Any) -> Iterator[str]:
    from docx.oxml import parse_xml

    for relation in part.rels.values():
        kind = relation.reltype.rpartition("/")[2].removesuffix("s")
        if relation.is_external or kind not in NOTES:
            continue
        for note in parse_xml(relation.target_part.blob).iter(W + kind):
            if note.get(W + "type") is None:  # otherwise it is the separator line
                text = " ".join(" ".join(_blocks(note)).split())
                if text:
                    yield f"[{note.get(W + 'id')}] {text}"
