"""What a task is, and one module or package for each."""

import longbird.applications.training.requirements  # noqa: F401
