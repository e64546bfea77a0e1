"""From the user's files to batches of tokens: rows, columns, splits, and tokens on the disk."""

from longbird.applications.training.requirements import require_packages

require_packages()
