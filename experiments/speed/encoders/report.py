"""The report of the experiments `encoders` and `int8`."""

from __future__ import annotations

from experiments.framework.page import Sheet, digits
from experiments.speed.contest import Contest
from experiments.speed.encoders.case import CHUNK, VOCABULARY, Shape, whole
from experiments.speed.encoders.steps import REFERENCE
from experiments.speed.memory import Peak
from experiments.speed.plot import Panel
from experiments.speed.report import Report, comparison, memory, milliseconds
from experiments.speed.run import Result

WORK = (
    "Work: one document, random weights, fp32, batch 1, no dropout. Longbird and Hugging Face's "
    "BigBird have blocks of 64, a window of 3 blocks, 3 random blocks and two global blocks; BERT "
    f"reads the same tokens as a batch of chunks of {CHUNK}, which do not see each other. Forward "
    "in eval mode without gradients; a training step is forward, backward and fused AdamW. "
    f"Embeddings (a vocabulary of {VOCABULARY:,}) are included, heads are not."
)

INT8_WORK = (
    "Work: one document, random weights, batch 1, forward in eval mode without gradients, on the "
    "BigBird graph with blocks of 64: Longbird's encoder with int8 weights in its layers beside "
    f"the same in float32. Embeddings (a vocabulary of {VOCABULARY:,}) are included, heads are "
    "not."
)


def report(result: Result) -> Report:
    """Return the report of a run."""
    settings = result.settings
    layers = (
        f"Layers: forward at {REFERENCE:,} tokens runs all of a shape. Elsewhere "
        f"{settings.layers} of a model and none are run, and the difference, times the layers of "
        "the shape, gives the whole encoder."
    )
    series = [
        [found for training in (False, True) if (found := _series(result, shape, training))]
        for shape in settings.shapes
    ]
    panels = [
        [
            Panel.of(f"{x[0].case.shape.name}, {x[0].case.mode}", x, settings.everybody, whole)
            for x in row
        ]
        for row in series
    ]
    sheets = [_time_sheet(result, "", "tokens", found) for row in series for found in row]
    if any(len(held.case.lengths) > 1 for held in result.contests):  # not of int8 alone
        sheets += [_ragged_sheet(result), _memory_sheet(result)]
    sheets += [_long_sheet(each) for each in result.peaks if each.case == settings.long_case]
    work = INT8_WORK if result.bench == "int8" else WORK
    facts = [*(f"Shape: {shape}" for shape in settings.shapes), work, layers]
    return Report("Whole encoders", facts, sheets, panels)


def _series(result: Result, shape: Shape, training: bool) -> list[Contest]:
    """Return the comparisons of one document, by length."""
    found = [held for held in result.contests if held.case.kind == (shape, training, 1)]
    return sorted(found, key=lambda held: held.case.n)


def _time_sheet(
    result: Result, before: str, head: str, series: list[Contest], *notes: str
) -> Sheet:
    shape, mode = series[0].case.shape, series[0].case.mode
    rows = [
        milliseconds(
            held,
            whole(held),
            result.mine,
            ", ".join(f"{n:,}" for n in held.case.lengths),
            f"{held.case.layers} of {shape.layers}",
        )
        for held in series
    ]
    title = (
        f"{before}{shape.name}, {mode}, milliseconds of all {shape.layers} layers "
        "(how many times longbird is faster)"
    )
    return comparison(title, (head, "layers run"), rows, result.settings.everybody, notes)


def _ragged_sheet(result: Result) -> Sheet:
    found = [held for held in result.contests if len(held.case.lengths) > 1]
    case = found[0].case
    note = (
        f"One batch, padded to {case.n:,}: {sum(case.lengths):,} of "
        f"{case.n * len(case.lengths):,} places are tokens. Longbird computes those alone, and "
        "BERT the chunks that have any."
    )
    return _time_sheet(result, "Padding: ", "documents of", found, note)


def _memory_sheet(result: Result) -> Sheet:
    return memory(
        "what was resident before",
        ("tokens", "shape", "layers run", "mode"),
        [each for each in result.peaks if each.case != result.settings.long_case],
        result.settings.everybody,
        lambda case: (f"{case.n:,}", case.shape.name, str(case.layers), case.mode),
        lambda each: each.extra_bytes or 0,
        "Resident memory of a fresh process; weights and AdamW's state are there before. A "
        "training step holds the activations of all its layers, forward those of one.",
    )


def _long_sheet(taken: Peak) -> Sheet:
    shape, n = taken.case.shape, taken.case.n
    row = (f"{n:,}", "-", "-", "-")
    if not taken.skipped:
        speed, memory = digits(n / taken.seconds), f"{taken.peak_bytes / 1e9:.1f} GB"
        row = (f"{n:,}", f"{taken.seconds:.1f} s", speed, memory)
    return Sheet(
        f"One long sequence: forward through all {shape.layers} layers",
        ("tokens", "time", "tokens a second", "peak memory of the process"),
        [row],
        (
            f"{shape}; a position embedding for every token; layouts are made in the call; the "
            "peak includes weights, inputs and libraries.",
            *([f"Not run: {taken.skipped}"] if taken.skipped else []),
        ),
    )
