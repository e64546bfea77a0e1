"""Output of a picture of a graph as characters, as SVG and as a file."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.text import Text

from longbird.core.graph.rules import Positions
from longbird.files.paths import check_picture

# In the order of the legend; colours that can be distinguished by the colour-blind (Okabe-Ito).
COLOURS = {
    "window": "#0072b2",
    "random": "#e69f00",
    "legacy": "#e69f00",
    "edges": "#cc79a7",
    "global": "#009e73",
}


# For other kinds, in the order of their appearance.
SPARE_COLOURS = ("#56b4e9", "#d55e00", "#f0e442", "#000000")


@dataclass(frozen=True)
class Picture:
    """One head of a graph, as the share of the pairs under each pixel that are edges.

    Attributes:
        title: Name of the graph, and its edges, density and tiles.
        n: Number of tokens.
        layers: Shares from 0 to 1 by kind of edge, in the order of the legend: float [pixels,
            pixels], with queries as rows and keys as columns.
    """

    title: tuple[str, str]
    n: int
    layers: dict[str, npt.NDArray[np.float64]]

    def __repr__(self) -> str:
        """Return the title, for when a picture cannot be shown."""
        return "\n".join(self.title)

    @property
    def colours(self) -> dict[str, str]:
        """Colour of each kind."""
        others = [kind for kind in self.layers if kind not in COLOURS]
        spare = {kind: SPARE_COLOURS[k % len(SPARE_COLOURS)] for k, kind in enumerate(others)}
        return {kind: COLOURS.get(kind) or spare[kind] for kind in self.layers}

    def save(self, path: str | Path) -> None:
        """Write a PNG, SVG or PDF file, according to the extension of its name."""
        # Importing matplotlib takes a second, which only saving a picture should cost.
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch

        check_picture(path)
        figure = Figure(figsize=(6.4, 7.0), layout="constrained")
        axes = figure.add_subplot()
        # Above the frame, which would hide the first and the last tokens.
        axes.spines[:].set_color("silver")
        extent = (0, self.n, self.n, 0)
        axes.imshow(self._painted(), extent=extent, interpolation="nearest", zorder=3)
        name, numbers = textwrap.shorten(self.title[0], 80), textwrap.fill(self.title[1], 70)
        size = 14 if len(name) <= 40 else 9
        figure.suptitle(name, fontsize=size, fontweight="bold")
        axes.set_title(numbers, fontsize=10, color="#555555", pad=10)
        axes.set_xlabel("key", fontsize=12)
        axes.set_ylabel("query", fontsize=12)
        ticks = [k * self.n // 4 for k in range(5)] if self.n % 4 == 0 else [0, self.n]
        labels = [f"{tick:,}" for tick in ticks]
        axes.set_xticks(ticks, labels)
        axes.set_yticks(ticks, labels)
        axes.tick_params(colors="#555555", labelsize=10)
        patches = [Patch(facecolor=colour, label=kind) for kind, colour in self.colours.items()]
        figure.legend(
            handles=patches,
            loc="outside lower center",
            ncols=5,
            frameon=False,
            fontsize=12,
            handlelength=1,
            handleheight=1,
        )
        figure.savefig(path, dpi=160)

    def _painted(self) -> npt.NDArray[np.float64]:
        from matplotlib.colors import to_rgb

        kind, opacity = self._cells()
        colours = np.array([to_rgb(self.colours[kind]) for kind in self._rarest_last()])
        return 1 - opacity[..., None] * (1 - colours[kind])

    def _rarest_last(self) -> list[str]:
        """Return the kinds in drawing order, with rare ones on top."""
        return sorted(self.layers, key=lambda kind: -self.layers[kind].sum())

    def _cells(self) -> tuple[Positions, npt.NDArray[np.float64]]:
        """Return the number of the rarest kind with an edge in each pixel, and its opacity.

        Colours are not mixed, because thin lines would disappear in what they cross.
        """
        shares = np.stack([_grown(self.layers[kind]) for kind in self._rarest_last()])
        rarest = len(shares) - 1 - np.argmax(shares[::-1] > 0, axis=0)
        share = shares.max(axis=0)
        # Visible wherever there is an edge, and more opaque where there are more.
        opacity = FAINTEST + (1 - FAINTEST) * np.sqrt(share)
        return rarest, np.where(share > 0, opacity, 0.0)

    def text(self, *, ascii_only: bool = False) -> Text:
        """Return the picture in characters, with a dot wherever there is an edge.

        If the terminal has colours, they distinguish the kinds.

        Args:
            ascii_only: Whether to draw with `#` instead of braille, at a lower resolution.
        """
        kinds, colours = self._rarest_last(), self.colours
        shares = np.stack([self.layers[kind] for kind in kinds])
        down, across = (2, 1) if ascii_only else (4, 2)
        shares = np.pad(
            shares,
            ((0, 0), (0, -shares.shape[1] % down), (0, -shares.shape[2] % across)),
        )
        cells = shares.reshape(
            len(kinds), shares.shape[1] // down, down, shares.shape[2] // across, across
        ).transpose(1, 3, 0, 2, 4)
        dots = (cells > 0).any(axis=2)
        # A character has the colour of its rarest kind, as in the saved picture.
        present = (cells > 0).any(axis=(3, 4))
        colour = len(kinds) - 1 - np.argmax(present[..., ::-1], axis=-1)
        drawn = Text()
        for row in range(len(dots)):
            for column in range(len(dots[row])):
                if ascii_only:
                    character = "#" if dots[row, column].any() else "."
                else:
                    character = chr(0x2800 + int((dots[row, column] * BRAILLE).sum()))
                style = colours[kinds[colour[row, column]]] if dots[row, column].any() else ""
                drawn.append(character, style)
            drawn.append("\n")
        return drawn

    def legend(self, *, ascii_only: bool = False) -> Text:
        """Return the legend: the kinds of edges in their colours."""
        mark = "#" if ascii_only else "■"
        colours = self.colours.items()
        return Text("  ").join(Text(f"{mark} {kind}", colour) for kind, colour in colours)

    def _repr_svg_(self) -> str:
        """Return the picture as SVG, with a rectangle for each run of equal pixels."""
        pixels = len(next(iter(self.layers.values())))
        drawn: list[str] = []
        rarest, opacity = self._cells()
        levels = np.ceil(opacity * OPACITIES).astype(int)
        for number, kind in enumerate(self._rarest_last()):
            here = np.where(rarest == number, levels, 0)
            for level in np.unique(here[here > 0]):
                edge = np.diff(np.pad(here == level, ((0, 0), (1, 1))).astype(np.int8))
                (y, begin), (_, end) = np.nonzero(edge == 1), np.nonzero(edge == -1)
                runs = zip(begin.tolist(), y.tolist(), (end - begin).tolist(), strict=True)
                path = "".join(f"M{x} {y}h{width}v1h-{width}z" for x, y, width in runs)
                fill = f'fill="{self.colours[kind]}" fill-opacity="{level / OPACITIES:.3g}"'
                drawn.append(f'<path {fill} d="{path}"/>')
        legend = "  ".join(
            f'<tspan fill="{colour}">■</tspan> {html.escape(kind)}'
            for kind, colour in self.colours.items()
        )
        title = html.escape(textwrap.shorten(self.title[0], 72))
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" width="440" height="480" '
            'viewBox="0 0 440 480" font-family="sans-serif" font-size="11">'
            '<rect width="440" height="480" fill="white"/>'
            f'<text x="20" y="16">{title}</text>'
            f'<text x="20" y="32" font-size="10">{html.escape(self.title[1])}</text>'
            '<rect x="19.5" y="41.5" width="401" height="401" fill="none" stroke="silver"/>'
            f'<g transform="translate(20 42) scale({400 / pixels:.6g})" '
            f'shape-rendering="crispEdges">{"".join(drawn)}</g>'
            f'<text x="20" y="460" xml:space="preserve">{legend}</text></svg>'
        )


def _grown(shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return a layer with few pixels as larger dots, because single pixels are easily missed."""
    pixels = len(shares)
    some = np.argwhere(shares)
    if len(some) > pixels // 8:
        return shares
    grown, radius = shares.copy(), pixels // 128
    # At the border, dots are moved inside.
    for row, column in np.clip(some, radius, pixels - 1 - radius).tolist():
        grown[row - radius : row + radius + 1, column - radius : column + radius + 1] = 1.0
    return grown


# Opacity of a pixel with a single edge, and number of opacities in notebooks.
FAINTEST = 0.5


OPACITIES = 16


# Bits of the dots of a braille character.
BRAILLE = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
