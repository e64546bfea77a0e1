"""No page of the documentation has a name under which Sphinx writes a page of its own."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
GENERATED = {"search", "genindex", "py-modindex", "modindex", "searchindex", "objects"}
"""Names of the files that Sphinx generates at the root of the site, without their endings."""


def test_no_page_is_overwritten_by_a_page_of_sphinx() -> None:
    pages = {page.stem for page in DOCS.iterdir() if page.suffix in (".md", ".rst")}
    assert "index" in pages
    assert not pages & GENERATED
