"""Whole encoders beside Hugging Face's BigBird and Longformer, and BERT in chunks."""

from __future__ import annotations

from experiments.speed.encoders.report import report
from experiments.speed.encoders.steps import EncoderSettings, steps
from experiments.speed.run import Comparison
from experiments.speed.targets import encoder_goals


def experiment(scale: str) -> Comparison:
    """Return the comparison at a scale."""
    settings = EncoderSettings.quickly() if scale == "quick" else EncoderSettings()
    return Comparison("encoders", settings, steps(settings), report, encoder_goals)
