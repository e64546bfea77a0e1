"""Time and memory of attention beside dense SDPA, FlexAttention and Hugging Face's long models."""

from __future__ import annotations

from experiments.speed.attention.report import report
from experiments.speed.attention.steps import AttentionSettings, steps
from experiments.speed.run import Comparison
from experiments.speed.targets import attention_goals


def experiment(scale: str) -> Comparison:
    """Return the comparison at a scale."""
    settings = AttentionSettings.quickly() if scale == "quick" else AttentionSettings()
    return Comparison("attention", settings, steps(settings), report, attention_goals)
