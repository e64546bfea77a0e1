"""The models: new ones, their pretraining, and their twins without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import set_seed

from experiments.dna.bases import letters
from experiments.framework.experiment import Attempt
from experiments.quality.small import (
    BUCKETS,
    FARTHEST,
    bucket_distances,
    write_new_model,
)
from experiments.quality.training import made_once
from longbird.applications.dna import runs
from longbird.applications.dna.genomes import DnaTokenizer
from longbird.applications.reading.loading import load_tokenizer, quiet
from longbird.applications.training.data.token_store import cache_key
from longbird.applications.training.engine.run_folder import RunFolder, read_json
from longbird.core.graph import bigbird
from longbird.files.digest import sha256_of
from longbird.files.paths import folder_of_model
from longbird.models import LongbirdConfig, LongbirdModel

PRETRAINED, TWIN = "Longbird, pretrained", "Longbird, random twin"
HEAD = 16
"""Numbers of a head: many small ones, so that each can look at a neighbour of its own."""
ABOUT = (
    f"Models are new, without dropout, and with a bias by distance in {BUCKETS} buckets instead "
    "of absolute positions, which begins by looking at the first, second and third neighbour on "
    "either side in a head each, and near and around in the two others: without that, minutes "
    "teach frequencies alone. The twin begins in the same way."
)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """A model and the budget of its pretraining.

    Attributes:
        tokens: Kind of token: "base" or "bpe".
        vocabulary: Size of the BPE vocabulary.
        length: Number of tokens per window.
        layers: Number of layers.
        width: Hidden size; a head has 16 channels.
        block: Block size of its BigBird graph, of which a token sees eight.
        steps: Number of pretraining steps.
        batch: Tokens per step.
        learning_rate: Peak learning rate.
        mask: Share of tokens that are masked.
    """

    tokens: str = "base"
    vocabulary: int = 4096
    length: int = 4096
    layers: int = 2
    width: int = 128
    block: int = 32
    steps: int = 500
    batch: int = 8192
    learning_rate: float = 4e-3
    mask: float = 0.2

    @property
    def heads(self) -> int:
        """Number of heads per layer."""
        return self.width // HEAD

    @property
    def words(self) -> str:
        """Description for the page."""
        what = "single bases" if self.tokens == "base" else f"BPE of {self.vocabulary:,} pieces"
        return (
            f"{self.layers} layers of {self.width}, {self.heads} heads, {what}, windows of "
            f"{self.length:,} tokens, a BigBird graph with blocks of {self.block} tokens, of "
            f"which a token sees eight; {self.steps:,} steps of {self.batch:,} tokens, "
            f"{self.mask:.0%} of them hidden"
        )


TINY = Plan(vocabulary=64, length=256, layers=1, width=32, block=16, steps=2, batch=512)
"""That of the scale that shows that everything runs."""


def write_fasta(path: Path, sequences: Sequence[np.ndarray], names: Sequence[str] = ()) -> Path:
    """Write sequences with their names, by default s0, s1 and so on."""
    called = names or [f"s{number}" for number in range(len(sequences))]
    with path.open("w", encoding="ascii") as file:
        for name, sequence in zip(called, sequences, strict=True):
            file.write(f">{name}\n{letters(sequence)}\n")
    return path


def write_new(plan: Plan, sequences: Sequence[np.ndarray], seed: int, folder: Path) -> None:
    """Write a new model with its tokenizer; BPE is trained on the sequences."""
    tokenizer = DnaTokenizer.base()
    if plan.tokens == "bpe":
        tokenizer = DnaTokenizer.train([letters(x) for x in sequences], plan.vocabulary, seed=0)
    tokenizer.save(folder)
    write_new_model(
        folder,
        seed,
        layers=plan.layers,
        width=plan.width,
        heads=plan.heads,
        length=plan.length,
        graph=bigbird(block=plan.block),
        bias=neighbours,
    )


def pretrained(
    folder: Path, plan: Plan, sequences: Sequence[np.ndarray], seed: int, say: Say
) -> tuple[Path, dict[str, float]]:
    """Pretrain a model, and return the run and its cost; an interrupted run is resumed.

    Raises:
        KeyboardInterrupt: The run was stopped.
    """
    start = made_once(folder / "start", partial(write_new, plan, sequences, seed))
    file = write_fasta(folder / "learned.fa", sequences)
    done = runs.pretrain(
        [file],
        folder / "run",
        say=say,
        model=str(start),
        length=plan.length,
        steps=plan.steps,
        tokens_per_batch=plan.batch,
        learning_rate=plan.learning_rate,
        mask=plan.mask,
        validation_on=("none",),
        seed=seed,
    )
    if not done.finished:
        raise KeyboardInterrupt
    return done.path, costs(done.path)


def costs(run: Path) -> dict[str, float]:
    """Return steps and tokens of a run."""
    result = read_json(RunFolder(run).result)
    return {name: result[name] for name in ("steps", "tokens")}


@dataclass(frozen=True)
class Start:
    """The model that fine-tuning starts from: a given one, or one that is pretrained first.

    Attributes:
        plan: Plan of the model that is pretrained.
        learned: Description of its training data.
        sequences: Loads its training data.
        given: Folder of a run or a model to use instead.
    """

    plan: Plan
    learned: str
    sequences: Callable[[], Sequence[np.ndarray]]
    given: Path | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines it."""
        if self.given is None:
            return {**asdict(self.plan), "learned": self.learned}
        folder = folder_of_model(self.given)
        return {each.name: sha256_of(each) for each in sorted(folder.glob("*.safetensors"))}

    @property
    def words(self) -> str:
        """Description for the page."""
        if self.given is None:
            return (
                f"The model is pretrained once, on {self.learned}: {self.plan.words}; what is "
                f"held out here is not in it. {ABOUT}"
            )
        config = LongbirdConfig.from_pretrained(folder_of_model(self.given))
        return (
            f"The model is that of the folder {self.given.name}, as it was given (sha256 "
            f"{', '.join(map(str, self.settings.values()))}): {config.num_hidden_layers} layers "
            f"of {config.hidden_size}. What it was pretrained on is not known to this page; "
            "sequences that are held out here may be among it, their labels must not be. The twin "
            "has the same configuration and new weights."
        )

    def pretrained(self, attempt: Attempt) -> Path:
        """Return the folder of the model; the first attempt makes it."""
        if self.given is not None:
            return folder_of_model(self.given)
        folder = attempt.shared / f"pretrained-{cache_key(self.settings)}"
        folder.mkdir(parents=True, exist_ok=True)
        if not RunFolder(folder / "run").result.exists():
            attempt.say("pretraining, once for all attempts")
            pretrained(folder, self.plan, self.sequences(), 0, attempt.say)
        return folder_of_model(folder / "run")

    def twin(self, attempt: Attempt) -> Path:
        """Return the same model without pretraining, with new weights for each seed."""
        make = partial(write_twin, self.pretrained(attempt), attempt.seed)
        return made_once(attempt.folder / "twin", make)


