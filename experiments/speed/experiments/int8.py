"""Encoders with int8 weights beside the same encoders in float32."""

from __future__ import annotations

from experiments.speed.encoders.report import report
from experiments.speed.encoders.steps import EncoderSettings, forward_steps
from experiments.speed.run import Comparison
from experiments.speed.targets import int8_goals


def experiment(scale: str) -> Comparison:
    """Return the comparison at a scale; the quick one has fewer rounds."""
    settings = EncoderSettings.rounded("native", **({"repeats": 5} if scale == "quick" else {}))
    return Comparison("int8", settings, forward_steps(settings), report, int8_goals)
