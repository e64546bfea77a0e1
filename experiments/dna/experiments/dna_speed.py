"""Bases per second, scanned and trained, beside Hugging Face's BigBird and full attention.

A scan reads a stretch of a genome, splits it into tokens, runs a model with scores for each base
and strand over windows, and returns the scores. Training is a whole step on the same windows. All
contestants use the code of `longbird dna`, with models of the same sizes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from experiments.speed.contest import Call, Contest, Peer
from experiments.speed.encoders import peers as encoders
from experiments.speed.encoders.case import Case as EncoderCase
from experiments.speed.encoders.case import Shape
from experiments.speed.encoders.peers import BLOCK, RANDOM, Encoder, adamw
from experiments.speed.hugging_face import numpy_state_kept, transformers_module
from experiments.speed.plot import Panel
from experiments.speed.report import Report, Row, comparison
from experiments.speed.run import Comparison, Result, Settings, Step
from experiments.speed.timing import Spread
from longbird.applications.dna.coding import Coding
from longbird.applications.dna.genomes import DnaTokenizer
from longbird.applications.dna.genomes.letters import opposite
from longbird.applications.dna.settings import DnaLabelSettings
from longbird.core.graph.presets import bigbird

SHAPES = {
    "default": (Shape("mini", 4, 256, 4, 1024), Shape("tiny", 2, 128, 2, 512)),
    "quick": (Shape("tiny", 1, 32, 2, 64),),
}
TOKENS = {"base": "single bases", "bpe": "BPE of 4,096 pieces"}
WINDOWS = 2
"""Of a call."""
CHECKED = 1024
"""Tokens, which the dense reference can hold."""
LEARNED = 2_000_000
"""Bases that pieces are learned from."""


@dataclass(frozen=True)
class Case:
    """Windows of a genome that are scanned or trained on.

    Attributes:
        shape: Sizes of the model.
        length: Number of tokens per window.
        tokens: Kind of token.
        training: Whether to run a training step.
    """

    shape: Shape
    length: int
    tokens: str = "base"
    training: bool = False

    @property
    def n(self) -> int:
        """Number of tokens per window."""
        return self.length

    @property
    def layers(self) -> int:
        """Number of layers, all of which run."""
        return self.shape.layers

    @property
    def kind(self) -> Hashable:
        """A value that is equal for cases that differ only in tokens."""
        return self.shape, self.tokens, self.training

    @property
    def name(self) -> tuple[str, str, str]:
        """The first cells of its row."""
        return (
            "trained" if self.training else "scanned",
            f"{self.shape.name}: {self.shape.layers} layers of {self.shape.width}",
            f"{TOKENS[self.tokens]}, {self.length:,} tokens",
        )

    def __str__(self) -> str:
        """Return a line for the progress display."""
        return ", ".join(self.name)

    @property
    def encoder(self) -> EncoderCase:
        """The same case for a comparison of encoders."""
        lengths = (self.length,) * WINDOWS
        return EncoderCase(self.shape, lengths, self.shape.layers, self.training)


@cache
def tokenizer_of(tokens: str) -> Any:
    """Return a tokenizer of transformers; BPE is trained on E. coli."""
    from longbird.applications.reading.loading import load_tokenizer

    made = DnaTokenizer.base() if tokens == "base" else DnaTokenizer.train([_ecoli(LEARNED)], 4096)
    with tempfile.TemporaryDirectory() as folder:
        made.save(folder)
        return load_tokenizer(folder)


@cache
def task_of(case: Case) -> tuple[Coding, list[str]]:
    """Return the task, and windows of E. coli that fill a model."""
    task = Coding()
    settings = DnaLabelSettings(task=task.name, train=(), length=case.length)
    task.prepare(settings, tokenizer_of(case.tokens))
    text = _ecoli(WINDOWS * case.length * 8)
    windows: list[str] = []
    at = 0
    for _ in range(WINDOWS):
        encoding = task.tokens.encode(text[at : at + 8 * case.length])
        most = int(encoding.bounds[min(case.length - 2, len(encoding))])
        while not all(task.tokens.fits(x) for x in _strands(text[at : at + most])):
            most -= 8
        windows.append(text[at : at + most])
        at += most
    return task, windows


def _ecoli(most: int) -> str:
    from experiments.dna.bases import letters
    from experiments.dna.organisms import bacterium

    [sequence] = bacterium("E. coli").sequences.values()
    return letters(sequence[:most])


def _strands(bases: str) -> tuple[str, str]:
    return bases, opposite(bases)


def bases_of(case: Case) -> int:
    """Return the number of bases of the windows of a call."""
    return sum(map(len, task_of(case)[1]))


@dataclass(frozen=True, kw_only=True)
class Reader(Peer):
    """A contestant.

    Attributes:
        encoder: Its encoder, whose graph is checked.
        build: Builds a model with logits for each token.
    """

    encoder: Encoder
    build: Callable[[Case], Any]

    def calls(self, *cases: Case) -> list[Call]:
        """Return scans or training steps."""
        return [self._call(case) for case in cases]

    def _call(self, case: Case) -> Call:
        self.encoder.refuse_if_impossible(case.encoder)
        task, windows = task_of(case)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = self.build(case)
        if not case.training:
            model.eval()

            def scan() -> Any:
                with torch.no_grad(), numpy_state_kept():
                    return task.scored(model, windows)

            return scan
        model.train()
        optimizer = adamw(model)

        def step() -> None:
            examples = [{**task.inputs_of(_row(each), 0, 0, None)} for each in windows]
            batch = task.batch(examples, task.pad)
            with numpy_state_kept():
                loss = task.loss(task.run(model, batch), batch, None)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    def difference(self, case: Case) -> float:
        """Return the largest difference of its encoder from dense attention on its graph."""
        return self.encoder.difference(EncoderCase(case.shape, (case.length,), 1))


def _row(bases: str) -> dict[str, Any]:
    return {"bases": bases, "truth": np.arange(2 * len(bases)) // 300 % 2}


def _sizes(case: Case) -> dict[str, Any]:
    tokenizer = tokenizer_of(case.tokens)
    return {
        **case.encoder.sizes,
        "vocab_size": len(tokenizer),
        "num_labels": 2,
        "pad_token_id": tokenizer.pad_token_id,
        "max_position_embeddings": case.length,
    }


def _longbird(case: Case) -> Any:
    from longbird.models import LongbirdConfig, LongbirdForTokenClassification

    return LongbirdForTokenClassification(
        LongbirdConfig(
            **_sizes(case),
            graph=bigbird(block=BLOCK, random=RANDOM),
        )
    )


def _bigbird(case: Case) -> Any:
    transformers = transformers_module()
    config = transformers.BigBirdConfig(
        **_sizes(case),
        attention_type="block_sparse",
        block_size=BLOCK,
        num_random_blocks=RANDOM,
    )
    return transformers.BigBirdForTokenClassification(config)


def _full(case: Case) -> Any:
    transformers = transformers_module()
    config = transformers.BertConfig(
        **_sizes(case),
        attn_implementation="sdpa",
    )
    return transformers.BertForTokenClassification(config)


def _bert(case: EncoderCase) -> Any:
    transformers = transformers_module()
    config = transformers.BertConfig(
        **case.sizes, max_position_embeddings=case.n, attn_implementation="sdpa"
    )
    return transformers.BertModel(config)


MINE = Reader(
    name="longbird native", short="longbird", encoder=encoders.longbird(), build=_longbird
)
PEERS = (
    Reader(
        name="Hugging Face BigBird",
        short="HF BigBird",
        growth=2,
        encoder=encoders.HUGGING_FACE_BIGBIRD,
        build=_bigbird,
    ),
    Reader(
        name="Hugging Face BERT with SDPA, full attention",
        short="full attention (HF BERT)",
        growth=2,
        encoder=Encoder(name="BERT, full", short="BERT, full", build=_bert),
        build=_full,
    ),
)


@dataclass(frozen=True, kw_only=True)
class SpeedSettings(Settings):
    """What to measure."""

    mine: Peer = MINE
    peers: tuple[Peer, ...] = PEERS
    lengths: tuple[int, ...] = (1024, 4096)
    budget: float = 40.0
    shapes: tuple[Shape, ...] = field(default_factory=lambda: SHAPES["default"])
    kinds: tuple[str, ...] = tuple(TOKENS)

    @property
    def cases(self) -> list[Case]:
        """All comparisons."""
        return [
            Case(shape, length, tokens, training)
            for training in (False, True)
            for shape in self.shapes
            for tokens in self.kinds
            for length in self.lengths
        ]


def experiment(scale: str) -> Comparison:
    """Return the comparison at a scale."""
    settings = SpeedSettings()
    if scale == "quick":
        settings = SpeedSettings(
            lengths=(CHECKED,), shapes=SHAPES[scale], budget=0.0, repeats=1, kinds=("base",)
        )
    return Comparison("dna-speed", settings, steps(settings), report)


def steps(given: SpeedSettings) -> list[Step]:
    """Return all steps in order."""
    small = Case(given.shapes[0], CHECKED)
    return [
        Step("checking that everybody computes what it claims", lambda x: x.verify(small)),
        *(Step(str(case), partial(_compare, case)) for case in given.cases),
    ]


def _compare(case: Case, result: Result) -> None:
    result.compare(case, result.settings.everybody, limit=float("inf"), bases=bases_of(case))


def report(result: Result) -> Report:
    """Return the report of a run."""
    rows = [_row_of(held, result.mine) for held in result.contests]
    everybody = result.settings.everybody
    sheet = comparison(
        "Bases a second (how many times longbird is faster)",
        ("what", "model", "tokens"),
        rows,
        everybody,
        [
            "Peers' spread: "
            + "; ".join(
                f"{', '.join(held.case.name)}: "
                + ", ".join(
                    f"{peer.short} {spread.low:,.0f} to {spread.high:,.0f}"
                    for peer in everybody[1:]
                    if (spread := _rate(held, peer.name)) is not None
                )
                for held in result.contests
            )
        ],
    )
    facts = [
        "Work: a scan cuts windows of bases into tokens, runs a model with a head for each base "
        f"and strand, and has the scores of all bases; {WINDOWS} windows a call. Training is a "
        "whole step on the same windows: tokens, forward, loss of each base, backward and fused "
        "AdamW. All run the same code of `longbird dna` but for the model; fp32, no dropout, "
        "random weights. Files are read before: that is the same for all.",
        f"Longbird and Hugging Face's BigBird have blocks of {BLOCK} tokens, a window of 3, "
        f"{RANDOM} random and two global blocks; full attention is transformers' BERT with "
        "PyTorch's SDPA. A scan of `longbird dna` reads each base twice, as windows overlap by "
        "half: divide by two for bases of a genome a second.",
    ]
    panels = [
        Panel.of(
            f"{'trained' if training else 'scanned'}, {result.settings.shapes[0].name}: a call",
            [
                x
                for x in result.contests
                if (x.case.training, x.case.tokens) == (training, "base")
                and x.case.shape == result.settings.shapes[0]
            ],
            everybody,
        )
        for training in (False, True)
    ]
    return Report("DNA, bases a second", facts, [sheet], [panels])


def _rate(held: Contest, name: str) -> Spread | None:
    if name not in held.samples:
        return None
    return Spread.of([held.facts["bases"] / x for x in held.samples[name]])


def _row_of(held: Contest, mine: str) -> Row:
    rates = {name: _rate(held, name) for name in held.samples}
    medians = {name: each.median for name, each in rates.items() if each is not None}
    return Row(held.case.name, medians, held.skipped, rates.get(mine), rates=True)
