"""The ratios that the project aims for.

They apply to certain work (the BigBird graph with blocks of 64 tokens and 12 heads of 64, and
BigBird-base) with the native kernels. Runs that did not measure exactly that are not judged.
"""

from __future__ import annotations

from typing import Any

from experiments.framework.page import digits, quotient
from experiments.speed.attention.case import Case
from experiments.speed.attention.peers import DENSE, FLEX, HUGGING_FACE_BIGBIRD
from experiments.speed.attention.report import crossover, extra_bytes, rates
from experiments.speed.attention.steps import CREATE_BLOCK_MASK, DENSE_LENGTHS, SGEMM
from experiments.speed.contest import Contest
from experiments.speed.encoders import peers as encoders
from experiments.speed.encoders.case import SHAPES, whole
from experiments.speed.report import Goal
from experiments.speed.run import Result
from experiments.speed.timing import Samples, Spread

MINE = "longbird native"


def attention_goals(result: Result) -> list[Goal]:
    """Compare a run of the experiment `attention` with its targets."""
    forward, both, bigbird = Case(4096), Case(4096, backward=True), HUGGING_FACE_BIGBIRD
    return [
        _share(result, forward, 0.85),
        _attention(result, forward, bigbird.name, 14),
        _attention(result, forward, DENSE.name, 7),
        _attention(result, forward, FLEX.name, 2),
        _share(result, both, 0.80),
        _attention(result, both, DENSE.name, 7),
        _attention(result, both, bigbird.name, 7),
        _crossover(result, 128),
        _attention(result, Case(64), DENSE.name, 1),
        _per_token(result, 1.05),
        _never_slower(result, "full"),
        _never_slower(result, "causal"),
        _memory(result, 100),
        _layout(result, 100),
    ]


def encoder_goals(result: Result) -> list[Goal]:
    """Compare a run of the experiment `encoders` with its targets."""
    rows: list[Goal] = []
    base = SHAPES["base"]
    for training, mode, targets in (
        (False, "forward", (4, 2.2, 1)),
        (True, "training step", (3.5, 2.6, 1)),
    ):
        wanted = (base, (4096,), training)
        found = [
            x for x in result.contests if (x.case.shape, x.case.lengths, x.case.training) == wanted
        ]
        layers = f" ({found[0].case.layers} of {base.layers} layers run)" if found else ""
        what = f"whole {base.name} encoder, 4,096 tokens, {mode}{layers}"
        samples = whole(found[0]) if found else {}
        for peer, least in zip(encoders.PEERS, targets, strict=True):
            rows.append(faster(what, peer.name, least, samples))
    return rows


def int8_goals(result: Result) -> list[Goal]:
    """Compare a run of the experiment `int8` with its target."""
    shape = SHAPES["minilm"]
    goal = Goal(
        f"whole {shape.name} encoder, 4,096 tokens, forward, int8", "its float32", "1.5 x faster"
    )
    for held in result.contests:
        if (held.case.shape, held.case.lengths) == (shape, (4096,)):
            names = (result.settings.peers[0].name, result.mine)
            theirs, mine = (1e3 * held.median(name) for name in names)
            return [_judged(goal, theirs, mine, "ms", 1.5)]
    return [goal]


def _attention(result: Result, case: Case, peer: str, least: float) -> Goal:
    held = result.contest(case)
    return faster(_what(case), peer, least, held.samples if held else {})


def _what(case: Case) -> str:
    return f"{case.mode}, {case.n:,} tokens"


def faster(what: str, peer: str, least: float, samples: Samples) -> Goal:
    """Return whether Longbird is faster than a peer by a factor; 1 stands for "not slower"."""
    goal = Goal(what, peer, f"{least:g} x faster" if least > 1 else "not slower")
    if not {peer, MINE} <= set(samples):
        return goal
    theirs, mine = (1e3 * Spread.of(samples[name]).median for name in (peer, MINE))
    return _judged(goal, theirs, mine, "ms", least)


