"""What the site has beyond Markdown: public names by room, fields of configurations, links out.

`{room} graph` documents all names that `longbird/__init__.pyi` takes from `longbird.core.graph`.
`{fields} LongbirdConfig` makes a table of a configuration from its fields and its docstring.
A build warns of public names that no page documents, and lists all links to other sites in
`external-links.txt`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import GoogleDocstring
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import longbird

log = logging.getLogger(__name__)


def rooms() -> dict[str, list[str]]:
    """The public names by the room that they come from, as the stub has them."""
    found: dict[str, list[str]] = {}
    stub = ast.parse(Path(longbird.__file__).with_suffix(".pyi").read_text())
    for line in stub.body:
        if isinstance(line, ast.ImportFrom) and line.module:
            names = found.setdefault(line.module.partition(".")[0], [])
            names += [alias.name for alias in line.names]
    return found


def meanings(cls: type) -> dict[str, str]:
    """What the docstrings of a class and of those that it inherits from say of each argument."""
    found: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        if not owner.__module__.startswith("longbird"):
            continue
        text = inspect.cleandoc(owner.__doc__ or "")
        section = re.search(r"^Args:\n((?:    .*\n|\n)+)", text + "\n", re.MULTILINE)
        for name, words in re.findall(
            r"^    (\w+): (.*(?:\n {5,}.*)*)", section[1] if section else "", re.MULTILINE
        ):
            found[name] = " ".join(words.split())
    return found


def summary(cls: type) -> str:
    """A docstring without its list of arguments."""
    text = inspect.cleandoc(cls.__doc__ or "")
    return re.sub(r"^Args:\n(?:    .*\n|\n)+", "", text + "\n", flags=re.MULTILINE)


def default_text(field: dataclasses.Field[Any]) -> str:
    """The default of a field; a function that makes it is shown as a call."""
    factory = field.default_factory
    if factory is not dataclasses.MISSING:
        return f"{getattr(factory, '__name__', factory)}()"
    return repr(field.default)


def field_rows(cls: Any) -> list[tuple[str, str, str, str]]:
    """Name, type, default and meaning of the fields that a class declares itself."""
    words, own = meanings(cls), vars(cls)["__annotations__"]
    return [
        (field.name, str(field.type), default_text(field), words.get(field.name, ""))
        for field in dataclasses.fields(cls)
        if field.name in own
    ]


class Rst(SphinxDirective):
    """A directive that writes reStructuredText into a page of Markdown."""

    required_arguments = 1

    def parse(self, lines: list[str]) -> list[nodes.Node]:
        """The nodes of these lines."""
        return self.parse_text_to_nodes(
            "\n".join(["``````{eval-rst}", *lines, "``````"]), allow_section_headings=True
        )


class Room(Rst):
    """The public names of a room."""

    def run(self) -> list[nodes.Node]:
        """One entry of autodoc for each name."""
        lines: list[str] = []
        for name in rooms()[self.arguments[0]]:
            value = getattr(longbird, name)
            if dataclasses.is_dataclass(value) and hasattr(value, "model_type"):
                continue  # a configuration: `fields` documents it
            kind = "class" if inspect.isclass(value) else "function"
            lines += [f".. auto{kind}:: longbird.{name}", ""]
        return self.parse(lines)


class Fields(Rst):
    """A configuration: its docstring, and a table of its fields."""

    def run(self) -> list[nodes.Node]:
        """A class of which the table is the signature."""
        name = self.arguments[0]
        cls = getattr(longbird, name)
        lines = [f".. py:class:: longbird.{name}(**fields)", ""]
        lines += [f"   {line}" for line in GoogleDocstring(summary(cls), self.config).lines()]
        lines += ["", "   .. list-table::", "      :header-rows: 1", "      :widths: auto", ""]
        for row in [("field", "type", "default", "meaning"), *field_rows(cls)]:
            if not row[3]:
                log.warning(f"the docstring of longbird.{name} does not say what {row[0]} means")
            cells = row if row[0] == "field" else (*(f"``{cell}``" for cell in row[:3]), row[3])
            for number, cell in enumerate(cells):
                lines.append(f"      {'* -' if number == 0 else '  -'} {cell}")
        return self.parse(lines)


def check_names(app: Sphinx, env: Any) -> None:
    """Warns of public names that no page documents."""
    documented = env.get_domain("py").objects
    for name in longbird.__all__:
        if f"longbird.{name}" not in documented:
            log.warning(f"longbird.{name} is public, and docs/reference.md has no room for it")


def list_external_links(app: Sphinx, error: Exception | None) -> None:
    """Writes external-links.txt: they are for a reader to try, not for a build to fetch."""
    links: set[str] = set()
    for page in app.env.found_docs if error is None else ():
        for node in app.env.get_doctree(page).findall(nodes.reference):
            if node.get("refuri", "").startswith("http"):
                links.add(node["refuri"])
    (Path(app.outdir) / "external-links.txt").write_text("".join(f"{x}\n" for x in sorted(links)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("room", Room)
    app.add_directive("fields", Fields)
    app.connect("env-check-consistency", check_names)
    app.connect("build-finished", list_external_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
