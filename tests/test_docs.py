"""The documentation holds: its code runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

import longbird as lb
from longbird.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in re.finditer(r"^```([^\n`]*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield Block(page, text[: found.start(2)].count("\n") + 1, found[1], found[2])


BLOCKS = [block for page in PAGES for block in blocks(page)]
PYTHON = [block for block in BLOCKS if block.language == "python"]
COMMANDS = [
    (block, line.strip())
    for block in BLOCKS
    if block.language in ("", "bash", "console")
    for line in block.text.splitlines()
    if line.startswith(("longbird ", "make ", "pytest ", "python "))
]


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_every_block_runs_by_itself(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no names but Python's own, in an empty folder: as a reader would paste it."""
    monkeypatch.chdir(tmp_path)
    code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec")
    exec(code, {"__name__": "__main__"})


def test_there_is_something_to_run() -> None:
    assert len(PYTHON) > 20
    assert len(COMMANDS) > 20


@pytest.mark.parametrize(("block", "line"), COMMANDS, ids=lambda value: str(value))
def test_commands_exist(block: Block, line: str) -> None:
    """Subcommands, options and the types of their values; nothing is run."""
    program, *words = shlex.split(line, comments=True)
    words = words[: words.index(">")] if ">" in words else words
    if program == "make":
        assert not [word for word in words if missing_target(word)]
    elif program == "pytest":
        assert not [word for word in words if missing_path(word)]
    elif program == "python":
        file = words[1].replace(".", "/") if words[0] == "-m" else words[0]
        assert (ROOT / file).exists() or importlib.util.find_spec(words[1].partition(".")[0])
    else:
        parse(words)


def parse(words: list[str]) -> None:
    """Raises what the command line raises for a subcommand, option or value that is not known."""
    command: Any = typer.main.get_command(app)
    context = command.context_class(command)
    while hasattr(command, "resolve_command"):
        name, command, words = command.resolve_command(context, words)
        context = command.context_class(command, parent=context, info_name=name)
    command.parse_args(context, words)


@pytest.mark.parametrize(
    "line", ["no-such", "graph shw", "check bigbird --no-such", "check bigbird -n x", "convert a"]
)
def test_commands_that_do_not_exist_are_found_out(line: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no such|missing|valid integer"):
        parse(line.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", prose(page)):
        if "://" in target or target.startswith("mailto:"):
            continue
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name} links to {target}#{anchor}"


def prose(page: Path) -> str:
    """A page without its code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page: Path) -> set[str]:
    """What the headings of a page can be linked by, as GitHub and the site name them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_package_is_in_the_architecture() -> None:
    """Every layer of every import-linter contract is explained on the page."""
    text = (ROOT / "pyproject.toml").read_text()
    contracts = re.findall(r"^layers = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    assert len(contracts) >= 3
    names = set(re.findall(r"\w+", " ".join(contracts)))
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert not {name for name in names if not re.search(rf"`([\w.]+\.)?{name}`", page)}


# The changelog and the decision records describe what was true at their time.
CURRENT = [page for page in PAGES if page.stem != "CHANGELOG" and page.parent.name != "adr"]


def inline_code(page: Path) -> list[str]:
    """Return the pieces of code within the prose of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", text)


FOLDERS = "src|csrc|tests|docs|recipes|experiments|benchmarks|examples|\\.ci|\\.github"


def missing_path(code: str) -> str | None:
    """Return the path that a piece of code consists of, if the repository does not contain it."""
    if not re.fullmatch(rf"({FOLDERS})/[\w./*-]*", code) or list(ROOT.glob(code.rstrip("/"))):
        return None
    return code


def missing_module(code: str) -> str | None:
    """Return the dotted name that a piece of code begins with, if the package has no such name."""
    match = re.match(r"longbird(\.\w+)+", code)
    if match is None:
        return None
    value: Any = lb
    for depth, name in enumerate(match[0].split(".")[1:], 2):
        module = ".".join(match[0].split(".")[:depth])
        if importlib.util.find_spec(module) if hasattr(value, "__path__") else None:
            value = importlib.import_module(module)
        elif hasattr(value, name):
            value = getattr(value, name)
        else:
            return match[0]
    return None


def missing_target(word: str) -> str | None:
    """Return a target of `make`, if the Makefile has no rule for it."""
    rules = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    if "=" in word or word in rules:
        return None
    part = word.removeprefix("test-")
    folders = (ROOT / "tests" / part, ROOT / "src" / "longbird" / part)
    return None if part != word and any(folder.exists() for folder in folders) else word


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_modules_and_targets_exist(page: Path) -> None:
    codes = inline_code(page)
    targets = [word for code in codes if code.startswith("make ") for word in code.split()[1:]]
    missing = [*map(missing_path, codes), *map(missing_module, codes)]
    missing += map(missing_target, targets)
    assert not [name for name in missing if name]


def test_unreleased_changes_name_what_exists(tmp_path: Path) -> None:
    """Later sections of the changelog describe what was true at their time."""
    text = (ROOT / "CHANGELOG.md").read_text()
    (page := tmp_path / "unreleased.md").write_text(text[: text.index("\n## [0.2.0]")])
    codes = inline_code(page)
    missing = [*map(missing_path, codes), *map(missing_module, codes)]
    assert not [name for name in missing if name]


def test_missing_paths_modules_and_targets_are_found() -> None:
    assert missing_path("tests/ops")
    assert not missing_path("tests/core")
    assert not missing_path("csrc/attention_*.cpp")
    assert missing_path("csrc/no_*.cpp")
    assert missing_module("longbird.tasks.TASKS")
    assert missing_module("longbird.bigbird.no_such")
    assert not missing_module("longbird.core.graph")
    assert not missing_module("longbird.bigbird()")
    assert not missing_module("longbird.LongbirdModel.forward")
    assert missing_target("test-nn")
    assert not missing_target("test-core/graph")
    assert missing_target("no-such")
    assert not missing_target("lint")


class Resources(HTMLParser):
    """What a browser loads to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = {"link": "href", "script": "src", "img": "src", "iframe": "src"}.get(tag)
        self.found += [value or "" for key, value in attrs if key == name]


@pytest.mark.slow  # half a minute
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

    # It can be read without a network.
    for page in tmp_path.rglob("*.html"):
        parser = Resources()
        parser.feed(page.read_text())
        assert parser.found, page
        assert not [url for url in parser.found if "//" in url], page

    # Every page is there: Sphinx replaces some silently, such as search.html, with its own.
    for source in (ROOT / "docs").rglob("*.md"):
        html = (tmp_path / source.relative_to(ROOT / "docs")).with_suffix(".html").read_text()
        heading = re.match(r"# ([\w ]+)", source.read_text())
        assert heading is None or f"<h1>{heading[1]}" in html, source
        assert "site.css" in html, source  # code blocks wrap instead of being cut off

    reference = "".join(page.read_text() for page in tmp_path.glob("*.html"))
    for name in lb.__all__:
        assert f'id="longbird.{name}"' in reference
    configuration = (tmp_path / "configuration.html").read_text()
    for field in ("graph", "hidden_size", "num_global_tokens"):
        assert f">{field}</span>" in configuration
    assert "https://" in (tmp_path / "external-links.txt").read_text()
