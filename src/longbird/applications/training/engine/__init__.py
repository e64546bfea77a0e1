"""The course of a run: training, checkpoints, resuming, evaluation, prediction and reports."""

from longbird.applications.training.requirements import require_packages

require_packages()
