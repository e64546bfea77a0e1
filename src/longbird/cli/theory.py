"""`longbird theory`: run the constructions with which the papers prove their theorems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from longbird.cli.command import Command, Group
from longbird.cli.graph_argument import HELP, complete_graph, parse_graph
from longbird.cli.options import AsJson, Picture, check_known
from longbird.cli.terminal import echo_json, note, say, stdout, working
from longbird.errors import InvalidValueError

theory = typer.Typer(
    cls=Group, no_args_is_help=True, help="Run the constructions of the papers' proofs."
)


@theory.command(cls=Command)
def turing(
    machine: Annotated[
        str | None,
        typer.Argument(
            metavar="MACHINE",
            help="Text file that describes a Turing machine, or name of a built-in machine. "
            "Without it, the built-in machines are listed.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT",
            help="Symbols on the tape, separated by spaces if one of them has several characters. "
            "Default: the machine's own input.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="Maximum number of steps.", min=0)] = 447,
    out: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Run a Turing machine with a sparse decoder, and compare every step with a simulation.

    t steps need (t + 1)(t + 2) / 2 nodes with at most three edges each; 447 steps are a hundred
    thousand nodes. The exit status is 1 if a step differs.
    """
    from longbird.analysis.theory.machines import Machine, built_in

    if machine is None:
        if out is not None:
            raise InvalidValueError(
                "there is nothing to draw without a machine; give one, or its name"
            )
        if as_json:
            return echo_json(
                [{"machine": name, "does": does} for name, does in built_in().items()]
            )
        for name, does in built_in().items():
            say(f"{name:<15} {does}")
        return None
    loaded = Machine.load(machine)
    loaded.read(text)  # report a wrong input before anything slow is imported
    with working(f"Decoding {loaded.name}"):
        from longbird.analysis.theory.turing import BLANK, INPUT, Decoder

        run = Decoder(loaded).run(text, steps)
    if out is not None:
        from longbird.analysis.theory.pictures import draw_run

        draw_run(run, out)
    if as_json:
        names = {BLANK: "blank", INPUT: "input"}
        fields = ("ok", "problem", "halted", "stuck", "steps", "nodes", "edges", "most_edges")
        echo_json(
            {
                "machine": loaded.name,
                "input": run.text,
                **{name: getattr(run, name) for name in fields},
                "tape": {str(cell): symbol for cell, symbol in run.tape().items()},
                "configurations": run.configurations,
                "sources": [names.get(source, source) for source in run.sources],
            }
        )
    else:
        say(str(run))
        say(f"tape: {_tape(run.tape(), loaded.blank)}")
    _finish(out, run.ok)


def _tape(tape: dict[int, str], blank: str) -> str:
    """Return the tape from its first to its last symbol that is not blank.

    Examples:
        >>> _tape({2: "a", 4: "b"}, "_")
        'a _ b, from cell 2 on'
    """
    if not tape:
        return "blank"
    cells = range(min(tape), max(tape) + 1)
    return f"{' '.join(tape.get(cell, blank) for cell in cells)}, from cell {cells[0]} on"


