"""The ratios that Longbird sets itself, and how far a run came.

`goals` has the rows of the design that concern attention alone, `model_goals` those on whole
encoders. They hold for the design's work (BigBird graph of 64-token blocks, 12 heads of 64; all
layers of BigBird-base) at the design's lengths: for anything else the measured ratio is shown, but
not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from longbird.bench import encoders, model
from longbird.bench.attention import CREATE_BLOCK_MASK, Result, Series, Settings
from longbird.bench.peers import DENSE, FLEX, HUGGING_FACE_BIGBIRD
from longbird.bench.timing import Spread, ratio
from longbird.bench.work import Work


@dataclass(frozen=True)
class Goal:
    """One row of the table.

    Attributes:
        what: What is measured.
        peer: What it is compared with.
        target: The ratio to reach, in words.
        measured: The ratio that was measured, in words; or why there is none.
        reached: Was it? None if it was not measured, or the work is not the design's.
    """

    what: str
    peer: str
    target: str
    measured: str
    reached: bool | None


def goals(result: Result) -> list[Goal]:
    """Hold a run against the design's table."""
    n = result.settings.reference_length
    rows: list[Goal] = []
    for backward, share, faster in (
        (False, 0.85, ((HUGGING_FACE_BIGBIRD, 14.0), (DENSE, 7.0), (FLEX, 2.0))),
        (True, 0.75, ((DENSE, 7.0), (HUGGING_FACE_BIGBIRD, 6.0))),
    ):
        what = f"forward{' and backward' if backward else ''}, {n:,} tokens"
        series = result.at(n, backward=backward)
        judged = _designs_work(result) and n == 4096
        rows.append(_share(result, what, series, share, judged))
        rows += [
            _faster(what, series, result.longbird, peer.name, times, judged)
            for peer, times in faster
            if peer in result.settings.peers
        ]
    rows += [_crossover(result), _linearity(result), _memory(result), _layout(result)]
    return rows


def model_goals(result: model.Result) -> list[Goal]:
    """Hold a run of whole encoders against the design's table."""
    settings, n = result.settings, result.settings.reference_length
    shape = settings.shapes[0]
    what = f"whole {shape.name} encoder ({shape.layers} layers), {n:,} tokens, forward"
    series = result.at(shape.name, n, training=False)
    judged = (shape, n, settings.implementation) == (encoders.SHAPES["base"], 4096, "native")
    return [
        _faster(what, series, result.longbird, peer.name, times, judged, digits=2)
        for peer, times in (
            (encoders.HUGGING_FACE_BIGBIRD, 4.0),
            (encoders.HUGGING_FACE_LONGFORMER, 2.0),
            (encoders.BERT, 1.0),
        )
        if peer in settings.peers
    ]


def _designs_work(result: Result) -> bool:
    mine, design = result.settings, Settings()
    return mine.work == Work() and mine.implementation == design.implementation


def _share(result: Result, what: str, series: Series | None, least: float, judged: bool) -> Goal:
    target = f"at least {least:.0%}"
    if series is None:
        return Goal(what, "share of sgemm", target, "this length was not measured", None)
    spread = Spread.of(series.share_of_sgemm(result.longbird, result.settings.work.head_dim))
    measured = f"{spread.median:.1%} ({spread.low:.1%} to {spread.high:.1%})"
    return Goal(
        what, "share of sgemm", target, measured, spread.median >= least if judged else None
    )


def _faster(
    what: str,
    series: Series | model.Series | None,
    mine: str,
    peer: str,
    times: float,
    judged: bool,
    digits: int = 1,
) -> Goal:
    target = f"{times:g} x faster" if times > 1 else "not slower"
    if series is None:
        return Goal(what, peer, target, "this length was not measured", None)
    for name in (peer, mine):
        if name in series.skipped:
            return Goal(what, peer, target, series.skipped[name], None)
    spread = ratio(series.samples[peer], series.samples[mine])
    reached = spread.median >= times if judged else None
    return Goal(what, peer, target, _times(spread, digits), reached)


def _crossover(result: Result) -> Goal:
    what, target = "shortest length at which it beats dense SDPA", "512 tokens or fewer"
    found = result.crossover(backward=False)
    both = result.crossover(backward=True)
    if DENSE not in result.settings.peers:
        return Goal(what, DENSE.name, target, "dense SDPA did not take part", None)
    measured = (
        f"{found:,} tokens" if found else "none of the measured lengths"
    ) + f" (forward and backward: {f'{both:,}' if both else 'none'})"
    reached = found is not None and found <= 512
    judged = _designs_work(result) and result.settings.reference_length == 4096
    return Goal(what, DENSE.name, target, measured, reached if judged else None)


def _linearity(result: Result) -> Goal:
    short, long = result.settings.reference_length, result.settings.long_length
    spread = ratio(result.linearity[long], result.linearity[short])
    judged = _designs_work(result) and (short, long) == (4096, 65536)
    return Goal(
        f"time per token, {long:,} against {short:,} tokens",
        "itself",
        "at most 1.05",
        f"{spread.median:.3f} ({spread.low:.3f} to {spread.high:.3f})",
        spread.median <= 1.05 if judged else None,
    )


def _memory(result: Result) -> Goal:
    n = result.settings.big_length
    what = f"peak memory of one layer's attention at {n:,} tokens, beyond q, k, v and the output"
    target = "1/100"
    taken = {peak.peer: peak for peak in result.memory if peak.n == n and not peak.backward}
    mine, theirs = taken.get(result.longbird), taken.get(HUGGING_FACE_BIGBIRD.name)
    if mine is None or mine.extra_bytes is None:
        reason = mine.skipped if mine and mine.skipped else "it was not taken"
        return Goal(what, HUGGING_FACE_BIGBIRD.name, target, reason, None)
    own = f"{mine.extra_bytes / 1e6:,.1f} MB"
    if theirs is None or theirs.extra_bytes is None:
        reason = theirs.skipped if theirs and theirs.skipped else "it did not take part"
        return Goal(what, HUGGING_FACE_BIGBIRD.name, target, f"{own}; peer: {reason}", None)
    share = mine.extra_bytes / max(1, theirs.extra_bytes)
    return Goal(
        what,
        HUGGING_FACE_BIGBIRD.name,
        target,
        f"1/{1 / max(share, 1e-9):,.0f} ({own} against {theirs.extra_bytes / 1e9:,.2f} GB)",
        share <= 0.01 if _designs_work(result) and n == 16384 else None,
    )


def _layout(result: Result) -> Goal:
    n, heads = result.settings.big_length, result.settings.work.heads
    what, target = f"layout for {n:,} tokens, {heads} heads, first call", "100 x faster"
    peer = f"FlexAttention's {CREATE_BLOCK_MASK}"
    if CREATE_BLOCK_MASK not in result.layout:
        return Goal(what, peer, target, result.layout_skipped[CREATE_BLOCK_MASK], None)
    mine, theirs = result.layout["longbird"], result.layout[CREATE_BLOCK_MASK]
    spread = ratio(theirs, mine)
    return Goal(
        what,
        peer,
        target,
        f"{_times(spread)}: {_milliseconds(mine)} against {_milliseconds(theirs)}",
        spread.median >= 100 if _designs_work(result) and n == 16384 else None,
    )


def _times(spread: Spread, digits: int = 1) -> str:
    low, median, high = (f"{x:.{digits}f}" for x in (spread.low, spread.median, spread.high))
    return f"{median} x ({low} to {high})"


def _milliseconds(samples: Sequence[float]) -> str:
    return f"{1e3 * Spread.of(samples).median:,.1f} ms"
