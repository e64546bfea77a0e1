"""The report of a comparison of times.

Ratios are those of the printed numbers, so that a reader who divides them gets the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from experiments.framework.environment import busy, cpu_slug
from experiments.framework.page import Sheet, digits, quotient, write_run
from experiments.speed.contest import Contest, Peer
from experiments.speed.memory import Peak
from experiments.speed.plot import Panel, draw
from experiments.speed.run import TOLERANCE, Result
from experiments.speed.timing import Samples, Spread


@dataclass(frozen=True)
class Goal:
    """A ratio that the project aims for, and the measured one.

    Attributes:
        what: What is measured.
        peer: What it is compared with.
        target: The target in words.
        measured: The measurement in words.
        reached: Whether the target was reached; None if it was not measured.
    """

    what: str
    peer: str
    target: str
    measured: str = "not measured"
    reached: bool | None = None


@dataclass(frozen=True)
class Row:
    """A row of a comparison.

    Attributes:
        name: The first cells, which describe the row.
        values: Numbers by contestant.
        skipped: Reasons why other contestants are missing.
        spread: Spread of Longbird's number.
        more: Cells between the name and the numbers.
        rates: Whether larger numbers are better.
    """

    name: Sequence[str]
    values: Mapping[str, float]
    skipped: Mapping[str, str]
    spread: Spread | None = None
    more: Sequence[str] = ()
    rates: bool = False

    def cells(self, mine: str, peers: Sequence[str]) -> list[str]:
        """Return Longbird's number with its spread, and the others with their ratios."""
        shown = {name: digits(value) for name, value in self.values.items()}
        cells = [*self.name, *self.more, shown.get(mine, "-")]
        if self.spread is not None:
            cells[-1] += f" ({digits(self.spread.low)} to {digits(self.spread.high)})"
        for name in peers:
            both = name in shown and mine in shown
            pair = (self.values[name], self.values[mine]) if both else (0.0, 1.0)
            worse = quotient(*(reversed(pair) if self.rates and both else pair))
            cells.append(shown.get(name, "-") + (f" ({digits(worse)} x)" if both else ""))
        return cells


def milliseconds(held: Contest, samples: Samples, mine: str, *name: str) -> Row:
    """Return a row of times."""
    taken = {name: Spread.of([1e3 * x for x in each]) for name, each in samples.items()}
    medians = {name: each.median for name, each in taken.items()}
    return Row(name, medians, held.skipped, taken.get(mine))


def tokens_a_second(held: Contest, tokens: int, mine: str, *name: str) -> Row:
    """Return a row of rates of calls with this many tokens."""
    taken = {name: Spread.of([tokens / x for x in each]) for name, each in held.samples.items()}
    medians = {name: each.median for name, each in taken.items()}
    return Row(name, medians, held.skipped, taken.get(mine), rates=True)


def comparison(
    title: str,
    heads: Sequence[str],
    rows: Sequence[Row],
    everybody: Sequence[Peer],
    notes: Sequence[str] = (),
) -> Sheet:
    """Return a table with a column for each contestant, Longbird first."""
    mine, *peers = (peer.name for peer in everybody)
    cells = [row.cells(mine, peers) for row in rows]
    why = _reasons((", ".join(row.name), row.skipped) for row in rows)
    return Sheet(title, [*heads, *(peer.short for peer in everybody)], cells, [*notes, *why])


def memory(
    beyond: str,
    heads: Sequence[str],
    peaks: Sequence[Peak],
    everybody: Sequence[Peer],
    name: Callable[[Any], Sequence[str]],
    extra: Callable[[Peak], int],
    note: str,
    more: Callable[[Any], Sequence[str]] = lambda case: (),
) -> Sheet:
    """Return a table of peaks, with a row for each case."""
    rows: list[Row] = []
    for case in dict.fromkeys(each.case for each in peaks):
        here = [each for each in peaks if each.case == case]
        taken = {each.peer: extra(each) / 1e6 for each in here if each.extra_bytes is not None}
        skipped = {each.peer: each.skipped for each in here if each.skipped}
        rows.append(Row(name(case), taken, skipped, more=more(case)))
    asked = [peer for peer in everybody if peer.name in {each.peer for each in peaks}]
    title = f"Peak memory of one call beyond {beyond}, MB (how many times longbird's)"
    return comparison(title, heads, rows, asked or everybody, [note])


