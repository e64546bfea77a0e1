"""The course of a run: training, checkpoints, resuming, evaluation, prediction and reports."""

import longbird.applications.training.requirements  # noqa: F401
