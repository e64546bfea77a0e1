"""Zip archives: docx and epub files, which may be crafted to do harm."""

from __future__ import annotations

import io
import zipfile
import zlib

from longbird.applications.documents import docx, epub
from longbird.applications.documents.document import Document
from longbird.applications.documents.errors import NotTextError
from longbird.applications.documents.separate_process import Limits
from longbird.applications.documents.untrusted_xml import check_xml
from longbird.core.machine import in_words

FILES = 100_000
"""Maximum number of files in an archive; no document has as many."""
PIECE = 2**20
"""Number of bytes that are unpacked at once to verify the declared sizes."""

OTHERS = {
    "xl/workbook.xml": "is an Excel workbook (xlsx), not a text",
    "ppt/presentation.xml": "is a PowerPoint presentation (pptx): save it as pdf first",
    "META-INF/MANIFEST.MF": "is a Java archive (jar), not a text",
}


def read(data: bytes, limits: Limits, _encoding: str | None = None) -> Document:
    """Read a docx or epub file.

    Raises:
        NotTextError: The archive is damaged, protected, too large, or something else.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_size(archive, limits)
            names = frozenset(archive.namelist())
            if any(name.startswith("word/document") for name in names):
                _check_parts(archive)
                return docx.read(data)
            if "META-INF/container.xml" in names:
                return epub.read(archive)
            raise NotTextError(_other(archive, names))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise NotTextError(
            f"is a damaged or incomplete zip, docx or epub file: {error}"
        ) from error
    except RuntimeError as error:  # raised by zipfile if a password is needed
        if "encrypted" not in str(error):
            raise
        raise NotTextError("is protected by a password: unpack it and read its files") from error


def _check_size(archive: zipfile.ZipFile, limits: Limits) -> None:
    """Raise an error if the declared sizes exceed the limits; nothing is unpacked yet."""
    files = archive.infolist()
    size = sum(file.file_size for file in files)
    if size > limits.unpacked or len(files) > FILES:
        raise NotTextError(
            f"would be {in_words(size)} when it is unpacked, and holds {len(files):,} files; the "
            f"limits are {in_words(limits.unpacked)} and {FILES:,}"
        )


def _check_parts(archive: zipfile.ZipFile) -> None:
    """Verify the declared sizes and the XML, before python-docx reads everything at once."""
    for part in archive.infolist():
        is_xml = part.filename.lower().endswith((".xml", ".rels"))
        pieces: list[bytes] = []
        with archive.open(part) as file:
            while piece := file.read(PIECE):  # stops at the declared size
                pieces += [piece] if is_xml else []
        if is_xml:
            check_xml(b"".join(pieces), part.filename)


def _other(archive: zipfile.ZipFile, names: frozenset[str]) -> str:
    for name, what in OTHERS.items():
        if name in names:
            return what
    if "mimetype" in names:
        mime = archive.open("mimetype").read(100).decode("ascii", "replace")
        if "opendocument" in mime:
            return "is an OpenDocument file (odt or another): save it as docx or pdf first"
    return f"is a zip archive ({len(names):,} inside): unpack it first, and read its folder"
