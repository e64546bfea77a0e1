"""`longbird graph`: see what attends to what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from longbird.cli.graph_argument import HELP, parse_graph
from longbird.draw import picture
from longbird.graph.base import Graph

# Characters across: fits into 80 columns and, being half as many lines, onto most screens.
WIDEST = 72

console = Console()
graph_app = typer.Typer(no_args_is_help=True, help="See what attends to what.")


@graph_app.callback()
def _group() -> None:
    """Keeps `show` a subcommand of its own while it is the only one."""


@graph_app.command()
def show(
    graph: Annotated[str, typer.Argument(help=HELP)],
    n: Annotated[int, typer.Option("-n", "--tokens", help="Tokens.", min=1)] = 512,
    heads: Annotated[int, typer.Option(help="Heads that the graph is laid out for.", min=1)] = 1,
    head: Annotated[int, typer.Option(help="The head to draw.", min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Also write a picture: a .png, .svg or .pdf file."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the graph as JSON instead of drawing it.")
    ] = False,
) -> None:
    """Draw the adjacency picture of a graph: queries down, keys across."""
    parsed = parse_graph(graph)
    if json:
        typer.echo(parsed.to_json())
        return
    draw_in_terminal(console, parsed, n, heads=heads, head=head, name=graph)
    if out is not None:
        picture(parsed, n, heads=heads, head=head, name=graph).save(out)
        console.print(f"Wrote {out}", highlight=False, markup=False)


def draw_in_terminal(
    console: Console, graph: Graph, n: int, *, heads: int = 1, head: int = 0, name: str
) -> None:
    """Prints the picture, what it shows, and what the colours mean."""
    ascii_only = console.options.ascii_only
    characters = min(console.width, WIDEST)
    pixels = characters if ascii_only else 2 * characters
    drawn = picture(graph, n, heads=heads, head=head, pixels=pixels, name=name)
    console.print(drawn.title[0], highlight=False, markup=False)
    console.print(drawn.title[1], highlight=False, markup=False)
    console.print(drawn.text(ascii_only=ascii_only), end="")
    console.print(drawn.legend(ascii_only=ascii_only))
