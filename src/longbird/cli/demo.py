"""`longbird demo`: a long document asked questions; or the kernel drawn, checked and timed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longbird.cli.check import print_report
from longbird.cli.graph import draw_in_terminal
from longbird.cli.options import Tokens, check_known
from longbird.cli.terminal import say, stdout, working

if TYPE_CHECKING:
    from longbird.bench.attention.case import Case

WHAT = ("ask", "kernel")

# Not a multiple of the block, so that the check sees a ragged tail.
CHECKED_TOKENS = 1000
# Seconds for the rounds of either measurement.
BUDGET = 15.0


def demo(
    what: Annotated[
        str,
        typer.Argument(
            help="ask: questions about a long document. kernel: the BigBird graph drawn, checked "
            "and timed against dense attention."
        ),
    ] = "ask",
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for what is written.", file_okay=False)
    ] = Path(),
    n: Tokens = 4096,
) -> None:
    """Show what Longbird is for: ask a document of 34,000 words questions, with the evidence.

    Beside it, the same with chunks of 512 tokens and with dense attention; demo.html has it all.
    """
    check_known("what to show", [what], WHAT)
    if what == "kernel":
        _kernel(out, n)
    else:
        _ask(out)


def _ask(out: Path) -> None:
    """The main job; every answer is shown as soon as it is there."""
    from longbird.cli.ask import show_evidence

    say("Loading the reader")
    from longbird.bench.demo.page import NAMES
    from longbird.bench.demo.story import CHUNK, TITLE, tell

    found: dict[str, Any] = {}

    def show(part: str, value: Any) -> None:
        if part == "document":
            found["document"] = value.document
            stdout.rule("The document")
            say(f"{TITLE}: {value.words:,} words")
            stdout.rule("Questions")
        elif part == "once":
            if "once" not in found:
                stdout.rule("Reading at once")
                found["once"] = True
            say(
                f"{value['tokens']:>7,} tokens  {NAMES[value['who']]:<16} "
                f"{value['seconds']:6.2f} s  {value['bytes'] / 1e6:6,.0f} MB"
            )
        else:
            if part == "chunks" and "chunks" not in found:
                stdout.rule(f"The same model, chunks of {CHUNK} tokens: its best guess")
                found["chunks"] = True
            given = "not sure" if value.answer.text is None else value.answer.text
            verdict = "right" if value.right else "wrong"
            sure = f"{value.answer.confidence:.0%} sure"
            say(value.known.question)
            say(f"  {given}  ({verdict}; {sure}, {value.seconds:.1f} s)")
            if part == "whole":
                show_evidence(found["document"], value.answer)

    story = tell(out, show)
    stdout.rule("In plain words")
    ways = [[told for told in way if told.known.answers] for way in (story.whole, story.chunks)]
    counts = [sum(told.right for told in way) for way in ways]
    seconds = [sum(told.seconds for told in way) for way in ways]
    say(
        f"Of {len(ways[0])} questions that have an answer, {counts[0]} are answered correctly in "
        f"passages of 4,096 tokens ({seconds[0]:.0f} s), and {counts[1]} in chunks of {CHUNK}, "
        f"where every guess counts ({seconds[1]:.0f} s)."
    )
    say(f"Wrote {out / 'demo.html'}")


def _kernel(out: Path, n: int) -> None:
    """Builds the BigBird graph, draws it, checks it, and times it against dense attention."""
    with working("Loading torch"):
        import torch

        from longbird.analysis.check import check
        from longbird.analysis.drawing import picture
        from longbird.bench.attention.case import Case
        from longbird.bench.environment import cpu_model
        from longbird.core.operator.dispatch import implementations

    case = Case(n)
    graph, heads = case.graph, case.heads
    start = time.perf_counter()
    layout = graph.layout(n, heads=heads)
    seconds = time.perf_counter() - start

    stdout.rule("The graph")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "bigbird.png"
    with working(f"Drawing {n:,} tokens into {path}"):
        picture(graph, n, heads=heads, name="bigbird()").save(path)
    draw_in_terminal(graph, n, heads=heads, name="bigbird()")
    say(f"Laid out for {heads} heads in {1e3 * seconds:.1f} ms.")
    say(f"Wrote the picture to {path}")

    stdout.rule("Is it exact?")
    states = implementations()
    # Not flex: on a CPU it compiles for half a minute first, and has no backward to check.
    here = [name for name in ("native", "gather") if states[name] == "available"]
    with working("Comparing with dense attention in float64"):
        report = check(graph, CHECKED_TOKENS, heads=2, head_dim=case.head_dim, impls=here)
    print_report(report)

    stdout.rule("Is it fast?")
    forward, both = _faster(case, here[0])
    stdout.rule("In plain words")
    exact = (
        "What it computes is exact: outputs and gradients agree with dense attention under the "
        "same mask."
        if report.ok
        else "But it does not agree with dense attention under the same mask: see above."
    )
    stdout.print(
        f"Over {n:,} tokens with {heads} heads of {case.head_dim}, the BigBird graph keeps "
        f"{100 * layout.density:.0f}% of the pairs of tokens. On this machine ({cpu_model()}, "
        f"threads: {torch.get_num_threads()}), compared with dense attention over all pairs, "
        f"it is {_words(forward)} forward, and {_words(both)} forward and backward. {exact}",
        highlight=False,
    )
    if "native" not in here:
        stdout.print(f"This ran without the native kernels: {states['native']}", style="yellow")
    if not report.ok:
        raise typer.Exit(1)


def _faster(case: Case, implementation: str) -> list[float]:
    """Times dense and sparse attention in turns: how many times faster sparse is, by mode."""
    from dataclasses import replace
    from functools import partial

    from rich.table import Table

    from longbird.bench.attention.peers import DENSE, longbird
    from longbird.bench.contest import contest
    from longbird.bench.report import digits, quotient

    mine = longbird(implementation)
    table = Table("milliseconds, median", DENSE.name, mine.name, "ratio")
    factors: list[float] = []
    for each in (case, replace(case, backward=True)):
        entries = {peer.name: partial(peer.call, each) for peer in (DENSE, mine)}
        with working(f"Timing {each.mode}, dense and sparse in turns"):
            held = contest(each, entries, mine.name, BUDGET, repeats=9)
        dense, sparse = (1e3 * held.median(peer.name) for peer in (DENSE, mine))
        factors.append(quotient(dense, sparse))
        table.add_row(each.mode, digits(dense), digits(sparse), f"{factors[-1]:.3g} x")
    stdout.print(table)
    return factors


def _words(ratio: float) -> str:
    if 0.95 < ratio < 1.05:
        return "as fast"
    return f"{ratio:.1f} times faster" if ratio > 1 else f"{1 / ratio:.1f} times slower"
