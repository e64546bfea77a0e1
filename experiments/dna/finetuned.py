"""A model of Longbird as a scorer of windows, beside the baselines in `linear` and `cnn`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.dna.bases import letters
from experiments.dna.classifying import Budget
from experiments.dna.models import costs
from longbird.applications.dna.promoters import Promoters
from longbird.applications.dna.runs import load
from longbird.applications.dna.settings import DnaLabelSettings, DnaSettings
from longbird.applications.training.engine.finetune import run
from longbird.applications.training.settings.groups import Settings

EVALUATIONS = 4
"""How often the windows that are held back are looked at."""


class Written(Promoters):
    """Promoters and negatives from a file, in which each line has part, label and bases."""

    def opened(self, settings: DnaSettings) -> list[Any]:
        """Return no genomes."""
        return []

    def prepare(self, settings: Settings, tokenizer: Any) -> None:
        """Use the parts in the file."""
        super().prepare(settings, tokenizer)
        self.window = self.upstream + self.downstream
        self.words = {"train": "windows", "validation": "one group of windows in ten"}

    def examples(
        self, rows: Iterable[Any], settings: Settings, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """Yield the lines as examples."""
        with open(settings.train[0], encoding="ascii") as lines:
            for number, line in enumerate(lines):
                part, truth, bases = line.split()
                yield self._example(f"window {number}", part, bases, truth == "1")


class Finetuned:
    """A model that is trained on windows; one group in ten, drawn by seed, chooses the step.

    Args:
        model: Folder of the model to start from.
        folder: Folder to work in; a finished run in it is not repeated.
        seed: Seed of the new head, the order and the validation groups.
        budget: Budget of training.
        say: Receives messages about the progress.
    """

    def __init__(
        self, model: Path, folder: Path, seed: int, budget: Budget, say: Callable[[str], None]
    ) -> None:
        self.model, self.folder, self.seed = model, folder, seed
        self.budget, self.say = budget, say

    def fit(self, windows: np.ndarray, positive: np.ndarray, groups: np.ndarray) -> Finetuned:
        """Train.

        Raises:
            KeyboardInterrupt: The run was stopped; repeating the call resumes it.
        """
        every = np.unique(groups)
        back = np.random.default_rng(self.seed).permutation(every)[: max(1, len(every) // 10)]
        held, width = np.isin(groups, back), windows.shape[1]
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "windows.tsv"
        rows = zip(windows, positive.tolist(), held.tolist(), strict=True)
        text = "".join(
            f"{'validation' if aside else 'train'}\t{int(truth)}\t{letters(window)}\n"
            for window, truth, aside in rows
        )
        file.write_text(text, "ascii")
        budget = self.budget
        settings = DnaLabelSettings(
            task=Promoters.name,
            train=(str(file),),
            model=str(self.model),
            length=width + 2,
            upstream=width - 1,
            downstream=1,
            steps=budget.steps,
            tokens_per_batch=budget.batch,
            learning_rate=budget.learning_rate,
            evaluate_every=-(-budget.steps // EVALUATIONS),
            seed=self.seed,
        )
        done = run(Written(), settings, self.folder / "run", self.say)
        if not done.finished:
            raise KeyboardInterrupt
        self.trained = load(done.path)
        return self

    @property
    def cost(self) -> dict[str, float]:
        """Steps and tokens."""
        return costs(self.folder / "run")

    @torch.no_grad()
    def scores(self, windows: np.ndarray) -> np.ndarray:
        """Return log-odds."""
        task, model = self.trained.task, self.trained.model
        assert isinstance(task, Promoters)
        at_once = max(1, self.budget.batch // windows.shape[1])
        found: list[torch.Tensor] = []
        for at in range(0, len(windows), at_once):
            read = [task.read(letters(window)) for window in windows[at : at + at_once]]
            found.append(task.run(model, task.batch(read, task.pad)))
        return torch.cat(found).double().numpy()

    def scan(self, sequence: np.ndarray, width: int) -> np.ndarray:
        """Return the scores of all windows of a sequence, interpolated between some of them."""
        places = np.arange(len(sequence) - width + 1)
        read = np.union1d(places[:: self.budget.step], places[-1:])
        scores: list[np.ndarray] = []
        for at in range(0, len(read), 4096):
            some = read[at : at + 4096]
            scores.append(self.scores(sequence[some[:, None] + np.arange(width)]))
        return np.interp(places, read, np.concatenate(scores))
