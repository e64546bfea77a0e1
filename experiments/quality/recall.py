"""Associative recall with each attention pattern: which measure of its graph predicts it?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from transformers import set_seed

from experiments.framework.experiment import (
    Attempt,
    Claim,
    Contestant,
    Experiment,
    Metric,
    Outcome,
    Prediction,
    ratio_of,
)
from experiments.quality.pairs import NOT_ASKED, Recall, Sequences, draw
from experiments.quality.patterns import ALONE, FULL, SPARSE, Pattern, Setting, within
from longbird.analysis.measures import analyse
from longbird.models import LongbirdConfig, LongbirdForTokenClassification

ACCURACY, POSSIBLE = "accuracy", "possible"
HELD_OUT = 1_000_000
"""The seed of the held-out sequences, which are the same for all; no model has it."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of a scale.

    Attributes:
        task: Which sequences are generated.
        edges: Edges per head and token.
        layers: Number of layers, all with the same graph.
        width: Hidden size.
        heads: Number of heads per layer.
        stages: Stages of training, each with the length of sequences and the number of steps. The
            last has the length of the task.
        batch: New sequences per step at the length of the task; more at shorter lengths, so that
            the number of tokens is constant.
        learning_rate: Peak learning rate.
        held_out: Number of held-out sequences.
    """

    task: Recall
    edges: int = 32
    layers: int = 2
    width: int = 64
    heads: int = 4
    stages: tuple[tuple[int, int], ...] = ((64, 200), (256, 200), (1024, 400))
    batch: int = 4
    learning_rate: float = 3e-3
    held_out: int = 64

    @property
    def steps(self) -> int:
        """Number of training steps in all stages."""
        return sum(steps for _, steps in self.stages)

    def at(self, length: int) -> Sizes:
        """Return the task at another length, with as many tokens per step."""
        queries = self.task.queries * length // self.task.length
        return replace(
            self,
            task=replace(self.task, length=length, queries=queries),
            batch=self.batch * self.task.length // length,
        )

    def setting(self, seed: int) -> Setting:
        """The setting that patterns are built for."""
        return Setting(self.task.length, self.edges, seed)

    @property
    def bands(self) -> dict[str, tuple[int, int]]:
        """Bands of distance that are measured separately."""
        n = self.task.length
        ends = [0, n // 16, n // 4, n - 1]
        return {
            name: (first + 1, last)
            for name, (first, last) in zip(("near", "middle", "far"), pairwise(ends), strict=True)
        }


SIZES = {
    "default": Sizes(Recall(length=1024, keys=8, values=8, queries=1024)),
    "quick": Sizes(
        Recall(length=64, keys=2, values=4, queries=64),
        edges=16, width=16, heads=2, stages=((32, 2), (64, 2)), batch=2, held_out=4,
    ),
}  # fmt: skip


def model_of(sizes: Sizes, pattern: Pattern, seed: int) -> LongbirdForTokenClassification:
    """Return a new model with a pattern, which predicts a value at every token.

    It has no positions, because only the content of tokens and their edges matter. Its initial
    weights
    are as large as suits such a narrow model.
    """
    set_seed(seed)
    setting = sizes.setting(seed)
    config = LongbirdConfig(
        vocab_size=sizes.task.keys + 2,
        type_vocab_size=sizes.task.values + 1,
        hidden_size=sizes.width,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        intermediate_size=2 * sizes.width,
        max_position_embeddings=sizes.task.length,
        positions="none",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=sizes.width**-0.5,
        pad_token_id=None,
        id2label={value: str(value) for value in range(sizes.task.values)},
        graph=[pattern.graph(setting)] * sizes.layers,
        num_global_tokens=pattern.added(setting),
    )
    return LongbirdForTokenClassification(config)


def trained(sizes: Sizes, pattern: Pattern, attempt: Attempt) -> LongbirdForTokenClassification:
    """Train a model in stages, on sequences that it sees once each.

    Short sequences come first: in long ones a pair is rare among the keys of a token, and models
    stay
    at chance for a long time. In each stage, the pattern is built for its length, with as many
    edges
    per token.
    """
    random = np.random.default_rng(attempt.seed)
    model = model_of(sizes.at(sizes.stages[0][0]), pattern, attempt.seed)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        parameters, lr=sizes.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    warm, every = max(1, sizes.steps // 20), sizes.steps
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (every - step) / max(1, every - warm))
    )
    for length, steps in sizes.stages:
        stage = sizes.at(length)
        model = _with_parameters(model_of(stage, pattern, attempt.seed), model)
        model.train()
        for step in range(1, steps + 1):
            given = draw(stage.task, stage.batch, random)
            loss = model(**_inputs(given), labels=torch.from_numpy(given.answers)).loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            rate.step()
            if step in (steps // 2, steps):
                attempt.say(f"{length:,} tokens, step {step:,} of {steps:,}: loss {loss:.3f}")
    return model


def _with_parameters(
    model: LongbirdForTokenClassification, other: LongbirdForTokenClassification
) -> LongbirdForTokenClassification:
    """Return a model with another graph and the same parameters."""
    for name, parameter in other.named_parameters():
        *path, last = name.split(".")
        setattr(model.get_submodule(".".join(path)), last, parameter)
    return model


def _inputs(given: Sequences, part: slice = slice(None)) -> dict[str, torch.Tensor]:
    """Return keys as token ids and values as token types: a query and its pair share the first."""
    return {
        "input_ids": torch.from_numpy(given.keys[part]),
        "token_type_ids": torch.from_numpy(given.values[part]),
    }


@torch.no_grad()
def said(
    model: LongbirdForTokenClassification, given: Sequences, batch: int
) -> npt.NDArray[np.int64]:
    """Return the predicted value at each token, [sequences, length]."""
    model.eval()
    parts = [slice(first, first + batch) for first in range(0, len(given.keys), batch)]
    return np.concatenate(
        [model(**_inputs(given, part)).logits.argmax(-1).numpy() for part in parts]
    )


def measures_of(sizes: Sizes, pattern: Pattern, seed: int) -> dict[str, float | None]:
    """Return the measures of a pattern's graph, the union of its heads, before training."""
    graph, tokens = pattern.whole(sizes.setting(seed))
    found = analyse(graph, tokens, sizes.heads)
    reached = found.reached[min(sizes.layers, len(found.reached)) - 1] if found.reached else 0.0
    values = (
        found.density,
        found.average_path_length,
        found.diameter,
        found.clustering,
        found.spectral_gap,
        reached,
    )
    return dict(zip(measures(sizes), values, strict=True))


