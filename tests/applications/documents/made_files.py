"""Files of each format, made by hand or by the libraries that write them."""

from __future__ import annotations

import io
import zipfile
from typing import Any

CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/>
</rootfiles>
</container>"""


def pdf(pages: list[list[str]], encrypt: bytes = b"", size: int = 12) -> bytes:
    """A pdf by hand: a line of text for each, 14 points apart, in Courier; "" is an empty one."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b""]
    objects[2] = b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>"
    kids: list[int] = []
    for lines in pages:
        drawn = [f"BT /F1 {size} Tf 72 720 Td 14 TL".encode()]
        for line in lines:
            indent = len(line) - len(line.lstrip())
            escaped = line.strip().replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
            moved = b"%d 0 Td" % (indent * 7), b"%d 0 Td" % (-indent * 7)
            drawn += [moved[0], b"(%s) Tj" % escaped.encode("cp1252"), moved[1], b"T*"]
        stream = b"\n".join([*drawn, b"ET"])
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        contents = len(objects)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % contents
        )
        kids.append(len(objects))
    named = b" ".join(b"%d 0 R" % kid for kid in kids)
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), named)
    out, places = b"%PDF-1.4\n", list[int]()
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R %s >>\n"
        b"startxref\n%d\n%%%%EOF" % (len(objects) + 1, table, len(objects) + 1, encrypt, len(out))
    )


# A standard encryption dictionary whose keys belong to no password that is known.
ENCRYPTED = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00> <00>]" % (
    b"5a" * 32,
    b"a5" * 32,
)


def zipped(files: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def epub(parts: dict[str, str], **more: str) -> bytes:
    """A book with these files of html, in this order; `more` are files of META-INF."""
    ids = {name: f"id{number}" for number, name in enumerate(parts)}
    items = "".join(
        f'<item id="{ids[name]}" href="{name.replace(" ", "%20")}" '
        'media-type="application/xhtml+xml"/>'
        for name in sorted(parts)
    )
    spine = "".join(f'<itemref idref="{ids[name]}"/>' for name in parts)
    package = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    files: dict[str, str | bytes] = {"mimetype": "application/epub+zip"}
    files |= {"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": package}
    files |= {f"META-INF/{name}.xml": content for name, content in more.items()}
    # In another order than that in which they are read.
    files |= {f"OEBPS/{name}": parts[name] for name in sorted(parts, reverse=True)}
    return zipped(files)


def docx(build: Any) -> bytes:
    """What a function does to a new Word document."""
    from docx import Document

    document = Document()
    build(document)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()
