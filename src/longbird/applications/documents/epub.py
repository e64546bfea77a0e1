"""epub: the parts of a book in reading order."""

from __future__ import annotations

import posixpath
import zipfile
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from longbird.applications.documents import html
from longbird.applications.documents.document import Document
from longbird.applications.documents.errors import NotTextError
from longbird.applications.documents.untrusted_xml import check_xml

PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document")
# Obfuscated fonts do not prevent anyone from reading the text.
FONTS = {"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}


def read(archive: zipfile.ZipFile) -> Document:
    """Read the parts of a book that have text; each becomes a page of the document."""
    package, parts = _parts(archive)
    locked = _locked(archive)
    names = set(archive.namelist())
    text, pages, notes, missing = "", list[int](), list[str](), 0
    for href in parts:
        name = posixpath.normpath(posixpath.join(posixpath.dirname(package), href))
        if name in locked:
            raise NotTextError(
                "is protected (DRM): only the reading program of its seller can open it"
            )
        if name not in names:
            missing += 1
            continue
        try:
            part, part_notes = html.page(archive.read(name))
        except NotTextError as error:
            raise NotTextError(
                f"is a book whose part {name} {error}: it is damaged, or protected (DRM)"
            ) from error
        notes += [note for note in part_notes if note not in notes]
        if part:
            text += "\n\n" * bool(text)
            pages.append(len(text))
            text += part
    if not text:
        raise NotTextError("is an epub without text; its pages may be pictures")
    if missing:
        notes.append(f"{missing} of {len(parts)} parts of the book are missing from the file")
    return Document("", text, tuple(pages), "epub", tuple(notes))


def _parts(archive: zipfile.ZipFile) -> tuple[str, list[str]]:
    """Return the path of the package document, and the text files in reading order."""
    container = _xml(archive, "META-INF/container.xml")
    root = container.find(".//{*}rootfile")
    package = posixpath.normpath(root.get("full-path", "")) if root is not None else ""
    if package not in archive.namelist():
        raise NotTextError("is a damaged epub: its list of contents is missing")
    contents = _xml(archive, package)
    items = {item.get("id"): item for item in contents.iterfind(".//{*}item")}
    order = (items.get(each.get("idref")) for each in contents.iterfind(".//{*}itemref"))
    return package, [
        unquote(urlsplit(item.get("href", "")).path)
        for item in order
        if item is not None
        and item.get("media-type") in PAGES
        and "nav" not in (item.get("properties") or "").split()
    ]


def _locked(archive: zipfile.ZipFile) -> set[str]:
    """Return the paths of encrypted files."""
    if "META-INF/encryption.xml" not in archive.namelist():
        return set()
    found: set[str] = set()
    for data in _xml(archive, "META-INF/encryption.xml").iterfind(".//{*}EncryptedData"):
        methods = {each.get("Algorithm") for each in data.iterfind("{*}EncryptionMethod")}
        if not methods or not methods <= FONTS:
            files = (each.get("URI", "") for each in data.iterfind(".//{*}CipherReference"))
            found.update(posixpath.normpath(unquote(file).lstrip("/")) for file in files)
    return found


def _xml(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(check_xml(archive.read(name), name))
    except ElementTree.ParseError as error:
        raise NotTextError(f"is a damaged epub: {name} is not XML ({error})") from error
