"""The page about pretraining holds: its commands run, one after the other, at tiny sizes."""

from __future__ import annotations

import csv
import json
import random
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longbird.cli.app import app

PAGE = Path(__file__).parents[3] / "docs" / "pretraining.md"
SMALLER = {
    "--vocabulary 30000": "--vocabulary 120",
    "scratch:small": "scratch:tiny",
    "--length 4096": "--length 64 --tokens-per-batch 400",
    "--epochs 10": "--epochs 1",
}
WORDS = "afon bont môr llong haul glaw eira gwynt mynydd coed tŷ ffordd llyfr gair".split()


@pytest.mark.slow(reason="eight commands, of which three train")
def test_from_raw_text_to_a_classifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    drawn = random.Random(0)

    def text(words: list[str] = WORDS) -> str:
        return " ".join(drawn.choices(words, k=drawn.randint(5, 150)))

    for folder, count in (("corpus", 12), ("held-out", 4)):
        Path(folder).mkdir()
        for number in range(count):
            Path(folder, f"{number}.txt").write_text(text())
    for file, count in (("letters.csv", 20), ("letters-test.csv", 6)):
        with Path(file).open("w", newline="") as opened:
            writer = csv.writer(opened)
            writer.writerow(["text", "label"])
            writer.writerows(
                (text(WORDS[:7] if x % 2 else WORDS[7:]), ["tir", "môr"][x % 2])
                for x in range(count)
            )
    Path("letter.txt").write_text(text())

    page = "\n".join(re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(), re.S | re.M))
    for large, small in SMALLER.items():
        assert large in page
        page = page.replace(large, small)
    printed = {}
    for line in filter(None, page.splitlines()):
        done = CliRunner().invoke(app, shlex.split(line)[1:], catch_exceptions=False)
        assert done.exit_code == 0, f"{line}\n{done.output}"
        printed[line] = done.stdout
    assert len(printed) == 8
    found = {line: json.loads(out) for line, out in printed.items() if "--json" in line}
    masked, causal, labels = found.values()
    assert masked["documents"] == causal["documents"] == 4
    assert {"pseudo_perplexity", "pseudo_bits_per_byte"} <= masked["intervals"].keys()
    assert 0 < causal["bits_per_byte"] < 8
    assert labels[0]["label"] in ("môr", "tir")
