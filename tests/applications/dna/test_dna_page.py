"""The page for biologists: what it says to type is typed, in order, and does what it says."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longbird.applications.dna import default
from longbird.applications.dna.genomes import open_genome, read_features
from longbird.cli.app import app

PAGE = Path(__file__).parents[3] / "docs" / "dna.md"


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [text for its, text in found if its == language]


def call(line: str) -> str:
    program, *words = shlex.split(line)
    assert program == "longbird"
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.slow  # learns, and scans four times
def test_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [toy] = blocks("python")
    exec(compile(toy, str(PAGE), "exec"), {})
    lines = [line for text in blocks("") for line in text.splitlines() if line.startswith("longb")]
    own = [line for line in lines if " default " not in line]
    assert len(own) == 4
    assert len(lines) == 5
    said = {line: call(line) for line in own}

    assert "negatives: random" in next(x for line, x in said.items() if "evaluate" in line)
    figures: dict[str, Any] = json.loads(Path("toy-run/result.json").read_text())["metrics"]
    assert figures["validation"]["auroc"] > 0.9
    with open_genome("new.fa") as opened:
        found, known = (read_features(x, opened) for x in ("promoters.bed", "new-starts.bed"))
    near = [
        any(
            each.interval.strand == start.interval.strand
            and abs(each.interval.start - start.interval.start) <= 3
            for each in found
        )
        for start in known
    ]
    assert sum(near) > 0.8 * len(near)  # most starts have a call, and most calls have a start
    assert len(found) < 1.5 * len(known)
    assert Path("new.png").read_bytes()[:4] == b"\x89PNG"
    assert Path("promoters.bw").stat().st_size

    # What ships, on a genome with the name that the page uses; if there is none, another model.
    if not (default.SHIPPED / default.PROMOTER / "model.safetensors").is_file():
        shutil.copytree("toy-run/model", "shipped/promoter")
        monkeypatch.setattr(default, "SHIPPED", Path("shipped"))
    bases = Path("toy.fa").read_text().splitlines()[1]
    Path("genome.fa").write_text(f">chr1\n{bases}\n")
    [line] = [line for line in lines if line not in own]
    call(line.replace("10001-14000", "10001-10200"))
    assert Path("promoters.png").read_bytes()[:4] == b"\x89PNG"
