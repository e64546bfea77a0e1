"""What a run measured, as tables for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from longbird.bench.attention import SGEMM, TOLERANCE, Result, Series
from longbird.bench.environment import cpu_slug
from longbird.bench.goals import Goal, goals
from longbird.bench.peers import DENSE, LONGFORMER_WINDOW
from longbird.bench.timing import Spread, ratio

MODE = {False: "forward", True: "+ backward"}
REACHED = {True: "reached", False: "not reached", None: "not judged"}
_COLOUR = {"reached": "green", "not reached": "red", "not judged": "yellow"}


@dataclass(frozen=True)
class Sheet:
    """A table before it is known where it will be shown."""

    title: str
    headers: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: tuple[str, ...] = ()

    def show(self, console: Console) -> None:
        """Print it."""
        table = Table(title=self.title, title_justify="left", title_style="bold")
        for number, header in enumerate(self.headers):
            table.add_column(header, justify="left" if number == 0 else "right")
        for row in self.rows:
            table.add_row(
                *(f"[{_COLOUR[cell]}]{cell}[/]" if cell in _COLOUR else cell for cell in row)
            )
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}", style="dim", markup=False, highlight=False)
        console.print()

    def markdown(self) -> str:
        """The same as a Markdown section."""
        lines = [f"## {self.title}", ""]
        lines.append("| " + " | ".join(self.headers) + " |")
        lines.append("|" + " --- |" * len(self.headers))
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"


def sheets(result: Result) -> list[Sheet]:
    """Everything that a run has to say."""
    return [
        goal_sheet(
            goals(result),
            result.environment,
            "The design's rows on whole encoders are measured by `longbird bench model`.",
        ),
        _length_sheet(result, backward=False),
        _length_sheet(result, backward=True),
        _memory_sheet(result),
        _plan_sheet(result),
    ]


def write(result: Result, folder: Path) -> list[Path]:
    """Write JSON and Markdown into a folder; files of the same day are replaced."""
    return save(folder, stem(result), as_json(result), as_markdown(result))


def save(folder: Path, name: str, data: dict[str, Any], markdown: str) -> list[Path]:
    """Write a run's two files, which differ in their ending."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.json", folder / f"{name}.md"]
    text = json.dumps(data, indent=1)
    # One line for each list of samples, so that a person can look through the file.
    text = re.sub(r"\[[\s\d.,e+-]+\]", lambda found: " ".join(found[0].split()), text)
    paths[0].write_text(text + "\n")
    paths[1].write_text(markdown)
    return paths


def stem(result: Result) -> str:
    """File name of a run's results, without an ending."""
    return f"attention_{cpu_slug(result.environment['cpu'])}_{result.date}"


def as_json(result: Result) -> dict[str, Any]:
    """All samples and all circumstances of a run."""
    settings = result.settings
    return {
        "command": result.command,
        "date": result.date,
        "environment": result.environment,
        "work": {**asdict(settings.work), "graph": json.loads(settings.work.graph.to_json())},
        "settings": {
            "lengths": list(settings.lengths),
            "implementation": settings.implementation,
            "peers": [peer.name for peer in settings.peers],
            "repeats": settings.repeats,
            "limit_seconds": settings.limit,
            "budget_seconds": settings.budget,
        },
        "goals": [asdict(goal) for goal in goals(result)],
        "verified": result.verified,
        "series": [asdict(series) for series in result.series],
        "seconds_per_token": {str(n): samples for n, samples in result.linearity.items()},
        "layout": {
            "n": settings.big_length,
            "samples": result.layout,
            "skipped": result.layout_skipped,
        },
        "memory": [asdict(peak) for peak in result.memory],
    }


def as_markdown(result: Result) -> str:
    """The summary that is read on its own."""
    facts = [
        f"Work: {result.settings.work}",
        *circumstances(result.environment, result.settings.repeats),
        "Peers checked against the dense reference on their own graph: "
        + verdicts(result.verified),
    ]
    title = f"Attention on {result.environment['cpu']}, {result.date}"
    return page(title, result.command, facts, sheets(result), f"{stem(result)}.png")


def page(
    title: str, command: str, facts: Sequence[str], tables: Sequence[Sheet], picture: str
) -> str:
    """A Markdown page: what was run, how, and what came out."""
    head = [f"# {title}", "", f"- Command: `{command}`", *(f"- {fact}" for fact in facts), ""]
    plot = f"![Time against length]({picture})\n"
    return "\n".join(head) + "\n" + "\n".join(each.markdown() for each in tables) + "\n" + plot


def circumstances(where: dict[str, Any], repeats: int) -> list[str]:
    """Machine, versions and method, a line each."""
    versions = ", ".join(
        f"{name} {value or 'missing'}" for name, value in where["versions"].items()
    )
    memory = where["memory_bytes"]
    return [
        f"Machine: {where['cpu']}, {where['cores']} cores, {where['threads']} threads used, "
        + (f"{memory / 1e9:.0f} GB, " if memory else "")
        + f"{where['system']}; {' '.join(where['flags'])}; kernels: {where['isa']}; "
        + f"load {where['load']} before, {where.get('load_after')} after",
        f"Versions: {versions}, Python {where['python']}; commit {where['commit'] or 'unknown'}",
        f"Method: contestants in turns, at most {repeats} rounds; medians, and "
        "in brackets the fastest and slowest sample; ratios are taken within a round.",
    ]


def verdicts(verified: Mapping[str, float | str]) -> str:
    """How far everybody was from what it claims to compute."""
    parts: list[str] = []
    for name, deviation in verified.items():
        if isinstance(deviation, str):
            parts.append(f"{name}: {deviation}")
        elif deviation <= TOLERANCE:
            parts.append(f"{name} within {deviation:.1g}")
        else:
            parts.append(f"{name} OFF BY {deviation:.2g}, left out")
    return "; ".join(parts)


