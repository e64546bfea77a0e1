"""Labels along a genome: for each base and strand, or for each bin and target."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.applications.dna.division import Division
from longbird.applications.dna.genomes import Contig, Genome, Interval, open_signal, read_features
from longbird.applications.dna.genomes.labels import is_bed
from longbird.applications.dna.genomes.letters import opposite
from longbird.applications.dna.genomic import Genomic
from longbird.applications.dna.labels import Cover, features_of, is_signal, is_whole
from longbird.applications.dna.prior import balanced, prior
from longbird.applications.dna.scores import Ranked, marked
from longbird.applications.dna.settings import DnaLabelSettings
from longbird.applications.dna.sweeps import Sweep, Tiles
from longbird.applications.training.settings.groups import Settings
from longbird.applications.training.tasks.task import Example, Prediction
from longbird.errors import InvalidValueError

UNLABELLED = 255
"""In the place of 0 or 1, where nothing is known."""
_PAIRS = (("+", "-"), ("plus", "minus"), ("fwd", "rev"), ("forward", "reverse"))
STRANDS = {one: two for pair in _PAIRS for one, two in (pair, pair[::-1])}
"""How the names of targets of one strand end, and those of the other."""
SIDE_BY_SIDE = (
    "The windows lie side by side. Those of a scan overlap, so that places have context on both "
    "sides: its scores are different, and mostly better."
)
Target = tuple[str, str, str | None]
"""Of a profile: its name, its file, and the kind of features that are meant."""
Labels = Callable[[Interval], np.ndarray]
"""The labels of a stretch on the plus strand, uint8 [bins, channels]."""


class Tracks(Genomic):
    """Labels for the bins of long windows, several at once.

    The model has a logit of each channel for each token. A base has that of its token, and a bin
    the mean of its bases. In training, a window is read on one strand or the other, by a draw for
    each epoch.
    """

    head = "token-classification"
    inputs = ("bases", "truth")
    on_disk = ("bases", "truth")
    best = "average_precision"
    described = ("window", "channels", "bin", "prevalence", "prior")
    bin: int = 1
    counted: ClassVar[str] = "bins"
    """What labels and scores are of."""
    told_of_each: ClassVar[tuple[str, ...]] = ("auroc", "average_precision")
    """Metrics of each channel by itself."""

    def labels(self, files: Sequence[str], genome: Genome) -> Labels:
        """Reads the labels of a genome."""
        raise NotImplementedError

    def look_at_labels(self, files: Sequence[str], genome: Genome) -> None:
        """Reads them."""
        self.once(("labels", *files, genome.file), lambda: self.labels(files, genome))

    def turned(self, scores: np.ndarray) -> np.ndarray:
        """What is said of the reverse complement, as what is said of a window."""
        raise NotImplementedError

    def restore(self, description: Mapping[str, Any]) -> None:
        """Takes what a description says."""
        super().restore(description)
        self.channels = tuple(self.channels)

    def window_of(self, genome: Genome) -> int:
        """A whole number of bins."""
        window = super().window_of(genome) // self.bin * self.bin
        if not window:
            raise InvalidValueError(
                f"a bin has {self.bin:,} bases, and the model reads fewer: give a smaller "
                "--bin or a larger --length"
            )
        return window

    def head_settings(self) -> dict[str, Any]:
        """A logit for each channel."""
        return {
            "num_labels": len(self.channels),
            "id2label": dict(enumerate(self.channels)),
            "label2id": {name: number for number, name in enumerate(self.channels)},
        }

    def windows(self, division: Division, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        """All of the genome that has bases and labels."""
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
        """Counts what is labelled."""
        number, there, true = self._counted(examples)
        self.check_learned(number)
        for channel, found, known in zip(self.channels, true, there, strict=True):
            if not 0 < found < known:
                raise InvalidValueError(
                    f"of what is learned from, {found:,.0f} of {known:,.0f} {self.counted} are "
                    f"labelled {channel}: expected some, and some that are not. If too little "
                    "of a small genome is left, hold out another stretch with --validation-on, or "
                    "nothing with --validation-on none"
                )
        self.prevalence = (true / there).tolist()
        self.prior = prior(self.prevalence, self.settings.class_weights)

    def check(self, parts: Mapping[str, Any], settings: Settings) -> None:
        """What a model is measured on must have something to tell apart."""
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
                    "--validation-on or --test-on, or with --on where a model is evaluated"
                )

    def _counted(self, examples: Iterable[Example]) -> tuple[int, np.ndarray, np.ndarray]:
        """How many examples there are, and of each channel the bins with labels, and labelled."""
        number, there, true = 0, *np.zeros((2, len(self.channels)))
        for example in examples:
            truth = np.asarray(example["truth"]).reshape(-1, len(self.channels))
            there += (truth != UNLABELLED).sum(0)
            true += (truth == 1).sum(0)
            number += 1
        return number, there, true

    # ---- batches

    def inputs_of(self, row: Example, part: int, number: int, epoch: int | None) -> dict[str, Any]:
        """A strand of this epoch; where a model is measured, the plus strand."""
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
        """With the token of each base [batch, bins, bin], 0 where there is none, and the truth."""
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
        """The logits of bins, [batch, bins, channels]."""
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
        """The bins with labels, of all channels."""
        return int((batch["truth"] != UNLABELLED).sum())

    def loss(self, outputs: Any, batch: Mapping[str, Tensor], weights: Tensor | None) -> Tensor:
        """The mean over these."""
        truth = batch["truth"]
        known = truth != UNLABELLED
        target = torch.where(known, truth, 0).float()
        each = F.binary_cross_entropy_with_logits(outputs, target, reduction="none")
        if weights is not None:
            each = each * weights.to(each.device)[target.long()]
        return (each * known).sum() / known.sum().clamp(min=1)

    def class_weights(self, examples: Iterable[Example]) -> Tensor:
        """Weights that make what is labelled count as much as the rest, [2]."""
        return torch.tensor(balanced(self.prevalence))

    # ---- results

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """The scores of each window with what is true, in four bytes each.

        A genome has millions of bases, and the scores of all are ranked at the end.
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
        """With the share of each channel that is labelled, instead of all labels."""
        labelled = ({"labelled": each["labelled"]} for each in predictions)
        return [{**one, **two} for one, two in zip(examples, labelled, strict=True)], predictions

    def _scores(self, model: Any, batch: Mapping[str, Tensor]) -> list[np.ndarray]:
        """Of the bins of each window, [bins, channels]."""
        scores = self.run(model, batch).sigmoid().cpu().numpy()
        bins = (batch["token_of"] > 0).any(-1).sum(1).tolist()
        return [each[:number] for each, number in zip(scores, bins, strict=True)]

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """How well channels are told from the rest: the means of all, and each by itself."""
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
        """The metrics of all samples at once."""
        tables = self._ranked(predictions)
        found = self._named({name: table.metrics(counts) for name, table in tables})
        return {name: values for name, values in found.items() if not np.isnan(values).all()}

    def _named(self, each: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Means over the channels, and what is told of each, if it has both classes."""
        found = {
            metric: _mean(np.array([own[metric] for own in each.values()]), 0)
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
        """A table for each channel, one at a time."""
        for channel, name in enumerate(self.channels):
            yield name, Ranked.marked([each["scores"][channel] for each in predictions])

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """The mean distance from what is true."""
        return prediction["distance"]

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """The mean score of each channel."""
        return dict(zip(self.channels, prediction["means"], strict=True))

    def expected(self, example: Example) -> Any:
        """The share of each that is labelled."""
        return dict(zip(self.channels, example["labelled"], strict=True))

    # ---- scanning

    def sweep(self, contig: Contig, step: int | None) -> Sweep:
        """Long windows that overlap."""
        if step is not None:
            raise InvalidValueError("--step is for promoters: here the windows overlap by half")
        return Tiles(contig, self.window, self.bin, len(self.channels))

    def scored(self, model: Any, windows: list[str]) -> list[np.ndarray]:
        """The scores of the bins of each window, [bins, channels].

        A bin with fewer bases may be the last, or be filled up with `NO_BASE` anywhere.
        """
        cut = [[each[piece] for piece in self.pieces(each, self.bin)] for each in windows]
        batch = self.batch([self.read(piece) for each in cut for piece in each], self.pad)
        said = iter(self._scores(model, batch))
        return [np.concatenate([next(said) for _ in each]) for each in cut]


class Coding(Tracks):
    """Is a base part of a coding sequence, on the plus strand and on the minus strand?

    The bases of introns are not: a CDS has parts. N is not labelled.
    """

    name = "dna-coding"
    channels = ("+", "-")
    label = "coding"
    counted = "bases"
    told_of_each = ("auroc", "average_precision", "f1", "mcc")

    def labels(self, files: Sequence[str], genome: Genome) -> Labels:
        """From features of kind CDS, or others that are named."""
        features = features_of(files, genome, self.settings.kind, ("CDS",))
        parts = [part for feature in features for part in feature.parts or (feature.interval,)]
        if any(part.strand == "." for part in parts):
            raise InvalidValueError(
                f"{', '.join(files)} has coding sequence without a strand: expected + or -"
            )
        covers = [
            Cover([part for part in parts if part.strand == strand], genome)
            for strand in self.channels
        ]

        def of(interval: Interval) -> np.ndarray:
            truth = np.stack([each.bases(interval) for each in covers], -1).astype(np.uint8)
            letters = np.frombuffer(genome.bases(interval).encode(), np.uint8)
            truth[letters == ord("N")] = UNLABELLED
            return truth

        return of

    def turned(self, scores: np.ndarray) -> np.ndarray:
        """From the other end, and the strands in each other's place."""
        return scores[::-1, ::-1].copy()

    def notes(self) -> list[str]:
        """What is counted."""
        return [
            "Each base is counted on each strand by itself, N left out; the first figures are "
            "the means of both strands, or of the one that has coding bases. Where most bases are "
            "coding, as in bacteria, F1 is high for any model: look at MCC.",
            SIDE_BY_SIDE,
        ]


class Profile(Tracks):
    """Does a bin overlap a feature, or is a signal high in it? For several targets at once.

    A bin is labelled where any of its bases lies in a feature; with a signal (bigWig), where its
    mean lies above a quantile of the means of all bins of the genome. A target is a file, or a
    kind of its features where kinds are named.

    Two targets whose names end in + and -, plus and minus, fwd and rev, or forward and reverse,
    are of strands, and change places where the other strand is read. Others have no strand.
    """

    name = "dna-profile"
    label = "profile"
    described = (*Tracks.described, "quantile")

    def prepare(self, settings: Settings, tokenizer: Any) -> None:
        """Notes the bins, and the targets of the files that are learned from."""
        assert isinstance(settings, DnaLabelSettings)
        if not self.window:
            self.bin = settings.bin
        self.quantile = settings.quantile
        if settings.train and not self.channels:
            first, *_ = self.genomes(settings.train)
            self.channels = tuple(name for name, _, _ in _targets(first.labels, settings.kind))
        super().prepare(settings, tokenizer)

    def look_at_labels(self, files: Sequence[str], genome: Genome) -> None:
        """Reads them."""
        for _, file, kind in _targets(files, self.settings.kind):
            if is_signal(file):
                open_signal(file, genome)
            else:
                read_features(file, genome, kinds=None if kind is None else [kind])

    def labels(self, files: Sequence[str], genome: Genome) -> Labels:
        """From features and signals."""
        targets = _targets(files, self.settings.kind)
        if len(targets) != len(self.channels):
            raise InvalidValueError(
                f"the model knows {len(self.channels)} targets ({', '.join(self.channels)}), and "
                f"the labels are {len(targets)} ({', '.join(name for name, _, _ in targets)}): "
                "give one for each, in the same order"
            )
        targets = self._in_order(targets)
        each = [
            self._signal(file, genome) if signal else self._features(file, kind, genome)
            for (_, file, kind), signal in ((own, is_signal(own[1])) for own in targets)
        ]
        return lambda interval: np.stack([own(interval) for own in each], -1)

    def _in_order(self, targets: list[Target]) -> list[Target]:
        """As the channels are, if they have their names; others may have other names."""
        named = {target[0]: target for target in targets}
        if named.keys() == {*self.channels}:
            return [named[name] for name in self.channels]
        for channel, (name, _, _) in zip(self.channels, targets, strict=True):
            if name != channel and (name in self.channels or channel in named):
                raise InvalidValueError(
                    f"the model knows the targets {', '.join(self.channels)}, and the labels are "
                    f"{', '.join(named)}: give them in the same order"
                )
        return targets

    def _features(self, file: str, kind: str | None, genome: Genome) -> Labels:
        found = read_features(file, genome, kinds=None if kind is None else [kind])
        parts = (part for feature in found for part in feature.parts or (feature.interval,))
        if kind is None and not is_bed(file):
            parts = (part for part in parts if not is_whole(part, genome))
        cover = Cover(parts, genome)

        def of(interval: Interval) -> np.ndarray:
            return self._bins(cover.bases(interval).astype(float), np.nanmax).astype(np.uint8)

        return of

    def _signal(self, file: str, genome: Genome) -> Labels:
        signal = open_signal(file, genome)
        means: list[np.ndarray] = []
        for contig in genome.sequences.values():
            size = 4096 * self.bin
            for start in range(0, contig.length, size):
                end = min(start + size, contig.length)
                values = signal.values(Interval(contig.name, start, end, "+"))
                means.append(self._bins(values, _mean))
        every = np.concatenate(means)
        every = every[~np.isnan(every)]
        if not len(every):
            raise InvalidValueError(f"{file} has no numbers on the sequences of {genome.file}")
        limit = float(np.quantile(every, self.quantile))

        def of(interval: Interval) -> np.ndarray:
            own = self._bins(signal.values(interval), _mean)
            return np.where(np.isnan(own), UNLABELLED, own > limit).astype(np.uint8)

        return of

    def _bins(self, values: np.ndarray, of: Callable[..., np.ndarray]) -> np.ndarray:
        """One number for each bin; the last may have fewer bases."""
        bins = -(-len(values) // self.bin)
        padded = np.full(bins * self.bin, np.nan)
        padded[: len(values)] = values
        return of(padded.reshape(bins, self.bin), axis=1)

    def turned(self, scores: np.ndarray) -> np.ndarray:
        """From the other end; the targets of two strands change places."""
        return scores[::-1, _opposites(self.channels)].copy()

    def notes(self) -> list[str]:
        """What a label means."""
        return [
            f"A bin has {self.bin:,} bases. It is labelled where it overlaps a feature, or where "
            f"the mean of a signal lies above the {self.quantile:g} quantile of all bins. The "
            "first figures are the means of all targets that are there.",
            SIDE_BY_SIDE,
        ]


def _targets(files: Sequence[str], kinds: Sequence[str]) -> list[Target]:
    """The targets of some files."""
    found: list[Target] = []
    for file in files:
        stem = Path(file).name.removesuffix(".gz").rsplit(".", 1)[0]
        if kinds and not is_signal(file) and not is_bed(file):
            found += [(kind, file, kind) for kind in kinds]
        else:
            found.append((stem, file, None))
    stems = [name for name, _, _ in found]
    found = [
        (Path(file).name if kind is None and stems.count(name) > 1 else name, file, kind)
        for name, file, kind in found
    ]
    names = [name for name, _, _ in found]
    return [
        (f"{name} {1 + names[:at].count(name)}" if names.count(name) > 1 else name, file, kind)
        for at, (name, file, kind) in enumerate(found)
    ]


@cache
def _opposites(names: tuple[str, ...]) -> list[int]:
    """Of each target, which is the same on the other strand; itself, if it has no strand.

    Examples:
        >>> _opposites(("genes +", "sites", "genes -", "rna.fwd", "rna.rev", "minus"))
        [2, 1, 0, 4, 3, 5]
    """
    keys: list[tuple[str, str]] = []
    for name in names:
        found = re.fullmatch(rf"(.+?)[ ._-]?({'|'.join(map(re.escape, STRANDS))})", name, re.I)
        keys.append((found[1], found[2].lower()) if found else (name, ""))
    others = [(stem, STRANDS.get(word, "")) for stem, word in keys]
    return [keys.index(other) if other in keys else at for at, other in enumerate(others)]


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Of what is there; NaN where nothing is."""
    there = ~np.isnan(values)
    number = there.sum(axis)
    total = np.where(there, values, 0.0).sum(axis)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)
