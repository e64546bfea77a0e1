"""html: the text that a reader sees, block by block."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from longbird.applications.documents.characters import clean
from longbird.applications.documents.encoding import check_text, decode
from longbird.applications.documents.errors import NotTextError
from longbird.applications.documents.separate_process import Limits, Parsed

NOISE = frozenset(
    "head script style template noscript nav svg math iframe frame object embed canvas audio "
    "video map select button datalist textarea title rp dialog".split()
)
"""Elements that hold no text of the document."""

BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main ol p pre "
    "section summary table tbody tfoot thead ul".split()
)
"""Elements that begin a line of their own: a paragraph, if not within a list or a table."""

# Controls that MediaWiki and Sphinx put beside headings.
CONTROLS = frozenset(("mw-editsection", "headerlink"))

DECLARED = re.compile(
    rb"""<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*["']?([\w.:-]+)""", re.I
)
SELF_CLOSED = re.compile(r"<([A-Za-z][\w:.-]*)((?:\s[^<>]*)?)/>")
# What only XML has: declarations within the DOCTYPE, and text in which < is a letter. Both stop at
# the next beginning, so that a file of beginnings alone does not take minutes.
DECLARED_INSIDE = re.compile(r"\A(\s*<\?xml[^>]*>\s*)<!DOCTYPE[^>\[]*\[[^\]]*\]\s*>", re.I)
CDATA = re.compile(r"<!\[CDATA\[((?:(?!<!\[CDATA\[|\]\]>).)*)\]\]>", re.S)
VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()
)  # fmt: skip
HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)


def read(data: bytes, limits: Limits, encoding: str | None = None) -> Parsed:
    """A page as a document."""
    text, notes = page(data, encoding)
    if not text:
        raise NotTextError(
            "is html without any text that is shown: if scripts fill it in, save it from a "
            "browser first"
        )
    return Parsed(text, "html", notes=notes)


def page(data: bytes, encoding: str | None = None) -> tuple[str, list[str]]:
    """The text of a page, its paragraphs apart by an empty line, and notes on its encoding."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    if encoding is None:
        check_text(data)
    declared = DECLARED.search(data[:4096])
    source, notes = decode(data, encoding, declared[1].decode() if declared else None)
    if source[:200].lstrip().startswith("<?xml"):
        source = DECLARED_INSIDE.sub(r"\1", source)
        source = CDATA.sub(lambda found: escape(found[1], quote=False), source)
        source = SELF_CLOSED.sub(_opened, source)
    try:
        tree = LexborHTMLParser(source)
    except SelectolaxError as error:  # any text is html, and so this is all that can go wrong
        raise MemoryError from error
    found = _Text()
    if tree.body is not None:
        _walk(tree.body, found)
    text = found.text()
    title = tree.css_first("title")
    named = " ".join(clean(title.text()).split()) if title is not None else ""
    if named and named not in text[:2000]:
        text = f"{named}\n\n{text}" if text else ""
    return text, notes


def _opened(found: re.Match[str]) -> str:
    """`<title/>`, which is closed in XML, would never be closed in html."""
    name, attributes = found[1], found[2]
    return found[0] if name.lower() in VOID else f"<{name}{attributes}></{name}>"


class _Text:
    """Text as it is collected: what stands between two pieces is the widest of what was asked."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.gap = ""
        self.as_is = 0
        """Within how many `pre`."""
        self.tables = 0
        """Within how many tables: their rows are lines."""
        self.lists = 0

    def separate(self, gap: str) -> None:
        """Puts at least this before what comes next."""
        ranks = ("", " ", " | ", "\n", "\n- ", "\n\n", "\n\n- ")
        if gap == "\n- " and self.gap in ("\n\n", "\n\n- "):
            gap = "\n\n- "
        if gap == "\n\n" and self.gap in ("\n- ", "\n\n- "):
            return  # a paragraph at the beginning of an item
        self.gap = max(self.gap, gap, key=ranks.index)

    def add(self, text: str) -> None:
        text = clean(text)
        if self.as_is:
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
        whole = "".join(self.pieces)
        lines = "\n".join(line.rstrip() for line in whole.split("\n"))
        return re.sub(r"\n{3,}", "\n\n", lines).strip("\n")


def _walk(root: Any, found: _Text) -> None:
    """Visits all nodes below one, without recursion, which deep pages would break."""
    node, entering = root, True
    while True:
        is_root = node.mem_id == root.mem_id
        below = None
        if node.is_text_node:
            found.add(node.text_content or "")
        elif node.is_element_node and entering and (is_root or not _is_noise(node)):
            _enter(node.tag, found)
            below = node.child
            entering = below is not None
        if node.is_element_node and not entering:
            _leave(node.tag, found)
        if below is not None:
            node, entering = below, True
        elif is_root:
            return
        elif node.next is not None:
            node, entering = node.next, True
        else:
            node, entering = node.parent, False


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


def _enter(tag: str, found: _Text) -> None:
    if tag == "table":
        found.separate("\n" if found.tables or found.lists else "\n\n")
        found.tables += 1
    elif tag in ("ul", "ol"):
        found.separate(" " if found.tables else "\n" if found.lists else "\n\n")
        found.lists += 1
    elif tag == "li" and not found.tables:
        found.separate("\n- ")
    elif tag in ("br", "tr", "dd"):
        found.separate("\n" if tag == "tr" or not found.tables else " ")
    elif tag in BLOCKS:
        found.separate(_between(found))
    if tag == "pre":
        found.as_is += 1


def _leave(tag: str, found: _Text) -> None:
    if tag == "pre":
        found.as_is -= 1
    if tag == "table":
        found.tables -= 1
        found.separate("\n" if found.tables or found.lists else "\n\n")
    elif tag in ("ul", "ol"):
        found.lists -= 1
        found.separate(" " if found.tables else "\n" if found.lists else "\n\n")
    elif tag in ("td", "th"):
        found.separate(" | ")
    elif tag in ("caption", "tr"):
        found.separate("\n")
    elif tag == "dt":
        found.separate("\n")
    elif tag in BLOCKS:
        found.separate(_between(found))


def _between(found: _Text) -> str:
    """What stands between two blocks, by where they are."""
    return " " if found.tables else "\n" if found.lists else "\n\n"