def measures(sizes: Sizes) -> list[str]:
    """Return the names of the measures."""
    names = ["density", "average path length", "diameter", "clustering", "spectral gap"]
    return [*names, f"pairs reached after {sizes.layers} layers"]


def attempt(sizes: Sizes, pattern: Pattern, attempt: Attempt) -> Outcome:
    """Train and measure a model with a pattern."""
    model = trained(sizes, pattern, attempt)
    given = draw(sizes.task, sizes.held_out, np.random.default_rng(HELD_OUT))
    asked = given.answers != NOT_ASKED
    right = said(model, given, sizes.batch) == given.answers
    reached = within(pattern, sizes.setting(attempt.seed), sizes.heads, sizes.layers)
    columns = {"asked": asked, "right": right, POSSIBLE: at_best(sizes.task, given, reached)}
    for name, (first, last) in sizes.bands.items():
        there = (given.distances >= first) & (given.distances <= last)
        columns |= {f"asked {name}": there, f"right {name}": right & there}
    return Outcome(
        {name: each.sum(1).tolist() for name, each in columns.items()},
        {"steps": sizes.steps, "tokens": sizes.steps * sizes.batch * sizes.task.length},
        {"measures": measures_of(sizes, pattern, attempt.seed)},
    )


def at_best(
    task: Recall, given: Sequences, reached: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Return the best possible accuracy of each query: 1 if its pair is connected, else chance.

    Args:
        task: The task.
        given: The sequences.
        reached: Which tokens receive information from which others, [length, length].
    """
    found = np.zeros(given.keys.shape)
    for row, keys in enumerate(given.keys):
        asking = np.flatnonzero(given.answers[row] != NOT_ASKED)
        pairs = np.flatnonzero(given.values[row])
        place = pairs[np.argsort(keys[pairs])][keys[asking] - 1]  # each key has one pair
        found[row, asking] = np.where(reached[asking, place], 1.0, 1 / task.values)
    return found


def experiment(scale: str) -> Experiment:
    """Return the experiment at a scale."""
    sizes = SIZES[scale]
    task, full, alone = sizes.task, FULL.name, ALONE.name
    stages = ", ".join(f"{steps:,} steps of length {length:,}" for length, steps in sizes.stages)
    contestants = [
        Contestant(
            each.name,
            each.about,
            partial(attempt, sizes, each),
            {**asdict(sizes), "graph": str(each.whole(sizes.setting(0))[0])},
        )
        for each in (FULL, *SPARSE, ALONE)
    ]
    itc, etc, window, random = "BigBird-ITC", "BigBird-ETC", "sparse window", "random"
    bands = [
        Metric(
            f"{name} ({first} to {last})",
            f"the same of queries that are {first} to {last} tokens from their pair",
            ratio_of(f"right {name}", f"asked {name}"),
            scale=100,
        )
        for name, (first, last) in sizes.bands.items()
    ]
    return Experiment(
        name="recall",
        title="Recall with each pattern of attention",
        asks=f"Which pattern of attention learns to find the value of a key anywhere in "
        f"{task.length:,} tokens, where all have about {sizes.edges} edges a token (full "
        "attention aside) and the same budget; and which measure of its graph tells that before "
        "training?",
        scale=scale,
        contestants=contestants,
        reference=full,
        metrics=[
            Metric(
                ACCURACY,
                "queries that are answered, in percent",
                ratio_of("right", "asked"),
                scale=100,
            ),
            *bands,
            Metric(
                POSSIBLE,
                f"what hops allow: queries whose pair is within {sizes.layers} hops, and for the "
                f"others one of {task.values}, which is chance",
                ratio_of("possible", "asked"),
                scale=100,
            ),
        ],
        budget=f"{sizes.steps:,} steps of {sizes.batch * task.length:,} tokens for each, of new "
        f"sequences: {stages}. Models are new, without positions and dropout: {sizes.layers} "
        f"layers of {sizes.width}, {sizes.heads} heads, all layers with the same graph; AdamW, "
        f"learning rate {sizes.learning_rate:g} at most, a twentieth of the steps warm-up, then "
        "linearly to 0. In short sequences, a pattern has as many edges a token if it can. "
        "Sizes and stages were chosen in short trials, mostly of BigBird-ITC and random keys; for "
        "some, the accuracy on a few of the held-out sequences was looked at.",
        data=[
            f"Generated: {task.keys} pairs of a key and one of {task.values} values at random "
            f"places, and up to {task.queries} queries, each of which names a key, at distances "
            f"from its pair that are drawn evenly; all other tokens are blank. {sizes.held_out} "
            f"held-out sequences with seed {HELD_OUT:,}.",
        ],
        claims=[
            Claim("attention is needed at all", full, alone, ACCURACY),
            Claim("a global token adds to a window", "Longformer", window, ACCURACY),
            Claim("random keys are better than a window", random, window, ACCURACY),
            Claim("random keys add to a window", "window + random", window, ACCURACY),
            Claim("a window adds to random keys", "window + random", random, ACCURACY),
            Claim("BigBird-ITC is better than random keys", itc, random, ACCURACY),
            Claim("many global tokens are better than one", itc, "Longformer", ACCURACY),
            Claim("BigBird-ETC is better than BigBird-ITC", etc, itc, ACCURACY),
            Claim("BigBird-ITC is within 5 points of full attention", itc, full, ACCURACY, -5.0),
        ],
        notes=[
            "Edges are counted in each head. In random blocks and BigBird-ITC heads differ, so "
            "that their union, which is measured, is denser; everywhere else density is the same "
            "but for rounding, and its ranks mean little.",
            "The diameter of the dilated window is infinite, and its average path length is that "
            "of the pairs that are connected.",
            "The graph of a seed has the same seed: random graphs differ from seed to seed.",
        ],
        prediction=Prediction(measures(sizes), [each.name for each in SPARSE]),
    )
