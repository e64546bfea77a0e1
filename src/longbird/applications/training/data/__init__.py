"""From the user's files to batches of tokens: rows, columns, splits, and tokens on the disk."""

import longbird.applications.training.requirements  # noqa: F401
