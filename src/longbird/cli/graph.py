"""`longbird graph`: draw and measure graphs."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longbird.cli.command import Command, Group
from longbird.cli.graph_argument import HELP, GraphArgument, complete_graph, parse_graph
from longbird.cli.options import AsJson, Heads, Picture, Tokens
from longbird.cli.terminal import echo_json, say, stdout, working
from longbird.errors import InvalidValueError

if TYPE_CHECKING:
    from longbird.core.graph import Graph

AllHeads = Annotated[
    int | None,
    typer.Option(
        "--heads",
        help="Number of heads, whose edges are combined. Default: as many as the graph defines.",
        min=1,
        show_default=False,
    ),
]

graph = typer.Typer(cls=Group, no_args_is_help=True, help="Draw and measure graphs.")


@graph.command(cls=Command)
def show(
    graph: Annotated[
        str | None,
        typer.Argument(
            help=f"{HELP} Without it, all pieces are listed.", autocompletion=complete_graph
        ),
    ] = None,
    n: Tokens = 512,
    heads: Heads = 1,
    head: Annotated[int, typer.Option(help="Number of the head to draw.", min=0)] = 0,
    out: Picture = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the graph as JSON instead of drawing it.")
    ] = False,
) -> None:
    """Draw which tokens attend to which: a row for each query, a column for each key."""
    if graph is None:
        if json or out is not None:
            raise InvalidValueError(
                "no graph to show was given; `longbird graph show` lists what there is"
            )
        return list_graphs()
    parsed = parse_graph(graph)
    if json:
        return typer.echo(parsed.to_json())
    if out is not None:
        from longbird.analysis.drawing import picture

        # First, because a pager may close the output after a line.
        with working(f"Drawing {n:,} tokens into {out}"):
            picture(parsed, n, heads=heads, head=head, name=graph).save(out)
    draw_in_terminal(parsed, n, heads=heads, head=head, name=graph)
    if out is not None:
        say(f"Wrote {out}")


@graph.command(cls=Command)
def analyse(
    graph: GraphArgument,
    n: Tokens = 4096,
    heads: AllHeads = None,
    json: AsJson = False,
    out: Picture = None,
) -> None:
    """Measure a graph: paths, clustering, spectral gap, receptive field and more.

    The table shows for each number whether it is exact, or its interval.
    """
    parsed = parse_graph(graph)
    with working(f"Measuring {n:,} tokens"):
        from longbird.analysis.measures import analyse as measure

        found = measure(parsed, n, heads or parsed.least_heads, name=graph.strip())
        if out is not None:
            found.save(out)
    echo_json(found.as_json(), indent=2) if json else typer.echo(str(found))
    if out is not None and not json:
        say(f"Wrote {out}")


@graph.command(cls=Command)
def compare(
    graphs: Annotated[
        list[str],
        typer.Argument(
            help=f"Two or more graphs. {HELP}", autocompletion=complete_graph, show_default=False
        ),
    ],
    n: Tokens = 4096,
    heads: AllHeads = None,
    json: AsJson = False,
) -> None:
    """Measure several graphs at one length, with a row for each."""
    parsed = [parse_graph(graph) for graph in graphs]
    if len(parsed) < 2:
        raise InvalidValueError(
            "compare needs two graphs or more, received one; `longbird graph analyse` measures one"
        )
    from longbird.analysis.measures import analyse as measure
    from longbird.analysis.measures import compare as table

    found = []
    for text, graph in zip(graphs, parsed, strict=True):
        with working(f"Measuring {n:,} tokens of {text}"):
            found.append(measure(graph, n, heads or graph.least_heads, name=text.strip()))
    if json:
        return echo_json([each.as_json() for each in found], indent=2)
    union = ""
    if max(each.heads for each in found) > 1:
        union = f", union of {'all' if heads is None else heads} heads"
    say(f"{n:,} tokens{union}")
    typer.echo(table(found))


@graph.command(cls=Command)
def path(
    graph: GraphArgument,
    reader: Annotated[
        int, typer.Argument(help="Number of the token that reads, counted from 0.", min=0)
    ],
    read: Annotated[int, typer.Argument(help="Number of the token that is read.", min=0)],
    n: Tokens = 4096,
    heads: AllHeads = None,
    json: AsJson = False,
) -> None:
    """Show after how many layers a token hears of another, and along which tokens."""
    for name, token in (("READER", reader), ("READ", read)):
        if token >= n:
            raise InvalidValueError(
                f"{name} is token {token:,}, and the last of {n:,} tokens is {n - 1:,}: choose "
                "another, or more tokens with -n"
            )
    found = parse_graph(graph).path(reader, read, n, heads)
    if json:
        layers = None if found is None else len(found) - 1
        echo_json({"layers": layers, "path": found})
    elif found is None:
        say(f"token {reader:,} never hears of token {read:,}")
    elif reader == read:
        say(f"token {reader:,} has its own content from the start")
    else:
        layers = "1 layer" if len(found) == 2 else f"{len(found) - 1:,} layers"
        say(f"token {reader:,} hears of token {read:,} after {layers}: each sees the next")
        say(" -> ".join(map(str, found)))


@graph.command(cls=Command)
def plots(
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for the pictures; created if necessary.")
    ] = Path("plots"),
) -> None:
    """Reproduce the plots of the papers: paths, clustering, eigenvalues, layers."""
    if out.exists() and not out.is_dir():
        raise InvalidValueError(
            f"{out} is a file, expected a folder to draw into; choose another name"
        )
    with working(f"Measuring, and drawing into {out}"):
        from longbird.analysis.measures.plots import draw_all

        files = draw_all(out)
    for file in files:
        say(f"Wrote {file}")


def list_graphs() -> None:
    """Print all names that an expression can contain, with their arguments and meanings."""
    from rich.table import Table

    from longbird.core.graph.expression import names

    table = Table.grid(padding=(0, 2))
    for name, piece in sorted(names().items()):
        meaning = (inspect.getdoc(piece) or "").partition("\n")[0]
        meaning = re.sub(r" \[\d+\]|`", "", meaning)  # footnotes and code marks
        table.add_row(f"[bold]{name}[/]{_arguments(piece)}", meaning)
    stdout.print(table, highlight=False)
    say("\nCombine them with | (union) and & (intersection), for example:")
    say('  longbird graph show "bigbird(block=64) & Causal()" -n 1024')


def _arguments(piece: object) -> str:
    """Return the arguments of a piece as they are typed.

    Examples:
        >>> _arguments(lambda radius, dilation=1: None)
        '(radius, dilation=1)'
    """
    from rich.markup import escape

    assert callable(piece)
    shown = [
        name if each.default is each.empty else f"{name}={each.default!r}"
        for name, each in inspect.signature(piece).parameters.items()
    ]
    return escape(f"({', '.join(shown)})")


def draw_in_terminal(graph: Graph, n: int, *, heads: int = 1, head: int = 0, name: str) -> None:
    """Print the picture with a caption and the meaning of the colours."""
    from longbird.analysis.drawing import picture, pixels_across, print_picture

    with working(f"Drawing {n:,} tokens"):
        pixels = pixels_across(stdout)
        drawn = picture(graph, n, heads=heads, head=head, pixels=pixels, name=name)
    print_picture(stdout, drawn)
