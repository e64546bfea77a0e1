"""ListOps as in Long Range Arena, but smaller: the value of a nested list of operators."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import tokenizers
from tokenizers import models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from experiments.framework.experiment import (
    Attempt,
    Claim,
    Contestant,
    Experiment,
    Metric,
    Outcome,
    mean_of,
)
from experiments.quality.small import ABOUT, write_new_model
from experiments.quality.training import made_once, trained
from longbird.applications.training.engine.evaluation import evaluate
from longbird.core.graph import Full, GlobalTokens, Graph, Window
from longbird.core.graph import bigbird as bigbird_graph

OPERATORS = ("MIN", "MAX", "MED", "SM")
DIGITS = tuple("0123456789")
OPEN, CLOSE = tuple(f"[{name}" for name in OPERATORS), "]"
TOKENS = (*DIGITS, *OPEN, CLOSE)


@dataclass(frozen=True)
class Trees:
    """Which expressions are generated.

    Attributes:
        depth: Depth below which all arguments are digits.
        arguments: Maximum number of arguments of an operator, at least 2.
        share: Share of operators among the arguments.
        least: Minimum number of tokens.
        most: Maximum number of tokens.
    """

    depth: int = 10
    arguments: int = 10
    share: float = 0.25
    least: int = 501
    most: int = 1999


def value(tokens: Sequence[str]) -> int:
    """Return the value of an expression.

    Examples:
        >>> value("[MAX 4 [MED 1 5 8 9 ] [SM 7 6 ] ]".split())
        6
    """
    stack: list[list[int]] = [[]]
    operators: list[str] = []
    for token in tokens:
        if token in OPEN:
            operators.append(token[1:])
            stack.append([])
        elif token == CLOSE:
            arguments = stack.pop()
            stack[-1].append(_applied(operators.pop(), arguments))
        else:
            stack[-1].append(int(token))
    return stack[0][0]


def _applied(operator: str, arguments: list[int]) -> int:
    match operator:
        case "MIN":
            return min(arguments)
        case "MAX":
            return max(arguments)
        case "MED":
            ordered, middle = sorted(arguments), len(arguments) // 2
            odd = len(arguments) % 2
            return ordered[middle] if odd else (ordered[middle - 1] + ordered[middle]) // 2
        case _:
            return sum(arguments) % 10


def expressions(trees: Trees, seed: int) -> Iterator[list[str]]:
    """Yield different expressions without end, the same for the same seed."""
    draw, seen = random.Random(seed), set[tuple[str, ...]]()
    while True:
        tokens: list[str] = []
        short_enough = _grow(tokens, trees, draw, depth=1)
        if short_enough and len(tokens) >= trees.least and tuple(tokens) not in seen:
            seen.add(tuple(tokens))
            yield tokens


def _grow(tokens: list[str], trees: Trees, draw: random.Random, depth: int) -> bool:
    """Append an expression, or return False if it becomes too long."""
    if depth > 1 and (depth >= trees.depth or draw.random() >= trees.share):
        tokens.append(draw.choice(DIGITS))
        return len(tokens) < trees.most
    tokens.append(draw.choice(OPEN))
    for _ in range(draw.randint(2, trees.arguments)):
        if not _grow(tokens, trees, draw, depth + 1):
            return False
    tokens.append(CLOSE)
    return len(tokens) <= trees.most


@dataclass(frozen=True)
class Sizes:
    """The sizes of a scale.

    Attributes:
        trees: Which expressions are generated.
        train: Number of training expressions.
        test: Number of held-out expressions.
        block: Block size of the graphs; a token has eight blocks of keys.
        layers: Number of layers.
        width: Hidden size; a head has 32 channels.
        steps: Number of training steps.
        tokens: Tokens per step.
        learning_rate: Peak learning rate.
    """

    trees: Trees = Trees(least=101, most=399)
    train: int = 12_000
    test: int = 2_000
    block: int = 16
    layers: int = 4
    width: int = 128
    steps: int = 300
    tokens: int = 8192
    learning_rate: float = 1e-3

    @property
    def heads(self) -> int:
        """Number of heads per layer."""
        return self.width // 32

    @property
    def length(self) -> int:
        """Maximum number of tokens, including two special tokens."""
        return self.trees.most + 2


SIZES = {
    "default": Sizes(),
    "quick": Sizes(
        Trees(depth=4, least=8, most=60), 100, 60, block=4, layers=1, width=64, steps=2, tokens=512
    ),
}
SEED = 1
"""Of the expressions, which are the same for all seeds of the models."""

GRAPHS: dict[str, tuple[str, Callable[[Sizes], Graph]]] = {
    "full": ("every token sees all", lambda sizes: Full()),
    "BigBird": (
        "a window of 3 blocks, 3 random ones, and the first and last block global",
        lambda sizes: bigbird_graph(block=sizes.block),
    ),
    "window": (
        "4 blocks of keys on each side; the first token, which the value is read from, sees no "
        "further than layers carry",
        lambda sizes: Window(4 * sizes.block),
    ),
    "Longformer": (
        "4 blocks of keys on each side, and the first token global, without projections of its "
        "own",
        lambda sizes: Window(4 * sizes.block) | GlobalTokens((0,)),
    ),
}
PUBLISHED = {"full": 36.37, "BigBird": 36.05, "Longformer": 35.63}


@cache
def documents(sizes: Sizes) -> tuple[list[list[str]], list[list[str]]]:
    """Return training and held-out expressions, all different."""
    every = expressions(sizes.trees, SEED)
    test = [next(every) for _ in range(sizes.test)]
    return [next(every) for _ in range(sizes.train)], test


# ---- baselines


def majority(sizes: Sizes, _: Attempt) -> Outcome:
    """Predict the most frequent value of the training expressions."""
    train, test = documents(sizes)
    most = int(np.bincount([value(each) for each in train]).argmax())
    return Outcome({"right": [value(each) == most for each in test]})


def regression(
    features: Callable[[Sequence[str]], Sequence[float]], sizes: Sizes, _: Attempt
) -> Outcome:
    """Logistic regression on features of an expression."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train, test = documents(sizes)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit([features(each) for each in train], [value(each) for each in train])
    given = model.predict([features(each) for each in test])
    return Outcome({"right": [int(x) == value(y) for x, y in zip(given, test, strict=True)]})


