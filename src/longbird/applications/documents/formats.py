"""Detecting the format of a file by its first bytes and, where these are ambiguous, its name."""

from __future__ import annotations

import re
from pathlib import PurePath

from longbird.applications.documents.errors import NotTextError

HEAD = 4096
"""Number of bytes that are examined."""

ENDINGS = {
    **dict.fromkeys((".txt", ".text", ".rst", ".asc", ".log"), "text"),
    **dict.fromkeys((".md", ".markdown", ".mdown"), "markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf",
    ".docx": "docx",
    ".epub": "epub",
}
"""Endings of the files that are read in folders, and their formats."""

READ = "txt, md, html, pdf, docx and epub"

PICTURE = "is a picture ({}), not text: run it through OCR first"
SOUND = "is a sound or video file ({}), not text"
PROGRAM = "is a program ({}), not text"
PACKED = "is compressed with {}: unpack it first"
DATA = "is data for programs ({}), not text"
OLD = "is {}: save it as docx or pdf first"

# Patterns for the first bytes of unsupported files, with error messages; a dot is any byte.
SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (rb"\x89PNG\r\n", PICTURE.format("png")),
    (rb"\xff\xd8\xff", PICTURE.format("jpeg")),
    (rb"GIF8[79]a", PICTURE.format("gif")),
    (rb"II\*\0|MM\0\*", PICTURE.format("tiff")),
    (rb"RIFF....WEBP", PICTURE.format("webp")),
    (rb"\0\0..ftyp(?:heic|heix|mif1|avif)", PICTURE.format("heif")),
    (rb"BM....\0\0\0\0", PICTURE.format("bmp")),
    (rb"\0\0\x01\0.\0", PICTURE.format("ico")),
    (rb"8BPS\0", PICTURE.format("psd")),
    (rb"\0\0\0\x0cjP  ", PICTURE.format("jpeg 2000")),
    (rb"AT&TFORM", PICTURE.format("djvu")),
    (rb"\0\0..ftyp", SOUND.format("mp4")),
    (rb"RIFF....(?:WAVE|AVI )", SOUND.format("wav or avi")),
    (rb"ID3[\x02-\x04]|\xff[\xf2\xf3\xfb]", SOUND.format("mp3")),
    (rb"OggS\0|fLaC\0|\x1aE\xdf\xa3", SOUND.format("ogg, flac or matroska")),
    (rb"\x7fELF", PROGRAM.format("ELF")),
    (rb"MZ..?.?\0", PROGRAM.format("Windows")),
    (rb"\xcf\xfa\xed\xfe|\xca\xfe\xba\xbe", PROGRAM.format("Mach-O or Java")),
    (rb"\0asm", PROGRAM.format("WebAssembly")),
    (rb"7z\xbc\xaf", PACKED.format("7-Zip")),
    (rb"Rar!\x1a", PACKED.format("RAR")),
    (rb"\xfd7zXZ\0", PACKED.format("xz")),
    (rb"BZh[1-9]1AY&SY", PACKED.format("bzip2")),
    (rb"\x28\xb5\x2f\xfd", PACKED.format("zstd")),
    (rb"SQLite format 3\0", DATA.format("SQLite")),
    (rb"PAR1[\0-\x1f]", DATA.format("parquet")),
    (rb"\x93NUMPY", DATA.format("npy")),
    (rb"\x89HDF\r\n", DATA.format("HDF5")),
    (rb"wOF[F2]\0|OTTO\0|\0\x01\0\0\0", "is a font, not text"),
    (rb"\{\\rtf", OLD.format("rich text (rtf)")),
    (rb"%!PS", "is PostScript: convert it to pdf first, for example with ps2pdf"),
    (rb".{60}BOOKMOBI", "is a Kindle book (mobi): convert it to epub first"),
    (rb".{257}ustar(?:\0| {2}\0)", "is a tar archive: unpack it first, and read its folder"),
)
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""Start of Word, Excel and PowerPoint files up to 2003, and of encrypted ones since then."""
PROTECTED = "is protected by a password: save a copy without it, and read that"
OLE_FILES = {
    **dict.fromkeys((".docx", ".xlsx", ".pptx"), PROTECTED),
    ".doc": OLD.format("an old Word file (doc)"),
    ".xls": OLD.format("an old Excel file (xls)"),
}
OTHER_OLE_FILES = OLD.format("a file of an old version of Office, such as doc or xls")

HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)


def ending(name: str) -> str:
    """Return the ending of a file name without .gz, in lowercase."""
    path = PurePath(name)
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def kind_of(head: bytes, name: str) -> str:
    """Return "text", "markdown", "html", "pdf", "zip" (docx, epub and others) or "gzip".

    `head` are the first `HEAD` bytes of the file.

    Raises:
        NotTextError: The file is of another kind, which the error names.
    """
    named = ENDINGS.get(ending(name))
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"%PDF-") or (named == "pdf" and b"%PDF-" in head[:1024]):
        return "pdf"
    if head.startswith((b"PK\3\4", b"PK\5\6")):
        return "zip"
    if head.startswith(b"\x1f\x8b\x08"):
        return "gzip"
    if head.startswith(OLE):
        raise NotTextError(OLE_FILES.get(ending(name), OTHER_OLE_FILES))
    for pattern, what in SIGNATURES:
        if re.match(pattern, head, re.DOTALL):
            raise NotTextError(what)
    markup = _single_bytes(head)
    tagged = named == "html" and re.search(rb"<[a-zA-Z!/]", markup)
    if tagged or HTML.match(COMMENT.sub(b"", markup)):
        return "html"
    return "markdown" if named == "markdown" else "text"


def _single_bytes(head: bytes) -> bytes:
    """Remove byte-order marks and the NUL bytes of UTF-16, so that tags can be found."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head[:16]:
        return head.lstrip(b"\xff\xfe").replace(b"\0", b"")
    return head.removeprefix(b"\xef\xbb\xbf")
