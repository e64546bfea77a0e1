"""Learning which bases code for proteins, on each strand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longbird.applications.dna.genomes import Genome, Interval
from longbird.applications.dna.labels import Cover, features_of
from longbird.applications.dna.tracks import SIDE_BY_SIDE, UNLABELLED, Labels, Tracks
from longbird.errors import InvalidValueError


class Coding(Tracks):
    """Whether each base is part of a coding sequence, on the plus and on the minus strand.

    Bases of introns are not, since a CDS has parts. N has no label.
    """

    name = "dna-coding"
    channels = ("+", "-")
    label = "coding"
    counted = "bases"
    told_of_each = ("auroc", "average_precision", "f1", "mcc")

    def labels(self, files: Sequence[str], genome: Genome) -> Labels:
        """Read features of kind CDS, or of the kinds in the settings."""
        features = features_of(files, genome, self.settings.kind, ("CDS",))
        parts = [part for feature in features for part in feature.parts or (feature.interval,)]
        if any(part.strand == "." for part in parts):
            raise InvalidValueError(
                f"{', '.join(files)} has coding sequences without a strand: expected + or -"
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
        """Reverse the bins, and swap the strands."""
        return scores[::-1, ::-1].copy()

    def notes(self) -> list[str]:
        """Return notes on what is counted."""
        return [
            "Each base is counted on each strand by itself, N left out; the first figures are "
            "the means of both strands, or of the one that has coding bases. Where most bases are "
            "coding, as in bacteria, F1 is high for any model: look at MCC.",
            SIDE_BY_SIDE,
        ]
