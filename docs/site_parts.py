"""Sphinx directives for the parts of the site that are generated from the code.

`{names} core.graph` documents the public names that `longbird/__init__.pyi` imports from
`longbird.core.graph`. Patterns such as `core.operator.*` are allowed, also several of them.
`{fields} LongbirdConfig` creates a table of the fields of a configuration from its docstring.
`{options} ClassifySettings` creates a table of the options of a task: those of all tasks for
`FileSettings`, and otherwise those that only this task has, or that have another default for it.
The build warns about public names that no page documents, and writes all links to other sites to
`external-links.txt`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import GoogleDocstring
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import longbird

logger = logging.getLogger(__name__)


def public_names() -> dict[str, list[str]]:
    """Return the public names by the module that the stub imports them from."""
    names_by_module: dict[str, list[str]] = {}
    stub = ast.parse(Path(longbird.__file__).with_suffix(".pyi").read_text())
    for statement in stub.body:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            names = names_by_module.setdefault(statement.module, [])
            names += [alias.name for alias in statement.names]
    return names_by_module


def argument_descriptions(cls: type) -> dict[str, str]:
    """Return the description of each argument from the docstrings of a class and its bases."""
    descriptions: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        if not owner.__module__.startswith("longbird"):
            continue
        text = inspect.cleandoc(owner.__doc__ or "")
        section = re.search(r"^Args:\n((?:    .*\n|\n)+)", text + "\n", re.MULTILINE)
        for name, description in re.findall(
            r"^    (\w+): (.*(?:\n {5,}.*)*)", section[1] if section else "", re.MULTILINE
        ):
            descriptions[name] = " ".join(description.split())
    return descriptions


def summary(cls: type) -> str:
    """Return the docstring of a class without its list of arguments."""
    text = inspect.cleandoc(cls.__doc__ or "")
    return re.sub(r"^Args:\n(?:    .*\n|\n)+", "", text + "\n", flags=re.MULTILINE)


def default_text(field: dataclasses.Field[Any]) -> str:
    """Format the default value of a field; a default factory is shown as a call."""
    factory = field.default_factory
    if factory is not dataclasses.MISSING:
        return f"{getattr(factory, '__name__', factory)}()"
    return repr(field.default)


def field_rows(cls: Any) -> list[tuple[str, str, str, str]]:
    """Return name, type, default and meaning of each field that a class itself declares."""
    descriptions, own = argument_descriptions(cls), vars(cls)["__annotations__"]
    return [
        (field.name, str(field.type), default_text(field), descriptions.get(field.name, ""))
        for field in dataclasses.fields(cls)
        if field.name in own
    ]


class GeneratedDirective(SphinxDirective):
    """Base class of directives that insert reStructuredText into a Markdown page."""

    required_arguments = 1

    def parse(self, lines: list[str]) -> list[nodes.Node]:
        """Parse lines of reStructuredText."""
        return self.parse_text_to_nodes(
            "\n".join(["``````{eval-rst}", *lines, "``````"]), allow_section_headings=True
        )


class NamesDirective(GeneratedDirective):
    """Document the public names of the modules that match one of the given patterns."""

    optional_arguments = 9

    def run(self) -> list[nodes.Node]:
        """Create one autodoc entry for each name."""
        lines: list[str] = []
        for pattern in self.arguments:
            matching = [m for m in public_names() if fnmatch(m, pattern)]
            if not matching:
                logger.warning(
                    f"no public name comes from {pattern}", location=self.get_location()
                )
            for name in (name for module in matching for name in public_names()[module]):
                value = getattr(longbird, name)
                if dataclasses.is_dataclass(value) and hasattr(value, "model_type"):
                    continue  # `fields` documents configurations.
                kind = "class" if inspect.isclass(value) else "function"
                lines += [f".. auto{kind}:: longbird.{name}", ""]
        return self.parse(lines)


class FieldsDirective(GeneratedDirective):
    """Document a configuration with its docstring and a table of its fields."""

    def run(self) -> list[nodes.Node]:
        """Create a class description that contains the table."""
        name = self.arguments[0]
        cls = getattr(longbird, name)
        lines = [f".. py:class:: longbird.{name}(**fields)", ""]
        lines += [f"   {line}" for line in GoogleDocstring(summary(cls), self.config).lines()]
        lines += ["", "   .. list-table::", "      :header-rows: 1", "      :widths: auto", ""]
        for row in [("field", "type", "default", "meaning"), *field_rows(cls)]:
            if not row[3]:
                logger.warning(f"the docstring of longbird.{name} does not describe {row[0]}")
            cells = row if row[0] == "field" else (*(f"``{cell}``" for cell in row[:3]), row[3])
            for number, cell in enumerate(cells):
                lines.append(f"      {'* -' if number == 0 else '  -'} {cell}")
        return self.parse(lines)


def option_rows(name: str) -> list[tuple[str, str, str, str]]:
    """Return name, type, default and meaning of the options of a settings class."""
    from longbird.applications.dna import settings as dna
    from longbird.applications.training.settings import groups, tasks
    from longbird.applications.training.settings.definition import options_of

    cls = next(vars(module)[name] for module in (groups, tasks, dna) if name in vars(module))
    shared = {} if cls is groups.FileSettings else options_of(groups.FileSettings)
    return [
        (
            option.name,
            f"{option.kind.__name__}{', repeatable' if option.several else ''}",
            option.default_text or "",
            option.help,
        )
        for option in options_of(cls).values()
        if option.name not in shared or shared[option.name].default != option.default
    ]


class OptionsDirective(GeneratedDirective):
    """Document the options of a task as a table."""

    def run(self) -> list[nodes.Node]:
        """Create the table."""
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: auto", ""]
        for row in [("option", "type", "default", "meaning"), *option_rows(self.arguments[0])]:
            name, kind, default, meaning = row
            if name != "option":
                name, default = f"``{name}``", default and f"``{default}``"
            for number, cell in enumerate((name, kind, default, meaning)):
                lines.append(f"   {'* -' if number == 0 else '  -'} {cell}")
        return self.parse(lines)


def check_names(_app: Sphinx, env: Any) -> None:
    """Warn about public names that no page documents."""
    documented = env.get_domain("py").objects
    for name in longbird.__all__:
        if f"longbird.{name}" not in documented:
            logger.warning(f"longbird.{name} is public, but no page documents it")


def list_external_links(app: Sphinx, error: Exception | None) -> None:
    """Write external-links.txt, because the build does not access the network to check links."""
    links: set[str] = set()
    for page in app.env.found_docs if error is None else ():
        for node in app.env.get_doctree(page).findall(nodes.reference):
            if node.get("refuri", "").startswith("http"):
                links.add(node["refuri"])
    (Path(app.outdir) / "external-links.txt").write_text("".join(f"{x}\n" for x in sorted(links)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives and checks with Sphinx."""
    app.add_directive("names", NamesDirective)
    app.add_directive("fields", FieldsDirective)
    app.add_directive("options", OptionsDirective)
    app.connect("env-check-consistency", check_names)
    app.connect("build-finished", list_external_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