def token_counts(tokens: Sequence[str]) -> list[float]:
    """Return the count of each token."""
    return [tokens.count(each) for each in TOKENS]


def at_the_top(tokens: Sequence[str]) -> list[float]:
    """Return features of the top operator: its direct digits with counts, and its lists.

    Examples:
        >>> found = at_the_top("[MAX 4 [MED 1 5 ] 4 ]".split())
        >>> [(i, x) for i, x in enumerate(found) if x]
        [(22, 1.0), (27, 2.0), (37, 1.0), (43, 1.0)]
    """
    depth, direct, lists = 0, [0.0] * 10, 0.0
    for token in tokens[1:-1]:
        lists += depth == 0 and token in OPEN
        if depth == 0 and token in DIGITS:
            direct[int(token)] += 1
        depth += (token in OPEN) - (token == CLOSE)
    of_it = [1.0, *direct, *(float(x > 0) for x in direct), lists]
    empty = [0.0] * len(of_it)
    return [x for name in OPEN for x in (of_it if name == tokens[0] else empty)]


# ---- models


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer whose words are digits, operators and the closing bracket."""
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    words = {token: number for number, token in enumerate((*special, *TOKENS))}
    tokenizer = tokenizers.Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # pyright: ignore
    tokenizer.post_processor = processors.TemplateProcessing(  # pyright: ignore
        single="[CLS] $A [SEP]", special_tokens=[(x, words[x]) for x in ("[CLS]", "[SEP]")]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
    ).save_pretrained(folder)  # fmt: skip


def learned(sizes: Sizes, name: str, attempt: Attempt) -> Outcome:
    """Train and measure a model with a graph."""

    def make(folder: Path) -> None:
        write_tokenizer(folder)
        write_new_model(
            folder,
            attempt.seed,
            layers=sizes.layers,
            width=sizes.width,
            heads=sizes.heads,
            length=sizes.length,
            graph=GRAPHS[name][1](sizes),
        )

    folder = attempt.folder
    model = made_once(folder / "start", make)
    files = folder / "train.jsonl", folder / "test.jsonl"
    for file, part in zip(files, documents(sizes), strict=True):
        rows = [{"text": " ".join(each), "label": str(value(each))} for each in part]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    run, cost = trained(
        attempt,
        "classify",
        files[0],
        model=str(model),
        text="text",
        label="label",
        length=sizes.length,
        tokens_per_batch=sizes.tokens,
        steps=sizes.steps,
        learning_rate=sizes.learning_rate,
    )
    found = evaluate(run, files[1], say=lambda line: None)
    labels = found.metrics["f1_by_label"]
    given = [list(labels)[int(np.argmax(each["scores"]))] for each in found.said]
    return Outcome(
        {"right": [x == y["label"][0] for x, y in zip(given, found.examples, strict=True)]}, cost
    )


def experiment(scale: str) -> Experiment:
    """Return the experiment at a scale."""
    sizes = SIZES[scale]
    trees = sizes.trees
    settings = {**asdict(sizes), "seed of the expressions": SEED}
    contestants = [
        Contestant(
            name,
            about,
            partial(learned, sizes, name),
            {**settings, "graph": str(graph(sizes))},
            published={"accuracy": PUBLISHED[name]} if name in PUBLISHED else {},
        )
        for name, (about, graph) in GRAPHS.items()
    ]
    direct = "regression on the top list"
    baselines: dict[str, tuple[str, Callable[[Attempt], Outcome]]] = {
        direct: (
            "logistic regression on the operator at the top with its direct digits",
            partial(regression, at_the_top, sizes),
        ),
        "regression on counts": (
            "logistic regression on how often each token is there",
            partial(regression, token_counts, sizes),
        ),
        "majority": ("the most frequent value, always", partial(majority, sizes)),
    }
    contestants += [
        Contestant(name, about, attempt, settings, seeded=False)
        for name, (about, attempt) in baselines.items()
    ]
    return Experiment(
        name="listops",
        title="ListOps",
        asks="Which attention learns to evaluate nested lists of operators, and does any learn "
        "more than the list at the top gives away?",
        scale=scale,
        contestants=contestants,
        reference="full",
        metrics=[Metric("accuracy", "right values, in percent", mean_of("right"), scale=100)],
        budget=f"{sizes.steps:,} steps of {sizes.tokens:,} tokens for each model. {ABOUT} "
        f"{sizes.layers} layers of {sizes.width}, {sizes.heads} heads; graphs with blocks of "
        f"{sizes.block}; AdamW, learning rate {sizes.learning_rate:g} at most, a tenth of the "
        "steps warm-up, then linearly to 0. Nothing was chosen by the held-out expressions.",
        data=[
            f"Generated as in Long Range Arena, with seed {SEED}: operators MIN, MAX, MED (the "
            f"integer median) and SM (the sum modulo 10) over digits, 2 to {trees.arguments} "
            f"arguments, each an operator with probability {trees.share:g} and above depth "
            f"{trees.depth}; different expressions of {trees.least} to {trees.most} tokens, "
            f"{sizes.train:,} to learn from and {sizes.test:,} held out, ten classes.",
        ],
        claims=[
            Claim(
                "full attention learns more than the list at the top gives away",
                "full",
                direct,
                "accuracy",
            ),
            Claim(
                "BigBird learns more than the list at the top gives away",
                "BigBird",
                direct,
                "accuracy",
            ),
            Claim(
                "BigBird is within 1 point of full attention", "BigBird", "full", "accuracy", -1.0
            ),
            Claim("BigBird is better than a window alone", "BigBird", "window", "accuracy"),
            Claim("a global token adds to a window", "Longformer", "window", "accuracy"),
        ],
        notes=[
            "Long Range Arena keeps expressions of 501 to 1,999 tokens and learns from 96,000, "
            "with more and wider layers: the numbers here are not those of its table.",
        ],
        sources=["Published: the README of Long Range Arena (Y. Tay et al., 2021)."],
    )
