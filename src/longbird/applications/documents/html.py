"""html: the visible text of a page, block by block."""

from __future__ import annotations

import re
from collections import Counter
from html import escape
from typing import Any

from longbird.applications.documents.characters import clean
from longbird.applications.documents.document import Document
from longbird.applications.documents.encoding import check_text, decode
from longbird.applications.documents.errors import NotTextError
from longbird.applications.documents.separate_process import Limits

NOISE = frozenset(
    "head script style template noscript nav svg math iframe frame object embed canvas audio "
    "video map select button datalist textarea title rp dialog".split()
)
"""Elements that contain no text of the document."""

BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main ol p pre "
    "section summary table tbody tfoot thead ul".split()
)
"""Elements that start a new line, or a new paragraph outside of lists and tables."""

NESTED = {"table": "table", "ul": "list", "ol": "list", "pre": "pre"}
"""Elements that change how the text inside of them is separated, and their kinds."""

# Classes of the controls that MediaWiki and Sphinx put beside headings.
CONTROLS = frozenset(("mw-editsection", "headerlink"))

DECLARED = re.compile(
    rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?([\w.:-]+)""", re.I
)
SELF_CLOSED = re.compile(r"<([A-Za-z][\w:.-]*)((?:\s[^<>]*)?)/>")
# Declarations within the DOCTYPE, and CDATA sections, which only XML has. Both patterns stop at
# the next opening, so that a file that consists of openings is searched in linear time.
DECLARED_INSIDE = re.compile(r"\A(\s*<\?xml[^>]*>\s*)<!DOCTYPE[^>\[]*\[[^\]]*\]\s*>", re.I)
CDATA = re.compile(r"<!\[CDATA\[((?:(?!<!\[CDATA\[|\]\]>).)*)\]\]>", re.S)
VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()
)  # fmt: skip

DEPTH, ATTRIBUTES = 50_000, 10_000
"""Maximum number of open elements, and of attributes of a tag: the parser needs quadratic time."""

TAG = re.compile(r"<(/?[A-Za-z][A-Za-z0-9:-]*)")
LONG_TAG = re.compile(r"<[A-Za-z][^<>]{20000,}")
ATTRIBUTE = re.compile(r"""[^\s=]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"']+))?""")
CLOSED_BY_OTHERS = VOID | frozenset(
    "p li dt dd tr td th tbody thead tfoot colgroup caption option optgroup rb rt rp "
    "path rect circle ellipse line polyline polygon use stop".split()
)
"""Elements without an end tag: the parser closes them itself, or they are shapes of an svg."""

HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)


def read(data: bytes, _limits: Limits, encoding: str | None = None) -> Document:
    """Read a page as a document."""
    text, notes = page(data, encoding)
    if not text:
        raise NotTextError(
            "is html without visible text: if scripts generate it, save the page from a browser "
            "first"
        )
    return Document("", text, kind="html", notes=tuple(notes))


def page(data: bytes, encoding: str | None = None) -> tuple[str, list[str]]:
    """Return the text of a page, with empty lines between paragraphs, and notes on its encoding.

    Raises:
        NotTextError: It is not text, or it is nested too deeply to be parsed in reasonable time.
    """
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    if encoding is None:
        check_text(data)
    declared = DECLARED.search(data[:4096])
    source, notes = decode(data, encoding, declared[1].decode() if declared else None)
    if source[:200].lstrip().startswith("<?xml"):
        source = DECLARED_INSIDE.sub(r"\1", source)
        source = CDATA.sub(lambda found: escape(found[1], quote=False), source)
        source = SELF_CLOSED.sub(_opened, source)
    _check_nesting(source)
    try:
        tree = LexborHTMLParser(source)
    except SelectolaxError as error:  # all text is valid html, so memory must have run out
        raise MemoryError from error
    blocks = _Blocks()
    if tree.body is not None:
        _walk(tree.body, blocks)
    text = blocks.text()
    title = tree.css_first("title")
    heading = " ".join(clean(title.text()).split()) if title is not None else ""
    if heading and heading not in text[:2000]:
        text = f"{heading}\n\n{text}" if text else ""
    return text, notes


def _opened(found: re.Match[str]) -> str:
    """Close `<title/>` as XML means it; html would never close it."""
    name, attributes = found[1], found[2]
    return found[0] if name.lower() in VOID else f"<{name}{attributes}></{name}>"