@dataclass(frozen=True)
class Report:
    """The report of a run.

    Attributes:
        title: Title of the page.
        facts: What a reader needs to know about the work, one line each.
        sheets: All tables.
        panels: Rows of panels.
    """

    title: str
    facts: Sequence[str]
    sheets: Sequence[Sheet]
    panels: Sequence[Sequence[Panel]]

    def markdown(self, result: Result, goals: Sequence[Goal], picture: str) -> str:
        """Return the page."""
        not_idle = busy(result.environment)
        lines = [f"# {self.title} on {result.environment['cpu']}, {result.date}", ""]
        lines += [f"**{not_idle} DO NOT QUOTE THESE NUMBERS.**\n"] if not_idle else []
        facts = [f"Command: `{result.command}`", *self.facts, *_circumstances(result)]
        sheets = [*([_goal_sheet(goals)] if goals else []), *self.sheets]
        lines += [*(f"- {fact}" for fact in facts), "", *(each.markdown() for each in sheets)]
        return "\n".join([*lines, f"![Time against length]({picture})", ""])

    def write(self, result: Result, goals: Sequence[Goal], folder: Path) -> list[Path]:
        """Write the page, the JSON file and the picture, and return their paths."""
        name = f"{result.bench}_{cpu_slug(result.environment['cpu'])}_{result.date}"
        where = f"{result.environment['cpu']}, threads: {result.environment['threads']}"
        return write_run(
            folder,
            name,
            self.markdown(result, goals, f"{name}.png"),
            {**_plain(result), "goals": goals},
            partial(draw, self.panels, f"{self.title}, {where}, {result.date}"),
            _plain,
        )


def _plain(value: Any) -> Any:
    """Convert a peer to its name, and another dataclass to its fields."""
    if isinstance(value, Peer):
        return value.name
    return {each.name: getattr(value, each.name) for each in fields(value)}


def _reasons(skipped: Iterable[tuple[str, Mapping[str, str]]]) -> list[str]:
    """Return why cells are empty, with one line for each peer and reason."""
    rows: dict[tuple[str, str], list[str]] = {}
    for row, why in skipped:
        for peer, reason in why.items():
            rows.setdefault((peer, reason), []).append(row)
    return [f"{peer}, at {'; '.join(at)}: {reason}" for (peer, reason), at in rows.items()]


def _circumstances(result: Result) -> list[str]:
    """Return machine, versions and method, one line each."""
    where = result.environment
    versions = ", ".join(f"{name} {x or 'missing'}" for name, x in where["versions"].items())
    checks = "; ".join(_verdict(name, found) for name, found in result.verified.items())
    return [
        f"Machine: {where['cpu']}, {where['cores']} cores, {where['threads']} threads used, "
        f"{(where['memory_bytes'] or 0) / 1e9:.0f} GB, {where['system']}; "
        f"{' '.join(where['flags'])}; kernels: {where['isa']}; load {where['load']} before, "
        f"{where['load_after']} after",
        f"Versions: {versions}, Python {where['python']}; commit {where['commit'] or 'unknown'}",
        f"Method: contestants in turns, at most {result.settings.repeats} rounds; medians, and in "
        "brackets the fastest and slowest sample. Ratios are those of the printed medians.",
        *([f"Checked against dense attention on the graph claimed: {checks}"] if checks else []),
    ]


def _verdict(name: str, deviation: float | str) -> str:
    if isinstance(deviation, str):
        return f"{name}: {deviation}"
    return f"{name} {'within' if deviation <= TOLERANCE else 'LEFT OUT, off by'} {deviation:.1g}"


def _goal_sheet(goals: Sequence[Goal]) -> Sheet:
    verdict = {True: "reached", False: "not reached", None: "not judged"}
    return Sheet(
        "Targets",
        ("what", "peer", "target", "measured", "verdict"),
        [(x.what, x.peer, x.target, x.measured, verdict[x.reached]) for x in goals],
        ["Not judged: this run did not measure it, or the tables below say why not."]
        if any(goal.reached is None for goal in goals)
        else [],
    )
