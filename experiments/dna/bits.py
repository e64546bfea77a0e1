"""Bits per base of tables and of models.

Columns are `bits` and `bases`, of which the metric is `ratio_of("bits", "bases")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.dna.bases import letters
from experiments.dna.corpora import Corpus, by_piece
from experiments.dna.markov import STRENGTHS, Markov, TwoSided, choose
from experiments.framework.experiment import Attempt, Contestant, Outcome

if TYPE_CHECKING:
    from longbird.applications.dna.runs import TrainedDna

ORDERS, WIDTHS = 12, 6
"""The longest contexts that are tried."""
PASSES = 20
"""A pass hides one token in so many: few, since tables see all the neighbours of a base."""


def tables(load: Callable[[], Corpus], settings: Mapping[str, Any]) -> list[Contestant]:
    """Return contestants: tables of one side, of both sides, and of four or six bases per side.

    Args:
        load: Loads the corpus.
        settings: Everything that determines the corpus.
    """
    every: list[tuple[str, str, Callable[[], Markov | TwoSided], int | None]] = [
        (
            "one-sided table",
            f"each base by up to {ORDERS} before it; how many is chosen",
            lambda: Markov(ORDERS),
            None,
        ),
        ("one-sided table, order 3", "each base by 3 before it", lambda: Markov(3), 3),
        ("one-sided table, order 7", "each base by 7 before it", lambda: Markov(7), 7),
        (
            "two-sided table",
            f"each base by up to {WIDTHS} on each side; how many is chosen",
            lambda: TwoSided(WIDTHS),
            None,
        ),
        ("two-sided table, 4 + 4", "each base by 4 on each side", lambda: TwoSided(4), 4),
        ("two-sided table, 6 + 6", "each base by 6 on each side", lambda: TwoSided(6), 6),
    ]
    return [
        Contestant(
            title,
            about,
            partial(bits_of_table, load, make, size),
            {**settings, "size": size, "strengths": STRENGTHS},
            seeded=False,
        )
        for title, about, make, size in every
    ]


def bits_of_table(
    load: Callable[[], Corpus],
    make: Callable[[], Markov | TwoSided],
    size: int | None,
    attempt: Attempt,
) -> Outcome:
    """Count, choose the smoothing (and the size, if not given), and measure."""
    given = load()
    model = make().count(given.train)
    chosen = choose(model, given.validation, size=size)
    attempt.say(f"size {chosen.size}, strength {chosen.strength:g}")
    columns: dict[str, list[float]] = {"bits": [], "bases": []}
    for stretch in given.test:
        bits, bases = by_piece(model.bits(stretch, chosen.strength)[chosen.size])
        columns["bits"] += bits.tolist()
        columns["bases"] += bases.tolist()
    facts = {"size": chosen.size, "strength": chosen.strength, "validation bits": chosen.bits}
    return Outcome(columns, {"bases": float(sum(map(len, given.train)))}, facts)


def bits_of_model(
    trained: TrainedDna, stretch: np.ndarray, passes: int = PASSES, batch: int = 16384
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bits of tokens that a model predicts from all others, at their first base.

    A stretch is read in windows that do not overlap. In each pass one token in `PASSES` is hidden,
    so
    that this many passes cover every token; fewer passes are a sample.

    Args:
        trained: A model that predicts masked tokens.
        stretch: [bases]
        passes: Number of passes.
        batch: Number of tokens that are read at once.

    Returns:
        Bits and the number of bases of the token, each [bases]; NaN and 0 at bases where no hidden
            token begins, or an unknown one.
    """
    import torch
    from torch.nn import functional as F

    from longbird.models.layers.checks import IGNORED

    task, model, mask = trained.task, trained.model, trained.tokenizer.mask_token_id
    bits, bases = np.full(len(stretch), np.nan), np.zeros(len(stretch), int)
    waiting: list[tuple[dict[str, list[int]], np.ndarray, np.ndarray]] = []

    def flush() -> None:
        rows = task.pad([inputs for inputs, _, _ in waiting])
        with torch.no_grad():
            logits = model(**rows).logits  # [hidden tokens of all windows, vocabulary]
        right = rows["labels"][rows["labels"] != IGNORED]
        nats = F.cross_entropy(logits.float(), right, reduction="none").double().numpy()
        at = np.concatenate([begins for _, begins, _ in waiting])
        bits[at], bases[at] = nats / np.log(2), np.concatenate([x for _, _, x in waiting])
        waiting.clear()

    model.config.sparse_prediction = True
    for begin, end in _windows(trained, stretch):
        encoding = task.tokens.encode(letters(stretch[begin:end]))
        ids = np.array(task.tokens.inputs(encoding))
        known = np.append(np.insert(encoding.ids != task.tokens.unknown_base, 0, False), False)
        turn = np.random.default_rng(begin).permutation(len(ids)) % PASSES
        for number in range(passes):
            hidden = np.flatnonzero(known & (turn == number))
            if not len(hidden):
                continue
            seen, labels = ids.copy(), np.full(len(ids), IGNORED)
            seen[hidden], labels[hidden] = mask, ids[hidden]
            bounds = encoding.bounds
            lengths = np.diff(bounds)[hidden - 1]
            inputs = {"input_ids": seen.tolist(), "labels": labels.tolist()}
            waiting.append((inputs, begin + bounds[hidden - 1], lengths))
            if sum(len(each["input_ids"]) for each, _, _ in waiting) >= batch:
                flush()
    if waiting:
        flush()
    return bits, bases


def _windows(trained: TrainedDna, stretch: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield as many bases at a time as the model can read; for BPE this is found by trying."""
    task, length = trained.task, trained.settings.length
    longest = int(task.tokens.dna.lengths.max())
    begin = 0
    while begin < len(stretch):
        end = min(begin + (length - 2) * longest, len(stretch))
        encoding = task.tokens.encode(letters(stretch[begin:end]))
        if len(encoding) > length - 2:
            end = begin + int(encoding.bounds[length - 2])
        while len(task.tokens.encode(letters(stretch[begin:end]))) > length - 2:
            end -= 1  # a piece that is cut may become several
        yield begin, end
        begin = end