def _check_nesting(source: str) -> None:
    """Raise an error if the page has too many open elements, or a tag too many attributes."""
    if source.count("<") > DEPTH:
        depth: Counter[str] = Counter()
        for start in range(0, len(source), 2**16):
            counts = Counter(TAG.findall(source, start, start + 2**16))
            for tag, count in counts.items():
                name = tag.lower().removeprefix("/")
                if name not in CLOSED_BY_OTHERS:
                    depth[name] = max(0, depth[name] + (-count if tag[0] == "/" else count))
            if depth.total() > DEPTH:
                raise NotTextError(f"is nested too deeply: it has more than {DEPTH:,} open tags")
    for tag in LONG_TAG.finditer(source):
        attributes = ATTRIBUTE.finditer(tag[0])
        if any(number >= ATTRIBUTES for number, _ in enumerate(attributes)):
            raise NotTextError(f"has a tag with more than {ATTRIBUTES:,} attributes")


class _Blocks:
    """Collected text; between two pieces stands the widest of the requested separators."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.gap = ""
        self.open: Counter[str] = Counter()
        """Numbers of open elements by the kinds of `NESTED`."""

    def separate(self, gap: str) -> None:
        """Request a separator of at least this width before the next piece."""
        ranks = ("", " ", " | ", "\n", "\n- ", "\n\n", "\n\n- ")
        if gap == "\n- " and self.gap in ("\n\n", "\n\n- "):
            gap = "\n\n- "
        if gap == "\n\n" and self.gap in ("\n- ", "\n\n- "):
            return  # a paragraph at the start of a list item
        self.gap = max(self.gap, gap, key=ranks.index)

    def add(self, text: str) -> None:
        """Append the text of a node."""
        text = clean(text)
        if self.open["pre"]:
            self._put(text.replace("\t", "    "))
            return
        if not text.strip():
            if text:
                self.separate(" ")
            return
        if text[0].isspace():
            self.separate(" ")
        self._put(" ".join(text.split()))
        if text[-1].isspace():
            self.separate(" ")

    def _put(self, text: str) -> None:
        if not text:
            return
        gap, self.gap = self.gap, ""
        if not self.pieces:
            gap = "- " if gap.endswith("- ") else ""
        self.pieces += (gap, text)

    def text(self) -> str:
        """Return the collected text."""
        lines = "\n".join(line.rstrip() for line in "".join(self.pieces).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", lines).strip("\n")


def _walk(root: Any, blocks: _Blocks) -> None:
    """Visit all nodes below a node; recursion would fail on deep pages."""
    _boundary(root.tag, blocks, entering=True)
    open_nodes = [(root.tag, root.iter(include_text=True))]
    while open_nodes:
        tag, children = open_nodes[-1]
        node = next(children, None)
        if node is None:
            open_nodes.pop()
            _boundary(tag, blocks, entering=False)
        elif node.is_text_node:
            blocks.add(node.text_content or "")
        elif node.is_element_node and not _is_noise(node):
            _boundary(node.tag, blocks, entering=True)
            open_nodes.append((node.tag, node.iter(include_text=True)))


def _is_noise(node: Any) -> bool:
    if node.tag in NOISE:
        return True
    attributes = node.attributes
    if not attributes:
        return False
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") in ("navigation", "search", "menu", "menubar")
        or bool(HIDDEN.search(attributes.get("style") or ""))
        or not CONTROLS.isdisjoint((attributes.get("class") or "").split())
    )


def _boundary(tag: str, blocks: _Blocks, entering: bool) -> None:
    """Request the separator at the start or the end of an element, and count open elements."""
    if tag in NESTED and not entering:
        blocks.open[NESTED[tag]] -= 1
    in_table, in_list = blocks.open["table"], blocks.open["list"]
    if tag == "table":
        blocks.separate("\n" if in_table or in_list else "\n\n")
    elif tag == "li" and entering and not in_table:
        blocks.separate("\n- ")
    elif tag in ("br", "dd") and entering:
        blocks.separate(" " if in_table else "\n")
    elif tag in ("td", "th") and not entering:
        blocks.separate(" | ")
    elif tag == "tr" or (tag in ("caption", "dt") and not entering):
        blocks.separate("\n")
    elif tag in BLOCKS:
        blocks.separate(" " if in_table else "\n" if in_list else "\n\n")
    if tag in NESTED and entering:
        blocks.open[NESTED[tag]] += 1
