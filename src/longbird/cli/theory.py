"""`longbird theory`: what the papers prove, run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from longbird.cli.command import Command, Group
from longbird.cli.graph_argument import HELP, complete_graph, parse_graph
from longbird.cli.options import AsJson, Picture, check_known
from longbird.cli.terminal import note, say, stdout, working
from longbird.errors import InvalidValueError

theory = typer.Typer(cls=Group, no_args_is_help=True, help="Run what the papers prove.")


@theory.command(cls=Command)
def turing(
    machine: Annotated[
        str | None,
        typer.Argument(
            metavar="MACHINE",
            help="A text file that describes a Turing machine, or the name of a built-in one. "
            "Without one, lists those.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT",
            help="What is on the tape, symbol after symbol; with spaces between them if one has "
            "more than one character. The machine's own by default.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="Most steps of the machine.", min=0)] = 447,
    out: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Run a Turing machine with a sparse decoder, and compare every step with a simulation.

    t steps take (t + 1)(t + 2) / 2 nodes, with at most three edges each; 447 steps are a hundred
    thousand nodes. The exit code is 1 if a step differs.
    """
    from longbird.analysis.theory.machines import Machine, built_in

    if machine is None:
        if out is not None:
            raise InvalidValueError(
                "there is nothing to draw without a machine; give one, or its name"
            )
        if as_json:
            _print_json([{"machine": name, "does": does} for name, does in built_in().items()])
            return
        for name, does in built_in().items():
            say(f"{name:<15} {does}")
        return
    loaded = Machine.load(machine)
    loaded.read(text)  # a wrong input is a mistake before anything is loaded
    with working(f"Decoding {loaded.name}"):
        from longbird.analysis.theory.turing import BLANK, INPUT, Decoder

        run = Decoder(loaded).run(text, steps)
    if out is not None:
        from longbird.analysis.theory.pictures import draw_run

        draw_run(run, out)
    if as_json:
        names = {BLANK: "blank", INPUT: "input"}
        _print_json(
            machine=loaded.name,
            input=run.text,
            ok=run.ok,
            problem=run.problem,
            halted=run.halted,
            stuck=run.stuck,
            steps=run.steps,
            nodes=run.nodes,
            edges=run.edges,
            most_edges=run.most_edges,
            tape={str(cell): symbol for cell, symbol in run.tape().items()},
            configurations=run.configurations,
            sources=[names.get(source, source) for source in run.sources],
        )
    else:
        say(str(run))
        say(f"tape: {_tape(run.tape(), loaded.blank)}")
    _finish(out, run.ok)


def _tape(tape: dict[int, str], blank: str) -> str:
    """The tape from its first to its last symbol that is not blank.

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
            help=f"{HELP} By default a star, and a window, which contains none.",
            autocompletion=complete_graph,
            show_default=False,
        ),
    ] = None,
    n: Annotated[
        int, typer.Option("-n", "--tokens", help="Tokens of a sequence, beside the centre.", min=2)
    ] = 3,
    values: Annotated[int, typer.Option(help="Values of a coordinate.", min=2)] = 2,
    dimension: Annotated[int, typer.Option(help="Coordinates of a token.", min=1)] = 1,
    float64: Annotated[
        bool, typer.Option("--float64", help="In float64 instead of fractions.")
    ] = False,
    softmax: Annotated[
        float | None,
        typer.Option(help="Softmax of this scale instead of hardmax.", show_default=False),
    ] = None,
    out: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Give every token of every sequence a code of its own, over the edges of a graph.

    That is what the proof of universality takes, and what a graph that contains a star can do. The
    exit code is 1 if a graph that was named cannot.
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
        _print_json(
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
    # Of the two that are not named, only the star can do it.
    _finish(out, all(report.ok for report in (reports if graphs else reports[:1])))


@theory.command(cls=Command)
def furthest(
    sizes: Annotated[
        list[int] | None,
        typer.Option(
            "-n",
            "--vectors",
            help="Vectors; may be repeated. By default 16, 32 and 64.",
            min=2,
            show_default=False,
        ),
    ] = None,
    reach: Annotated[int, typer.Option(help="Candidates per layer on the ring.", min=1)] = 1,
    hubs: Annotated[int, typer.Option(help="Hubs.", min=1)] = 1,
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
            help="Another graph to compute the bounds of; may be repeated.",
            autocompletion=complete_graph,
            show_default=False,
        ),
    ] = None,
    out: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Find the furthest for each vector: one layer of full attention, many of a sparse graph."""
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
        _print_json(
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
    say("halfway   the share that has found it after half of the layers")
    say("2 hops    the share whose furthest is within two hops")


def _print_json(value: Any = None, **fields: Any) -> None:
    typer.echo(json.dumps(fields if value is None else value, allow_nan=False))


def _finish(out: Path | None, ok: bool) -> None:
    if out is not None:
        note(f"Wrote {out}")
    if not ok:
        raise typer.Exit(1)
