"""The report of the experiment `training`."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.framework.page import Sheet
from experiments.speed.contest import Contest
from experiments.speed.encoders.case import CHUNK
from experiments.speed.plot import Panel
from experiments.speed.report import Report, comparison, memory, tokens_a_second
from experiments.speed.run import Result
from experiments.speed.timing import Samples, Spread
from experiments.speed.training.case import DROPOUT, SHORTEST, Case, histogram
from experiments.speed.training.steps import contestants

WORK = (
    "Work: everybody learns to classify the same documents with the same tokenizer (MiniLM's, "
    "30,522 words), random weights of the same sizes, fp32, fused AdamW with gradients clipped at "
    f"1, and dropout of {DROPOUT:g}. Longbird trains as `longbird finetune classify` does, with "
    "batches by tokens; the others with `transformers.Trainer`, documents as an Arrow file and "
    "DataCollatorWithPadding. A call is an epoch: all documents once, in as many steps (Longbird: "
    "or more), from fetching the first batch to the end of the last step. Only the documents' "
    "tokens count, padding does not."
)
PEERS = (
    "Longbird and Hugging Face's BigBird have blocks of 64, a window of 3 blocks, 3 random blocks "
    "and two global blocks; batches of the latter are padded to 768 tokens at least, as a shorter "
    "one would switch it to full attention, and it is looked at after each epoch that it has not. "
    f"BERT reads each document as chunks of {CHUNK}, which do not see each other. Everybody runs "
    "in a process of its own."
)


def report(result: Result) -> Report:
    """Return the report of a run."""
    even = [held for held in result.contests if not held.case.ragged]
    ragged = [held for held in result.contests if held.case.ragged]
    facts = [*(f"Shape: {shape}" for shape in result.settings.shapes), WORK, PEERS]
    sheets: list[Sheet] = []
    for what, series in (("Documents of equal length", even), ("Real documents", ragged)):
        if series:
            sheets += [_speed(result, what, series), _loading(result, what, series)]
            sheets.append(_memory(result, what, series))
    panels = [_panel(result, series) for series in _by_shape(even or ragged)]
    return Report("Training", facts, sheets, [panels])


def _by_shape(contests: list[Contest]) -> list[list[Contest]]:
    shapes = dict.fromkeys(held.case.shape for held in contests)
    return [[held for held in contests if held.case.shape == shape] for shape in shapes]


def _panel(result: Result, series: Sequence[Contest]) -> Panel:
    def scaled(held: Contest) -> Samples:
        share = 1000 / sum(held.facts["lengths"]) / held.case.layers
        return {name: [share * x for x in each] for name, each in held.samples.items()}

    case = series[0].case
    title = f"{case.shape.name}{', real documents' if case.ragged else ''}: 1,000 tokens, a layer"
    return Panel.of(title, series, contestants(result.settings, case), scaled)


def _name(case: Case) -> tuple[str, str, str]:
    return case.shape.name, case.what, f"{case.layers} of {case.shape.layers}"


def _speed(result: Result, what: str, series: Sequence[Contest]) -> Sheet:
    case = series[0].case
    rows = [
        tokens_a_second(held, sum(held.facts["lengths"]), result.mine, *_name(held.case))
        for held in series
    ]
    notes = _about_ragged(series[0]) if case.ragged else ()
    title = f"{what}: tokens a second (how many times longbird is faster)"
    heads = ("shape", "documents", "layers run")
    return comparison(title, heads, rows, contestants(result.settings, case), notes)


def _about_ragged(held: Contest) -> tuple[str, ...]:
    case, lengths = held.case, held.facts["lengths"]
    share = sum(lengths) / (case.length * case.documents)
    return (
        f"Texts of licences of at least {SHORTEST} tokens, evenly spaced in the order of their "
        f"lengths, cut at {case.length:,}: {histogram(lengths)}; {sum(lengths):,} tokens, "
        f"{share:.0%} of what as many documents of {case.length:,} would have.",
        f"Hugging Face's models in two ways: batches of {case.batch} as they come, padded to the "
        "longest, which is what Trainer does by default; and one document at a time with "
        f"gradients accumulated over {case.batch}, so that none is padded to the length of "
        "another: the best that sorting by length can do.",
    )


def _loading(result: Result, what: str, series: Sequence[Contest]) -> Sheet:
    """Return the share of time in which a trainer waits for data."""
    everybody = contestants(result.settings, series[0].case)

    def share(held: Contest, name: str) -> str:
        found = held.facts.get(f"loading, {name}")
        return f"{Spread.of(found).median:.2%}" if found else "-"

    rows = [(*_name(held.case), *(share(held, x.name) for x in everybody)) for held in series]
    heads = ("shape", "documents", "layers run", *(peer.short for peer in everybody))
    note = "Fewer layers make the share larger: what is waited for is the same, the step shorter."
    return Sheet(f"{what}: share of the time spent waiting for data", heads, rows, (note,))


def _memory(result: Result, what: str, series: Sequence[Contest]) -> Sheet:
    cases = [held.case for held in series]
    sheet = memory(
        f"what was resident before the first step: {what.lower()}",
        ("shape", "documents", "layers run"),
        [each for each in result.peaks if each.case in cases],
        contestants(result.settings, cases[0]),
        _name,
        lambda each: each.extra_bytes or 0,
        "Resident memory of the process; libraries and weights are there before, gradients, "
        "AdamW's state and activations count.",
    )
    return sheet
