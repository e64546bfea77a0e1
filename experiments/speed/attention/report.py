"""The report of the experiment `attention`."""

from __future__ import annotations

from dataclasses import replace

from experiments.framework.page import Sheet, digits, quotient
from experiments.speed.attention.peers import DENSE
from experiments.speed.attention.steps import SGEMM, SGEMM_SIZE
from experiments.speed.contest import Contest
from experiments.speed.hugging_face import LONGFORMER_WINDOW
from experiments.speed.memory import Peak
from experiments.speed.plot import Panel
from experiments.speed.report import Report, Row, comparison, memory, milliseconds
from experiments.speed.run import Result
from longbird.analysis.plan import FLOPS_FORWARD, FLOPS_FORWARD_BACKWARD


def report(result: Result) -> Report:
    """Return the report of a run."""
    both = [series for backward in (False, True) if (series := along_bigbird(result, backward))]
    panels = [Panel.of(x[0].case.mode, x, result.settings.everybody) for x in both]
    sheets = [_bigbird_sheet(result, series) for series in both]
    sheets += [_dense_sheet(result), _memory_sheet(result), _plan_sheet(result, both)]
    return Report("Attention", [f"Work: {result.settings.case.work}"], sheets, [panels])


def along_bigbird(result: Result, backward: bool) -> list[Contest]:
    """Return the comparisons along BigBird's graph, by length."""
    wanted = ("bigbird", "attention", backward)
    found = [
        x for x in result.contests if (x.case.pattern, x.case.task, x.case.backward) == wanted
    ]
    return sorted(found, key=lambda held: held.case.n)


def crossover(result: Result, backward: bool) -> int | None:
    """Return the shortest length from which on Longbird beats dense attention, or None."""
    shortest = None
    for held in along_bigbird(result, backward):
        if {DENSE.name, result.mine} <= set(held.samples):
            wins = held.median(DENSE.name) > held.median(result.mine)
            shortest = (shortest or held.case.n) if wins else None
    return shortest


def rates(held: Contest, name: str) -> tuple[float, float]:
    """Return the useful operations of a contestant and those of sgemm, in 10^9 per second."""
    each = FLOPS_FORWARD_BACKWARD if held.case.backward else FLOPS_FORWARD
    useful = held.facts["edges"] * held.case.head_dim * each
    return 1e-9 * useful / held.median(name), 2e-9 * SGEMM_SIZE**3 / held.median(SGEMM)


def extra_bytes(taken: Peak) -> int:
    """Return the memory of a call beyond q, k, v, the output and gradients."""
    return max(0, (taken.extra_bytes or 0) - taken.result_bytes)


def _bigbird_sheet(result: Result, series: list[Contest]) -> Sheet:
    def row(held: Contest) -> Row:
        share = "-"
        if result.mine in held.samples:
            own, matmul = rates(held, result.mine)
            share = f"{quotient(own, matmul):.1%} ({digits(own)} of {digits(matmul)})"
        times = {name: each for name, each in held.samples.items() if name != SGEMM}
        return replace(milliseconds(held, times, result.mine, f"{held.case.n:,}"), more=[share])

    mode = series[0].case.mode.capitalize()
    return comparison(
        f"{mode}, milliseconds a call (how many times longbird is faster)",
        ("tokens", "share of sgemm (GFLOP/s)"),
        [row(held) for held in series],
        result.settings.everybody,
        (
            "Share of sgemm: useful operations a second, against those of torch.matmul. HF "
            f"Longformer has another graph, a window of {LONGFORMER_WINDOW}.",
        ),
    )


def _dense_sheet(result: Result) -> Sheet:
    rows = [
        milliseconds(x, x.samples, result.mine, repr(x.case.graph), x.case.mode, f"{x.case.n:,}")
        for x in result.contests
        if x.case.pattern != "bigbird"
    ]
    return comparison(
        "Dense graphs, milliseconds a call (how many times longbird is faster)",
        ("graph", "mode", "tokens"),
        rows,
        (result.settings.mine, DENSE),
        ("Dense SDPA computes the same: all pairs, or with is_causal=True the causal half.",),
    )


def _memory_sheet(result: Result) -> Sheet:
    planned = {x.case: digits(x.facts.get("planned_bytes", 0) / 1e6) for x in result.contests}
    return memory(
        "q, k, v, output and gradients",
        ("tokens", "mode", "planned"),
        result.peaks,
        result.settings.everybody,
        lambda case: (f"{case.n:,}", case.mode),
        extra_bytes,
        "Resident memory of a fresh process; layouts count, libraries do not.",
        lambda case: [planned.get(case, "-")],
    )


def _plan_sheet(result: Result, both: list[list[Contest]]) -> Sheet:
    rows: list[list[str]] = []
    for held in (held for series in both for held in series):
        row = [f"{held.case.n:,}", held.case.mode]
        for name, seconds in held.facts["planned"].items():
            here = name in held.samples
            measured = held.median(name) if here else 1.0
            ratio = digits(quotient(1e3 * seconds, 1e3 * measured))
            row += [digits(1e3 * seconds), *((digits(1e3 * measured), ratio) if here else "--")]
        rows.append(row)
    notes = [
        f"Length from which sparse wins, {series[0].case.mode}: planned "
        f"{series[-1].facts['planned_crossover'] or 'none'}, measured "
        f"{crossover(result, series[0].case.backward) or 'none'}."
        for series in both
    ]
    heads = ("planned", "measured", "ratio")
    dense = (f"dense {head}" for head in heads)
    title = "Planned against measured, milliseconds"
    return Sheet(title, ("tokens", "mode", *heads, *dense), rows, notes)