def write_twin(model: Path, seed: int, folder: Path) -> None:
    """Write a model with the same configuration and tokenizer, and with new weights."""
    config = LongbirdConfig.from_pretrained(model)
    set_seed(seed)
    twin = LongbirdModel(config, add_pooling_layer=False)
    if (config.relative_buckets, config.relative_max_distance) == (BUCKETS, FARTHEST):
        with torch.no_grad():  # as the models here begin
            twin.relative_bias.weight.copy_(neighbours(config.num_attention_heads))
    with quiet():
        twin.save_pretrained(folder)
    load_tokenizer(model).save_pretrained(folder)


def neighbours(heads: int) -> torch.Tensor:
    """Return a bias by distance with one neighbour for each head but two, [buckets, heads].

    Examples:
        >>> bias = neighbours(8)
        >>> [int(bucket_distances()[each]) for each in bias.argmax(0)[:6]]
        [-1, 1, -2, 2, -3, 3]
    """
    distances = bucket_distances()
    alone = [sign * near for near in range(1, heads) for sign in (-1, 1)][: max(0, heads - 2)]
    kinds = [-2 * (distances - each).abs() for each in alone]
    kinds += [-distances.abs() / 4, -distances.abs() / 32]
    return torch.stack(kinds[:heads], 1).clamp(min=-8.0)
