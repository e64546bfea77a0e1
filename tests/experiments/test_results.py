"""Recorded results are small and complete, and contain the figures that the README quotes."""

from __future__ import annotations

import re

import pytest

from experiments import CHECKOUT

RESULTS = CHECKOUT / "experiments" / "results"
INDEX = (RESULTS / "README.md").read_text()
README = (CHECKOUT / "README.md").read_text()
ROWS = re.findall(r"^\| (.+) \| (.+) \| \[.+\]\((.+)\) \|$", INDEX, re.MULTILINE)


def test_every_run_is_a_page_a_picture_and_a_file_of_figures() -> None:
    runs = {path.stem for path in RESULTS.iterdir()} - {"README"}
    expected = {f"{run}.{ending}" for run in runs for ending in ("md", "png", "json")}
    assert {path.name for path in RESULTS.iterdir()} == expected | {"README.md"}


def test_runs_are_small() -> None:
    for path in RESULTS.iterdir():
        assert path.stat().st_size <= 100_000, path.name


@pytest.mark.parametrize(("quoted", "printed", "run"), ROWS)
def test_figures_are_in_the_run(quoted: str, printed: str, run: str) -> None:
    page = (RESULTS / run).read_text()
    for figure in printed.split(", "):
        assert re.search(rf"(?<![\d.,]){re.escape(figure)}", page), (quoted, figure)


def test_every_figure_of_speed_in_the_readme_is_in_the_index() -> None:
    section = README[README.index("\n## Speed") : README.index("\n## When not to use it")]
    prose = re.sub(r"\]\([^)]*\)", "]", section)
    prose = prose.replace("12 heads of 64 channels and blocks of 64 tokens", "")
    prose = prose.replace("eight separate chunks of 512", "").replace("MiniLM on 4,096", "")
    figures = re.findall(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?", prose)
    quoted = " ".join(row[0] for row in ROWS)
    known = set(re.findall(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?", quoted))
    assert len(figures) > 20
    assert not {figure.rstrip(",") for figure in figures} - {each.rstrip(",") for each in known}
    assert "takes 42 ms, and dense attention takes 331 ms" in README
    assert "62% of the answers" in README
