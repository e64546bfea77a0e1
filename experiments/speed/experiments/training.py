"""Training steps with data loading beside transformers' Trainer with other models."""

from __future__ import annotations

from experiments.speed.run import Comparison
from experiments.speed.training.report import report
from experiments.speed.training.steps import TrainingSettings, steps
from experiments.speed.training.targets import training_goals


def experiment(scale: str) -> Comparison:
    """Return the comparison at a scale."""
    settings = TrainingSettings.quickly() if scale == "quick" else TrainingSettings()
    return Comparison("training", settings, steps(settings), report, training_goals)