def _judged(goal: Goal, theirs: float, mine: float, unit: str, least: float) -> Goal:
    factor = quotient(theirs, mine)
    measured = f"{digits(factor)} x: {digits(mine)} against {digits(theirs)} {unit}"
    return Goal(goal.what, goal.peer, goal.target, measured, factor >= least)


def _share(result: Result, case: Case, least: float) -> Goal:
    goal = (_what(case), "share of sgemm", f"at least {least:.0%}")
    held = result.contest(case)
    if held is None or not {MINE, SGEMM} <= set(held.samples):
        return Goal(*goal)
    own, matmul = rates(held, MINE)
    share = quotient(own, matmul)
    measured = f"{share:.1%}: {digits(own)} of {digits(matmul)} GFLOP/s"
    return Goal(*goal, measured, share >= least)


def _crossover(result: Result, longest: int) -> Goal:
    goal = ("shortest length at which it is faster", DENSE.name, f"{longest} tokens or fewer")
    if not all(_ran(result.contest(Case(n)), DENSE.name) for n in (longest, 512, 4096)):
        return Goal(*goal)
    forward, both = (crossover(result, backward) for backward in (False, True))
    measured = f"{forward or 'none'}; forward and backward {both or 'none'}"
    return Goal(*goal, measured, forward is not None and forward <= longest)


def _ran(held: Contest | None, peer: str) -> bool:
    return held is not None and {peer, MINE} <= set(held.samples)


def _per_token(result: Result, most: float) -> Goal:
    long, short = 65536, 4096
    what = f"time per token, {long:,} against {short:,} tokens"
    goal = (what, "itself", f"at most {most:g}")
    held = result.contest(Case(long, task="time per token"))
    if held is None or result.mine != MINE:
        return Goal(*goal)
    more, less = (1e6 * held.median(str(n)) / n for n in (long, short))
    factor = quotient(more, less)
    measured = f"{digits(factor)}: {digits(more)} against {digits(less)} µs"
    return Goal(*goal, measured, factor <= most)


def _never_slower(result: Result, pattern: str) -> Goal:
    """Return the smallest ratio over the lengths of the target, if all were measured."""
    cases = [Case(n, pattern=pattern) for n in DENSE_LENGTHS]
    what = f"{cases[0].graph!r}, forward, {cases[0].n} to {cases[-1].n:,} tokens"
    goal = (what, DENSE.name, "never slower")
    found: list[Any] = [result.contest(case) for case in cases]
    if not all(_ran(held, DENSE.name) for held in found):
        return Goal(*goal)
    factors = {
        held.case.n: quotient(1e3 * held.median(DENSE.name), 1e3 * held.median(MINE))
        for held in found
    }
    worst, best = min(factors, key=factors.__getitem__), max(factors, key=factors.__getitem__)
    measured = f"{digits(factors[worst])} x at {worst:,} to {digits(factors[best])} x at {best:,}"
    return Goal(*goal, measured, factors[worst] >= 1)


def _memory(result: Result, least: float) -> Goal:
    case, peer = Case(16384), HUGGING_FACE_BIGBIRD.name
    what = f"memory at {case.n:,} tokens, forward, beyond q, k, v and the output"
    goal = Goal(what, peer, f"{least:g} x less")
    taken = {
        x.peer: extra_bytes(x) / 1e6 for x in result.peaks if x.case == case and not x.skipped
    }
    if not {MINE, peer} <= set(taken):
        return goal
    return _judged(goal, taken[peer], taken[MINE], "MB", least)


def _layout(result: Result, least: float) -> Goal:
    case = Case(16384, task="layout")
    held = result.contest(case)
    what = f"layout for {case.n:,} tokens, {case.heads} heads, first call"
    return faster(what, CREATE_BLOCK_MASK, least, held.samples if held else {})