def goal_sheet(rows: Sequence[Goal], where: dict[str, Any], *notes: str) -> Sheet:
    """A run against the design's table."""
    return Sheet(
        "Against the design's table",
        ("what", "peer", "target", "measured", "verdict"),
        [(row.what, row.peer, row.target, row.measured, REACHED[row.reached]) for row in rows],
        (
            *_busy(where),
            "Ratios: median of the rounds (fastest to slowest round).",
            "Not judged: not measured, or another work or length than the design's.",
            *notes,
        ),
    )


def _busy(where: dict[str, Any]) -> list[str]:
    load, cores = where["load"], where["cores"]
    if load is None or not cores or load < 0.5 * cores:
        return []
    return [
        f"THE MACHINE WAS NOT IDLE (load {load:g} on {cores} cores when the run began): "
        "do not quote these numbers."
    ]


def _length_sheet(result: Result, *, backward: bool) -> Sheet:
    peers = result.settings.peers
    series = [each for each in result.series if each.backward == backward]
    return Sheet(
        f"Forward{' and backward' if backward else ''}, milliseconds a call "
        "(how many times longbird is faster)",
        ("tokens", result.longbird, "of sgemm", *(peer.short for peer in peers)),
        [
            (
                f"{each.n:,}",
                spread_cell(each.samples, result.longbird),
                _share(result, each),
                *(ratio_cell(each.samples, peer.name, result.longbird) for peer in peers),
            )
            for each in series
        ],
        (
            "Of sgemm: rate of useful operations, as a share of torch.matmul's. HF Longformer has "
            f"another graph, a window of {LONGFORMER_WINDOW}.",
            *reasons((f"{each.n:,}", each.skipped) for each in series),
        ),
    )


def _share(result: Result, series: Series) -> str:
    shares = series.share_of_sgemm(result.longbird, result.settings.work.head_dim)
    return f"{Spread.of(shares).median:.0%}" if SGEMM in series.samples else "-"


def spread_cell(samples: Mapping[str, Sequence[float]], name: str) -> str:
    """Median, fastest and slowest sample, in milliseconds."""
    if name not in samples:
        return "-"
    spread = Spread.of(samples[name])
    return f"{_ms(spread.median)} ({_ms(spread.low)} to {_ms(spread.high)})"


def ratio_cell(samples: Mapping[str, Sequence[float]], peer: str, mine: str) -> str:
    """A peer's median in milliseconds, and how many times that is longer than mine."""
    if peer not in samples:
        return "-"
    median = _ms(Spread.of(samples[peer]).median)
    if mine not in samples:
        return median
    return f"{median} ({times(ratio(samples[peer], samples[mine]).median)})"


def times(factor: float) -> str:
    """A ratio in a table.

    Examples:
        >>> times(2.04), times(154.2)
        ('2 x', '154 x')
    """
    return f"{factor:.2g} x" if factor < 100 else f"{factor:,.0f} x"


def _ms(seconds: float) -> str:
    milliseconds = 1e3 * seconds
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def reasons(skipped: Iterable[tuple[str, Mapping[str, str]]]) -> list[str]:
    """Why a cell is empty, one line for each peer and reason, given rows and who is not there."""
    rows: dict[tuple[str, str], list[str]] = {}
    for row, why in skipped:
        for peer, reason in why.items():
            rows.setdefault((peer, reason), []).append(row)
    return [
        f"{peer}, {' and '.join(at) if len(at) < 3 else 'all of ' + ', '.join(at)}: {reason}"
        for (peer, reason), at in rows.items()
    ]


def _memory_sheet(result: Result) -> Sheet:
    notes: list[str] = []
    rows: list[tuple[str, ...]] = []
    short = {peer.name: peer.short for peer in result.settings.peers}
    for peak in result.memory:
        mode = MODE[peak.backward]
        if peak.extra_bytes is None:
            notes.append(f"{peak.peer}, {peak.n:,} tokens, {mode}: {peak.skipped}")
            continue
        planned = f"{peak.planned / 1e6:,.1f}" if peak.planned is not None else "-"
        peer = short.get(peak.peer, peak.peer)
        rows.append((peer, f"{peak.n:,}", mode, f"{peak.extra_bytes / 1e6:,.1f}", planned))
    return Sheet(
        "Peak memory of one call beyond q, k, v, output and gradients, MB",
        ("peer", "tokens", "mode", "measured", "planned"),
        rows,
        ("Resident memory of a fresh process; layouts count, libraries do not.", *notes),
    )


def _plan_sheet(result: Result) -> Sheet:
    rows: list[tuple[str, ...]] = []
    for each in result.series:
        cells = [f"{each.n:,}", MODE[each.backward]]
        for name in (result.longbird, DENSE.name):
            planned = each.planned[name]
            if name in each.samples:
                measured = Spread.of(each.samples[name]).median
                cells += [_ms(planned), _ms(measured), f"{planned / measured:.2f}"]
            else:
                cells += [_ms(planned), "-", "-"]
        rows.append(tuple(cells))
    notes: list[str] = []
    for backward in (False, True):
        planned = next(plan for plan in result.plans if plan.backward == backward).crossover
        measured = result.crossover(backward=backward)
        notes.append(
            f"Length from which sparse wins, forward{' and backward' if backward else ''}: "
            f"planned {planned or 'none'}, measured {measured or 'none'}."
        )
    return Sheet(
        "Planned against measured, milliseconds",
        ("tokens", "mode", "planned", "measured", "ratio", "dense planned", "measured", "ratio"),
        rows,
        tuple(notes),
    )
