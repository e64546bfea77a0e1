"""Learning where promoters start, on each strand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.applications.dna.division import Division
from longbird.applications.dna.genomes import Contig, Genome, Interval, read_features
from longbird.applications.dna.genomes.interval import STRANDS
from longbird.applications.dna.genomic import SHOWN, Genomic
from longbird.applications.dna.labels import GENES, Cover, features_of
from longbird.applications.dna.negatives import RECIPES, artificial, places
from longbird.applications.dna.prior import balanced, prior
from longbird.applications.dna.scores import Ranked
from longbird.applications.dna.settings import DnaLabelSettings
from longbird.applications.dna.sweeps import Starts, Sweep, bases_around
from longbird.applications.training.settings.groups import Settings
from longbird.applications.training.tasks.task import Example, Prediction
from longbird.errors import InvalidValueError

USUAL = ("promoter", "TSS", "transcription_start_site")
PLACED = ("random", "intergenic")
PER_WINDOW = 30
"""Number of starts that a scan scores within the length of a window."""
STRETCH, STRETCHES = 8, 64
"""Approximate number of bases that share a logit, and maximum number of logits of a window.

With one logit for all tokens, a model knows what a window has, but hardly where: with intergenic
negatives of E. coli, its AUROC on validation windows was 0.58, that of logistic regression on the
bases by position 0.73, and that of this model 0.79 (recipes/dna)."""


class Promoters(Genomic):
    """Windows around starts on their own strand, against negatives.

    A window has `upstream` bases before the start and `downstream` bases from it on; positions
    beyond the end of a sequence are N. The model has a logit for each stretch of the window, and
    each base uses the logit of its stretch, since the meaning of a -10 box depends on its place.
    """

    name = "dna-promoter"
    head = "token-classification"
    best = "average_precision"
    inputs = ("bases", "truth")
    defaults: ClassVar[Mapping[str, Any]] = {"learning_rate": 3e-4, "model": "scratch:tiny"}
    described = (
        "window", "upstream", "downstream", "negatives", "per_positive", "prevalence", "prior",
    )  # fmt: skip
    channels = ("+", "-")
    label = "promoter"
    reads_one_strand = True

    def prepare(self, settings: Settings, tokenizer: Any) -> None:
        """Set the size of windows, and the negatives."""
        assert isinstance(settings, DnaLabelSettings)
        if not self.window:
            self.upstream, self.downstream = settings.upstream, settings.downstream
        self.negatives, self.per_positive = settings.negatives, settings.per_positive
        super().prepare(settings, tokenizer)

    def window_of(self, genome: Genome) -> int:
        """Return the number of bases of a window."""
        return self.upstream + self.downstream

    def head_settings(self) -> dict[str, Any]:
        """Return the configuration of a logit per stretch, named by its bases: the start is 1."""
        stretch_of = self._stretch_of(min(STRETCHES, -(-self.window // STRETCH)))
        places = [*range(-self.upstream, 0), *range(1, self.downstream + 1)]
        names = [
            f"{places[own[0]]}..{places[own[-1]]}"
            for stretch in range(int(stretch_of[-1]) + 1)
            for own in [np.flatnonzero(stretch_of == stretch)]
        ]
        return {
            "num_labels": len(names),
            "id2label": dict(enumerate(names)),
            "label2id": {name: number for number, name in enumerate(names)},
        }

    def window_at(self, name: str, base: int, strand: str) -> Interval:
        """Return the window of a start.

        Examples:
            >>> task = Promoters()
            >>> task.upstream, task.downstream = 3, 1
            >>> str(task.window_at("chr1", 10, "+")), str(task.window_at("chr1", 10, "-"))
            ('chr1:8-11(+)', 'chr1:11-14(-)')
        """
        if strand == "-":
            return Interval(name, base + 1 - self.downstream, base + 1 + self.upstream, strand)
        return Interval(name, base - self.upstream, base + self.downstream, strand)

    def starts(self, files: Sequence[str], genome: Genome) -> list[tuple[str, int, str]]:
        """Return the distinct starts of promoters: sequence, base and strand."""
        found: dict[tuple[str, int, str], None] = {}
        for feature in features_of(files, genome, self.settings.kind, USUAL):
            interval = feature.interval
            if interval.strand == ".":
                raise InvalidValueError(
                    f"the {feature.kind} at {interval} has no strand (+ or -): promoters need one"
                )
            if not len(interval):
                raise InvalidValueError(
                    f"the {feature.kind} that begins and ends at {interval.start:,} of "
                    f"{interval.name} has no bases: a start is a base, whose end in BED is one "
                    "more than its start"
                )
            base = interval.position(0) % genome.sequences[interval.name].length
            found[interval.name, base, interval.strand] = None
        return list(found)

    def look_at_labels(self, files: Sequence[str], genome: Genome) -> None:
        """Read the starts, so that errors are found before a run begins."""
        self.once(("labels", *files, genome.file), lambda: self.starts(files, genome))

    def windows(self, division: Division, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        """Yield promoters and negatives of a genome."""
        files = self.labels_of(division.genome)
        yield from self.labelled(files, division.genome, division.part_of, say)

    def labelled(
        self,
        files: Sequence[str],
        genome: Genome,
        part_of: Callable[[Interval], str | None],
        say: Callable[[str], None],
    ) -> Iterator[dict[str, Any]]:
        """Yield promoters and negatives of a genome, in the parts that `part_of` returns."""
        starts = self.once(("labels", *files, genome.file), lambda: self.starts(files, genome))
        draw = np.random.default_rng((self.settings.seed, 7))
        quotas: dict[str, int] = {}
        outside = 0
        for start in starts:
            window = self.window_at(*start)
            part = part_of(window)
            if part is None:
                outside += 1
                continue
            bases = bases_around(genome, window)
            yield self._example(str(window), part, bases, True)
            if self.negatives in PLACED:
                quotas[part] = quotas.get(part, 0) + self.per_positive
                continue
            for _ in range(self.per_positive):
                made = artificial(bases, self.negatives, draw)
                yield self._example(f"{window}, {self.negatives}", part, made, False)
        if outside:
            say(
                f"{outside:,} of {len(starts):,} promoters are skipped: they lie in a gap, or "
                "outside of the chosen regions"
            )
        if quotas:
            allowed = self.once(
                ("allowed", *files, genome.file), lambda: self._allowed(files, genome, starts)
            )
            for window, part in places(genome, self.window_at, part_of, quotas, allowed, draw):
                yield self._example(str(window), part, bases_around(genome, window), False)

    @staticmethod
    def _example(place: str, part: str, bases: str, truth: bool) -> dict[str, Any]:
        return {"place": place, "part": part, "bases": bases, "truth": truth}

    def _allowed(
        self, files: Sequence[str], genome: Genome, starts: Sequence[tuple[str, int, str]]
    ) -> Callable[[str, int, str], bool]:
        """Return a function that tells whether a negative may start at a place."""
        near = {strand: Cover([], genome) for strand in STRANDS[:2]}
        for strand in near:
            around = [
                _on_sequence(genome, Interval(name, base - self.window + 1, base + self.window))
                for name, base, own in starts
                if own == strand
            ]
            near[strand] = Cover(around, genome)
        genes = None
        if self.negatives == "intergenic":
            found = [each for file in files for each in read_features(file, genome)]
            inside = [each.interval for each in found if each.kind in GENES]
            if not inside:
                raise InvalidValueError(
                    f"{', '.join(files)} has no genes, which `negatives=intergenic` needs: "
                    f"give a file with features of kind {', '.join(GENES[:4])} beside the "
                    "promoters"
                )
            genes = Cover(inside, genome)

        def allowed(name: str, base: int, strand: str) -> bool:
            if near[strand].has(name, base):
                return False
            window = _on_sequence(genome, self.window_at(name, base, strand))
            return genes is None or not genes.touches(window)

        return allowed

    def learn(self, examples: Iterable[Example]) -> None:
        """Compute the share of promoters."""
        truth = [bool(each["truth"]) for each in examples]
        self.check_learned(len(truth))
        self.prevalence = sum(truth) / len(truth)
        self.prior = prior(self.prevalence, self.settings.class_weights)

    def check(self, parts: Mapping[str, Any], settings: Settings) -> None:
        """Raise an error if a part has only one class."""
        for part, rows in parts.items():
            true = sum(rows["truth"])
            if not 0 < true < len(rows):
                raise InvalidValueError(
                    f"{part} has {true:,} promoters among {len(rows):,} windows: expected both "
                    "classes. Hold out another stretch with `validation_on` or `test_on`"
                )

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int, training: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Yield the examples with their number of tokens."""
        for example in examples:
            bases = example["bases"]
            tokens = 2 + len(self.tokens.encode(bases))
            if tokens > length:
                raise InvalidValueError(
                    f"the window {example['place']} has {tokens:,} tokens, and the model reads "
                    f"{length:,}: set `length={tokens}` or more, or use shorter windows"
                )
            yield {**example, "text": bases[:SHOWN], "tokens": tokens}

    # ---- batches

    def inputs_of(self, row: Example, part: int, number: int, epoch: int | None) -> dict[str, Any]:
        """Return the inputs of a window, always on its own strand."""
        return {**self.read(row["bases"]), "truth": float(row["truth"])}

    def read(self, bases: str) -> dict[str, Any]:
        """Return tokens as in `Genomic`, without those beyond the maximum length."""
        read, most = super().read(bases), self.settings.length - 2
        [*first, last] = read["input_ids"]
        token_of = np.where(read["token_of"] <= most, read["token_of"], 0)
        return {"input_ids": [*first[: 1 + most], last], "token_of": token_of}

    def batch(
        self,
        examples: Sequence[dict[str, Any]],
        pad: Callable[[Sequence[dict[str, Any]]], dict[str, Tensor]],
    ) -> dict[str, Tensor]:
        """Add the token of each base [batch, bases], 0 if it has none, and the truth."""
        batch = pad([{"input_ids": each["input_ids"]} for each in examples])
        batch["token_of"] = torch.from_numpy(np.stack([each["token_of"] for each in examples]))
        if "truth" in examples[0]:
            batch["truth"] = torch.tensor([each["truth"] for each in examples])
        return batch

    def run(self, model: Any, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the logits of windows [batch]: the sum of the mean logits of stretches."""
        logits = model(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]
        ).logits.float()  # [batch, tokens, stretches]
        token_of, stretches = batch["token_of"], logits.shape[-1]
        stretch_of = torch.from_numpy(self._stretch_of(stretches)).to(logits.device)
        each = logits.flatten(1).gather(1, token_of * stretches + stretch_of)  # [batch, bases]
        return (each * (token_of > 0) / stretch_of.bincount()[stretch_of]).sum(1)

    def _stretch_of(self, stretches: int) -> np.ndarray:
        """Return the stretch of each base of a window, [bases]."""
        return np.arange(self.window) * stretches // self.window

    def loss(self, outputs: Any, batch: Mapping[str, Tensor], weights: Tensor | None) -> Tensor:
        """Return the mean loss over windows."""
        each = F.binary_cross_entropy_with_logits(
            outputs, batch["truth"].float(), reduction="none"
        )
        if weights is not None:
            each = each * weights.to(each.device)[batch["truth"].long()]
        return each.mean()

    def class_weights(self, examples: Iterable[Example]) -> Tensor:
        """Return weights with which both classes count equally, [2]."""
        return torch.tensor(balanced(self.prevalence))

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """Return the score of each window."""
        return [{"score": each} for each in self.run(model, batch).sigmoid().cpu().tolist()]

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """Return the score of a window."""
        return {"promoter": prediction["score"]}

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """Return the metrics of promoters against negatives."""
        ranked = self._ranked(examples, predictions)
        return {
            "windows": len(examples),
            "promoters": int(ranked.true.sum()),
            "negatives": self.negatives,
            **ranked.whole(),
            "prevalence": ranked.prevalence,
        }

    def resampled(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], counts: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the metrics of all samples."""
        return self._ranked(examples, predictions).metrics(counts)

    @staticmethod
    def _ranked(examples: Sequence[Example], predictions: Sequence[Prediction]) -> Ranked:
        truth = np.array([bool(each["truth"]) for each in examples])
        scores = np.array([each["score"] for each in predictions])
        return Ranked.each(scores, truth)

    def sweep(self, contig: Contig, step: int | None) -> Sweep:
        """Return windows at equally spaced starts."""
        step = max(1, self.window // PER_WINDOW) | 1 if step is None else step
        if not 1 <= step <= self.window:
            raise InvalidValueError(
                f"`step` must be between 1 and the {self.window:,} bases of a window, received "
                f"{step}"
            )
        return Starts(contig, step, self.window_at)

    def scored(self, model: Any, windows: list[str]) -> list[np.ndarray]:
        """Return the score of each window."""
        batch = self.batch([self.read(each) for each in windows], self.pad)
        return list(self.run(model, batch).sigmoid().cpu().numpy())

    def notes(self) -> list[str]:
        """Return a note on the negatives."""
        return [
            f"Negatives: {self.negatives}, {self.per_positive} for each promoter "
            f"({RECIPES[self.negatives]}). Figures with other negatives cannot be compared "
            "with these, and none of them is the precision of a scan."
        ]

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """Return the difference between the score and the truth."""
        return 1 - prediction["score"] if example["truth"] else prediction["score"]

    def expected(self, example: Example) -> Any:
        """Return whether it is a promoter."""
        return bool(example["truth"])


def _on_sequence(genome: Genome, interval: Interval) -> Interval:
    """Cut an interval to its sequence; on a circle, to at most one round."""
    contig, start, end = genome.sequences[interval.name], interval.start, interval.end
    if contig.circular:
        return replace(interval, end=min(end, start + contig.length))
    return replace(interval, start=max(start, 0), end=min(end, contig.length))
