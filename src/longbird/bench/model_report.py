"""What a run of whole encoders measured, as tables, Markdown, JSON and a plot."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from longbird.bench import plot
from longbird.bench.encoders import CHUNK, VOCABULARY, Shape
from longbird.bench.environment import cpu_slug
from longbird.bench.goals import model_goals
from longbird.bench.model import MODES, Pass, Result, Series
from longbird.bench.report import (
    Sheet,
    circumstances,
    goal_sheet,
    page,
    ratio_cell,
    reasons,
    save,
    spread_cell,
    times,
    verdicts,
)
from longbird.bench.timing import Spread


def sheets(result: Result) -> list[Sheet]:
    """Everything that a run has to say."""
    tables = [goal_sheet(model_goals(result), result.environment)]
    for shape in result.settings.shapes:
        tables += [_length_sheet(result, shape, training=training) for training in (False, True)]
    tables += [_ragged_sheet(result), _memory_sheet(result)]
    return [*tables, _long_sheet(result.long)] if result.long else tables


def write(result: Result, folder: Path) -> list[Path]:
    """Write JSON, Markdown and the plot into a folder; files of the same day are replaced."""
    name = f"model_{cpu_slug(result.environment['cpu'])}_{result.date}"
    settings = result.settings
    facts = [
        *(f"Shape: {shape}" for shape in settings.shapes),
        "Work: one document, random weights, fp32, batch 1, no dropout. Longbird and Hugging "
        "Face's BigBird have blocks of 64, a window of 3 blocks, 3 random blocks and two global "
        f"blocks; BERT reads the same tokens as a batch of chunks of {CHUNK}, which do not see "
        "each other. Forward in eval mode without gradients; a training step is forward, backward "
        f"and fused AdamW. Embeddings (a vocabulary of {VOCABULARY:,}) are included, heads are "
        "not.",
        f"Layers: {settings.layers} of a model, and none: the difference, times the layers of "
        "the shape, gives the whole encoder. All layers are run forward at "
        f"{settings.reference_length:,} tokens.",
        *circumstances(result.environment, settings.repeats),
        "Everybody checked, with one layer, against a dense model with the same weights: "
        + verdicts(result.verified),
    ]
    title = f"Whole encoders on {result.environment['cpu']}, {result.date}"
    markdown = page(title, result.command, facts, sheets(result), f"{name}.png")
    paths = save(folder, name, as_json(result), markdown)
    return [*paths, _draw(result, folder / f"{name}.png")]


def as_json(result: Result) -> dict[str, Any]:
    """All samples and all circumstances of a run."""
    settings = result.settings
    return {
        "command": result.command,
        "date": result.date,
        "environment": result.environment,
        "settings": {
            "shapes": [asdict(shape) for shape in settings.shapes],
            "lengths": list(settings.lengths),
            "layers": settings.layers,
            "vocabulary": VOCABULARY,
            "implementation": settings.implementation,
            "peers": [peer.name for peer in settings.peers],
            "repeats": settings.repeats,
            "limit_seconds": settings.limit,
            "budget_seconds": settings.budget,
        },
        "goals": [asdict(goal) for goal in model_goals(result)],
        "verified": result.verified,
        "series": [asdict(series) for series in result.series],
        "ragged": asdict(result.ragged),
        "memory": [asdict(each) for each in result.memory],
        "long": asdict(result.long) if result.long else None,
    }


def _length_sheet(result: Result, shape: Shape, *, training: bool) -> Sheet:
    series = [x for x in result.series if (x.shape, x.training) == (shape, training)]
    return Sheet(
        _title(shape, MODES[training]),
        ("tokens", *_columns(result)),
        [(f"{each.n:,}", *_cells(result, each)) for each in series],
        tuple(reasons((f"{each.n:,}", each.skipped) for each in series)),
    )


def _ragged_sheet(result: Result) -> Sheet:
    series = result.ragged
    lengths = ", ".join(f"{n:,}" for n in series.lengths)
    real, places = sum(series.lengths), series.n * len(series.lengths)
    return Sheet(
        "Padding: " + _title(series.shape, "forward"),
        ("documents of", *_columns(result)),
        [(f"{lengths} tokens", *_cells(result, series))],
        (
            f"One batch, padded to {series.n:,}: {real:,} of {places:,} places are tokens. "
            "Longbird computes those alone, and BERT the chunks that have any.",
            *reasons([("this batch", series.skipped)]),
        ),
    )


def _title(shape: Shape, mode: str) -> str:
    return (
        f"{shape.name}, {mode}, milliseconds of all {shape.layers} layers "
        "(how many times longbird is faster)"
    )


def _columns(result: Result) -> tuple[str, ...]:
    return ("layers run", result.longbird, *(peer.short for peer in result.settings.peers))


def _cells(result: Result, series: Series) -> tuple[str, ...]:
    whole, mine = series.whole, result.longbird
    theirs = (ratio_cell(whole, peer.name, mine) for peer in result.settings.peers)
    return (str(series.layers), spread_cell(whole, mine), *theirs)


def _memory_sheet(result: Result) -> Sheet:
    names = {result.longbird: result.longbird}
    names |= {peer.name: peer.short for peer in result.settings.peers}
    rows: dict[tuple[str, str, str, str], dict[str, Pass]] = {}
    for each in result.memory:
        shape = each.shape
        row = (f"{each.n:,}", shape.name, str(shape.layers), MODES[each.training])
        rows.setdefault(row, {})[each.peer] = each
    return Sheet(
        "Peak memory of one call beyond what was resident before, MB (how many times longbird's)",
        ("tokens", "shape", "layers", "mode", *names.values()),
        [
            (*row, *(_memory_cell(taken.get(name), taken[result.longbird]) for name in names))
            for row, taken in rows.items()
        ],
        (
            "Resident memory of a fresh process; weights and AdamW's state are there before. A "
            "training step holds the activations of all its layers, forward those of one.",
            *reasons(
                (
                    f"{each.shape.name} {MODES[each.training]} of {each.n:,}",
                    {each.peer: each.skipped},
                )
                for each in result.memory
                if each.skipped
            ),
        ),
    )


def _memory_cell(taken: Pass | None, mine: Pass) -> str:
    if taken is None or taken.extra_bytes is None:
        return "-"
    own = f"{taken.extra_bytes / 1e6:,.0f}"
    if taken is mine or not mine.extra_bytes:
        return own
    return f"{own} ({times(taken.extra_bytes / mine.extra_bytes)})"


def _long_sheet(taken: Pass) -> Sheet:
    shape = taken.shape
    rows: list[tuple[str, ...]] = []
    if taken.seconds is not None and taken.peak_bytes is not None:
        memory = f"{taken.peak_bytes / 1e9:.1f} GB"
        speed = f"{taken.n / taken.seconds:,.0f}"
        rows.append((f"{taken.n:,}", f"{taken.seconds:.1f} s", speed, memory))
    return Sheet(
        f"One long sequence: forward through all {shape.layers} layers",
        ("tokens", "time", "tokens a second", "peak memory of the process"),
        rows,
        (
            f"{shape}; a position embedding for every token; layouts are made in the call; the "
            "peak includes weights, inputs and libraries.",
            *([f"Not run: {taken.skipped}"] if taken.skipped else []),
        ),
    )


def _draw(result: Result, path: Path) -> Path:
    labels = {result.longbird: result.longbird}
    labels |= {peer.name: peer.short for peer in result.settings.peers}
    rows = [
        [
            plot.Panel(
                f"{shape.name}, {MODES[training]}",
                {
                    label: [
                        (series.n, Spread.of(series.whole[name]))
                        for series in result.series
                        if (series.shape, series.training) == (shape, training)
                        and name in series.samples
                    ]
                    for name, label in labels.items()
                },
            )
            for training in (False, True)
        ]
        for shape in result.settings.shapes
    ]
    where = result.environment
    heading = f"{where['cpu']}, threads: {where['threads']}, {result.date}, whole encoders, fp32"
    return plot.draw(rows, heading, "milliseconds", path)
