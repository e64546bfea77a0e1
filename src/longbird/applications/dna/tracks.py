"""Learning labels along a genome: for each base and strand, or for each bin and target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.applications.dna.division import Division
from longbird.applications.dna.genomes import Contig, Genome, Interval
from longbird.applications.dna.genomes.letters import opposite
from longbird.applications.dna.genomic import Genomic
from longbird.applications.dna.prior import balanced, prior
from longbird.applications.dna.scores import Ranked, marked
from longbird.applications.dna.sweeps import Sweep, Tiles
from longbird.applications.training.settings.groups import Settings
from longbird.applications.training.tasks.task import Example, Prediction
from longbird.errors import InvalidValueError

UNLABELLED = 255
"""Label of bins for which nothing is known, instead of 0 or 1."""
SIDE_BY_SIDE = (
    "The windows lie side by side. Those of a scan overlap, so that every place has context on "
    "both sides: the scores of a scan are different, and mostly better."
)
Labels = Callable[[Interval], np.ndarray]
"""Function that returns the labels of an interval on the plus strand, uint8 [bins, channels]."""


class Tracks(Genomic):
    """Labels for the bins of long windows.

    The model has a logit of each channel for each token. The logit of a base is that of its token,
    and the logit of a bin the mean of its bases. In training, the strand on which a window is read
    is drawn in each epoch.
    """

    head = "token-classification"
    inputs = ("bases", "truth")
    on_disk = ("bases", "truth")
    best = "average_precision"
    described = ("window", "channels", "bin", "prevalence", "prior")
    bin: int = 1
    counted: ClassVar[str] = "bins"
    """What labels and scores belong to, in messages."""
    told_of_each: ClassVar[tuple[str, ...]] = ("auroc", "average_precision")
    """Metrics that are reported for each channel as well."""

    def labels(self, files: Sequence[str], genome: Genome) -> Labels:
        """Read the labels of a genome."""
        raise NotImplementedError

    def look_at_labels(self, files: Sequence[str], genome: Genome) -> None:
        """Read the labels, so that errors are found before a run begins."""
        self.once(("labels", *files, genome.file), lambda: self.labels(files, genome))

    def restore(self, description: Mapping[str, Any]) -> None:
        """Set the attributes that the description of a model has."""
        super().restore(description)
        self.channels = tuple(self.channels)

    def window_of(self, genome: Genome) -> int:
        """Return the number of bases of a window, a multiple of the bin."""
        window = super().window_of(genome) // self.bin * self.bin
        if not window:
            raise InvalidValueError(
                f"a bin has {self.bin:,} bases, and the model reads fewer: set a smaller "
                "`bin` or a larger `length`"
            )
        return window

    def head_settings(self) -> dict[str, Any]:
        """Return the configuration of a logit for each channel."""
        return {
            "num_labels": len(self.channels),
            "id2label": dict(enumerate(self.channels)),
            "label2id": {name: number for number, name in enumerate(self.channels)},
        }

    def windows(self, division: Division, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        """Yield the windows of a genome that have bases and labels."""
        genome = division.genome
        files = self.labels_of(genome)
        labels = self.once(("labels", *files, genome.file), lambda: self.labels(files, genome))
        for part in division.spans:
            for window in division.windows(part, self.window):
                bases = genome.bases(window)
                for piece in self.pieces(bases, self.bin):
                    own = window.part(piece.start, piece.stop)
                    truth = labels(own)
                    if bases[piece].strip("N") and (truth != UNLABELLED).any():
                        yield {
                            "place": str(own),
                            "part": part,
                            "bases": bases[piece],
                            "truth": truth.reshape(-1),
                        }

    def learn(self, examples: Iterable[Example]) -> None:
        """Compute the share of each label."""
        number, there, true = self._counted(examples)
        self.check_learned(number)
        for channel, found, known in zip(self.channels, true, there, strict=True):
            if not 0 < found < known:
                raise InvalidValueError(
                    f"in the training part, {found:,.0f} of {known:,.0f} {self.counted} are "
                    f"labelled {channel}: expected some, and some that are not. If too little "
                    "of a small genome is left, hold out another stretch with `validation_on`, or "
                    "nothing with `validation_on=none`"
                )
        self.prevalence = (true / there).tolist()
        self.prior = prior(self.prevalence, self.settings.class_weights)

    def check(self, parts: Mapping[str, Any], settings: Settings) -> None:
        """Raise an error if a part has only one class."""
        for part, rows in parts.items():
            if part == "train":  # which `learn` has seen
                continue
            _, there, true = self._counted(rows.select_columns(["truth"]).with_format("numpy"))
            if not ((true > 0) & (true < there)).any():
                counts = ", ".join(
                    f"{found:,.0f} of {known:,.0f} as {channel}"
                    for channel, found, known in zip(self.channels, true, there, strict=True)
                )
                raise InvalidValueError(
                    f"of the {self.counted} of {part}, {counts} are labelled: expected some, and "
                    "some that are not, since nothing can be measured otherwise. Choose another "
                    "stretch with "
                    "`validation_on` or `test_on`, or with `on` where a model is evaluated"
                )

    def _counted(self, examples: Iterable[Example]) -> tuple[int, np.ndarray, np.ndarray]:
        """Return the number of examples, and the known and the labelled bins of each channel."""
        number, there, true = 0, *np.zeros((2, len(self.channels)))
        for example in examples:
            truth = np.asarray(example["truth"]).reshape(-1, len(self.channels))
            there += (truth != UNLABELLED).sum(0)
            true += (truth == 1).sum(0)
            number += 1
        return number, there, true

    # ---- batches

    def inputs_of(self, row: Example, part: int, number: int, epoch: int | None) -> dict[str, Any]:
        """Return a window on the strand of an epoch, or on the plus strand in evaluation."""
        bases = row["bases"]
        truth = np.array(row["truth"], np.uint8).reshape(-1, len(self.channels))
        if epoch is not None and len(bases) % self.bin == 0:
            draw = np.random.default_rng((self.settings.seed, 1 + epoch, number))
            if draw.random() < 0.5:
                bases, truth = opposite(bases), self.turned(truth)
        return {**self.read(bases), "truth": truth}

    def batch(
        self,
        examples: Sequence[dict[str, Any]],
        pad: Callable[[Sequence[dict[str, Any]]], dict[str, Tensor]],
    ) -> dict[str, Tensor]:
        """Add the token of each base [batch, bins, bin], 0 if it has none, and the labels."""
        batch = pad([{"input_ids": each["input_ids"]} for each in examples])
        bins = max(-(-len(each["token_of"]) // self.bin) for each in examples)
        token_of = torch.zeros(len(examples), bins * self.bin, dtype=torch.int64)
        for row, each in zip(token_of, examples, strict=True):
            row[: len(each["token_of"])] = torch.from_numpy(each["token_of"])
        batch["token_of"] = token_of.view(len(examples), bins, self.bin)
        if "truth" in examples[0]:
            truth = torch.full((len(examples), bins, len(self.channels)), UNLABELLED)
            for row, each in zip(truth, examples, strict=True):
                row[: len(each["truth"])] = torch.from_numpy(each["truth"].astype(np.int64))
            batch["truth"] = truth
        return batch

    def run(self, model: Any, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the logits of bins, [batch, bins, channels]."""
        logits = model(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]
        ).logits.float()
        token_of = batch["token_of"]
        rows, bins, size = token_of.shape
        at = token_of.reshape(rows, bins * size, 1).expand(-1, -1, logits.shape[-1])
        there = (token_of > 0).float()[..., None]
        each = logits.gather(1, at).reshape(rows, bins, size, -1) * there
        return each.sum(2) / there.sum(2).clamp(min=1)

    def items(self, batch: Mapping[str, Tensor]) -> int:
        """Return the number of bins with labels, of all channels."""
        return int((batch["truth"] != UNLABELLED).sum())

    def loss(self, outputs: Any, batch: Mapping[str, Tensor], weights: Tensor | None) -> Tensor:
        """Return the mean loss over bins with labels."""
        truth = batch["truth"]
        known = truth != UNLABELLED
        target = torch.where(known, truth, 0).float()
        each = F.binary_cross_entropy_with_logits(outputs, target, reduction="none")
        if weights is not None:
            each = each * weights.to(each.device)[target.long()]
        return (each * known).sum() / known.sum().clamp(min=1)

    def class_weights(self, examples: Iterable[Example]) -> Tensor:
        """Return weights with which both classes count equally, [2]."""
        return torch.tensor(balanced(self.prevalence))

    # ---- results

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """Return the scores and labels of each window, in four bytes each.

        A genome has millions of bases, whose scores are ranked together at the end.
        """
        truths = batch["truth"].cpu().numpy()
        return [
            self._compared(scores, truth[: len(scores)])
            for scores, truth in zip(self._scores(model, batch), truths, strict=True)
        ]

    @staticmethod
    def _compared(scores: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
        known = truth != UNLABELLED
        return {
            "scores": [
                marked(own[there], true[there] == 1)
                for own, true, there in zip(scores.T, truth.T, known.T, strict=True)
            ],
            "means": scores.mean(0).tolist(),
            "labelled": (truth == 1).mean(0).tolist(),
            "distance": float(np.abs(truth - scores)[known].mean()) if known.any() else 0.0,
        }

    def whole_documents(self, examples: Any, predictions: list[Any]) -> tuple[Any, list[Any]]:
        """Add the labelled share of each channel to the examples."""
        labelled = ({"labelled": each["labelled"]} for each in predictions)
        return [{**one, **two} for one, two in zip(examples, labelled, strict=True)], predictions

    def _scores(self, model: Any, batch: Mapping[str, Tensor]) -> list[np.ndarray]:
        """Return the scores of the bins of each window, [bins, channels]."""
        scores = self.run(model, batch).sigmoid().cpu().numpy()
        bins = (batch["token_of"] > 0).any(-1).sum(1).tolist()
        return [each[:number] for each, number in zip(scores, bins, strict=True)]

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """Return the metrics: means over all channels, and those of each channel."""
        each: dict[str, dict[str, np.ndarray]] = {}
        shares: dict[str, float] = {}
        for name, table in self._ranked(predictions):
            each[name] = {metric: np.array([x]) for metric, x in table.whole().items()}
            shares[f"prevalence {name}"] = table.prevalence
        named = {name: float(value[0]) for name, value in self._named(each).items()}
        return {"windows": len(examples), **named, **shares}

    def resampled(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], counts: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the metrics of all samples."""
        tables = self._ranked(predictions)
        found = self._named({name: table.metrics(counts) for name, table in tables})
        return {name: values for name, values in found.items() if not np.isnan(values).all()}

    def _named(self, each: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Return means over the channels, and metrics of each channel with both classes."""
        found = {
            metric: mean_of_known(np.array([own[metric] for own in each.values()]), 0)
            for metric in next(iter(each.values()))
        }
        for name, own in each.items():
            found |= {
                f"{metric} {name}": own[metric]
                for metric in self.told_of_each
                if not np.isnan(own[metric]).all()
            }
        return found

    def _ranked(self, predictions: Sequence[Prediction]) -> Iterator[tuple[str, Ranked]]:
        """Yield the ranked scores of each channel, one at a time."""
        for channel, name in enumerate(self.channels):
            yield name, Ranked.marked([each["scores"][channel] for each in predictions])

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """Return the mean distance between scores and labels."""
        return prediction["distance"]

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """Return the mean score of each channel."""
        return dict(zip(self.channels, prediction["means"], strict=True))

    def expected(self, example: Example) -> Any:
        """Return the labelled share of each channel."""
        return dict(zip(self.channels, example["labelled"], strict=True))

    # ---- scanning

    def sweep(self, contig: Contig, step: int | None) -> Sweep:
        """Return long overlapping windows."""
        if step is not None:
            raise InvalidValueError("`step` is for promoters: here the windows overlap by half")
        return Tiles(contig, self.window, self.bin, len(self.channels))

    def scored(self, model: Any, windows: list[str]) -> list[np.ndarray]:
        """Return the scores of the bins of each window, [bins, channels].

        The last bin may have fewer bases, and any bin may be filled with `NO_BASE`.
        """
        cut = [[each[piece] for piece in self.pieces(each, self.bin)] for each in windows]
        batch = self.batch([self.read(piece) for each in cut for piece in each], self.pad)
        said = iter(self._scores(model, batch))
        return [np.concatenate([next(said) for _ in each]) for each in cut]


def mean_of_known(values: np.ndarray, axis: int) -> np.ndarray:
    """Return the mean of the values that are not NaN; NaN if all are."""
    there = ~np.isnan(values)
    number = there.sum(axis)
    total = np.where(there, values, 0.0).sum(axis)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)
