"""A picture of contextual mappings: the codes of all tokens, and those that collide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from longbird.theory.universality import Report

# Colours that colour-blind eyes tell apart (Okabe-Ito).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#f0e442")
COLLISION = "#d55e00"


def draw(reports: Sequence[Report], path: str | Path) -> None:
    """Writes a PNG, SVG or PDF file, by the ending of its name: a panel for each report.

    Sequences are across, in lexicographic order; a dot is the code of a token. What shares its
    code with another is ringed.

    Raises:
        ValueError: The name has another ending.
    """
    from matplotlib.figure import Figure

    if Path(path).suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(
            f"received {str(path)!r} to write a picture to, expected a name that ends in .png, "
            ".svg or .pdf"
        )
    figure = Figure(figsize=(1 + 5 * len(reports), 4.6), layout="constrained")
    for axes, report in zip(
        figure.subplots(1, len(reports), squeeze=False)[0], reports, strict=True
    ):
        owners = Counter(code for result in report.results.values() for code in result.codes)
        for token in range(report.construction.n):
            codes = [result.codes[token] for result in report.results.values()]
            heights = [float(code) for code in codes]
            colour = COLOURS[token % len(COLOURS)]
            axes.scatter(
                range(len(codes)), heights, s=14, color=colour, label=f"token {token + 1}"
            )
            shared = [place for place, code in enumerate(codes) if owners[code] > 1]
            axes.scatter(
                shared,
                [heights[place] for place in shared],
                s=70,
                facecolors="none",
                edgecolors=COLLISION,
                label="the same code as another" if token == 0 and shared else None,
            )
        star = "no star" if report.centre is None else f"star around token {report.centre}"
        axes.set_title(
            f"{report.graph!r:.60}\n{star}: {report.distinct} codes of {owners.total()}"
        )
        axes.set(xlabel="sequence, in lexicographic order", ylabel="code")
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