@theory.command(cls=Command)
def universality(
    graphs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GRAPH...",
            help=f"{HELP} Default: a star, and a window, which contains no star.",
            autocompletion=complete_graph,
            show_default=False,
        ),
    ] = None,
    n: Annotated[
        int, typer.Option("-n", "--tokens", help="Tokens per sequence without the centre.", min=2)
    ] = 3,
    values: Annotated[int, typer.Option(help="Number of values of a coordinate.", min=2)] = 2,
    dimension: Annotated[int, typer.Option(help="Number of coordinates of a token.", min=1)] = 1,
    float64: Annotated[
        bool, typer.Option("--float64", help="Use float64 instead of fractions.")
    ] = False,
    softmax: Annotated[
        float | None,
        typer.Option(help="Use softmax with this scale instead of hardmax.", show_default=False),
    ] = None,
    out: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Compute a unique code for every token of every sequence along the edges of a graph.

    The proof of universality needs such codes, and graphs that contain a star can compute them.
    The exit status is 1 if a graph that was given cannot.
    """
    parsed = [
        parse_graph(graph) for graph in graphs or ("GlobalTokens([0]) | Window(0)", "Window(1)")
    ]
    with working(f"Running all sequences of {n} tokens"):
        from longbird.analysis.theory.universality import check

        numbers = "float64" if float64 else "exact"
        reports = [
            check(graph, n, values, dimension, numbers=numbers, softmax=softmax)
            for graph in parsed
        ]
    if out is not None:
        from longbird.analysis.theory.pictures import draw_codes

        draw_codes(reports, out)
    if as_json:
        echo_json(
            [
                {
                    "graph": repr(report.graph),
                    "star": report.centre,
                    "ok": report.ok,
                    "sequences": len(report.results),
                    "distinct": report.distinct,
                    "error": report.error,
                    "wrong": report.wrong,
                    "collision": report.collision,
                    "codes": [
                        {"sequence": digits, "codes": [str(code) for code in result.codes]}
                        for digits, result in report.results.items()
                    ],
                }
                for report in reports
            ]
        )
    else:
        say("\n\n".join(map(str, reports)))
    # Of the two default graphs, only the star can.
    _finish(out, all(report.ok for report in (reports if graphs else reports[:1])))


@theory.command(cls=Command)
def furthest(
    sizes: Annotated[
        list[int] | None,
        typer.Option(
            "-n",
            "--vectors",
            help="Number of vectors; can be repeated. Default: 16, 32 and 64.",
            min=2,
            show_default=False,
        ),
    ] = None,
    reach: Annotated[
        int, typer.Option(help="Number of candidates per layer on the ring.", min=1)
    ] = 1,
    hubs: Annotated[int, typer.Option(help="Number of hubs.", min=1)] = 1,
    instance: Annotated[
        str,
        typer.Option(
            help="planted (opposite pairs), close (a narrow choice) or bits (nearly orthogonal)."
        ),
    ] = "planted",
    seed: Annotated[int, typer.Option(help="Seed of the vectors.", min=0)] = 0,
    graph: Annotated[
        list[str] | None,
        typer.Option(
            help="Further graph whose bounds are computed; can be repeated.",
            autocompletion=complete_graph,
            show_default=False,
        ),
    ] = None,
    out: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Find the furthest vector of each vector with one dense layer, or with many sparse ones."""
    check_known("--instance", [instance], ("planted", "close", "bits"))
    graphs = [parse_graph(each) for each in graph or ()]
    with working("Running layer after layer"):
        from longbird.analysis.theory.furthest import FullLayer, Hub, Ring, experiment

        solutions = (FullLayer(), Ring(reach), Hub(hubs))
        outcomes = experiment(sizes or (16, 32, 64), solutions, instance, seed, graphs)
    if out is not None:
        from longbird.analysis.theory.pictures import draw_furthest

        draw_furthest(outcomes, out)
    if as_json:
        echo_json(
            [
                {
                    **vars(outcome),
                    "comparisons": outcome.comparisons if outcome.edges else None,
                    "layers": outcome.layers,
                }
                for outcome in outcomes
            ]
        )
    else:
        _print_outcomes(outcomes)
    _finish(out, all(outcome.layers or not outcome.accuracy for outcome in outcomes))


def _print_outcomes(outcomes: list[Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for heading in ("", "vectors", "edges", "layers", "at least", "halfway", "2 hops"):
        table.add_column(heading, justify="right" if heading else "left")
    for each in outcomes:
        halfway = each.accuracy[len(each.accuracy) // 2 - 1] if len(each.accuracy) > 1 else None
        table.add_row(
            Text(each.name, overflow="ellipsis", no_wrap=True),
            f"{each.n:,}",
            f"{each.edges:,}",
            f"{each.layers:,}" if each.layers else "-",
            f"{each.comparisons:,.1f}",
            "-" if halfway is None else f"{halfway:.0%}",
            f"{each.within[min(2, len(each.within)) - 1]:.0%}",
        )
    stdout.print(table)
    say("layers    until every vector has found the furthest; - if no solution is known")
    say("at least  n(n-1)/edges, with one comparison per edge and layer")
    say("halfway   share of vectors that have found it after half of the layers")
    say("2 hops    share of vectors whose furthest one is within two hops")


def _finish(out: Path | None, ok: bool) -> None:
    if out is not None:
        note(f"Wrote {out}")
    if not ok:
        raise typer.Exit(1)
