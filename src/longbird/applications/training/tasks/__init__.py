"""What a task is, and one module or package for each."""

from longbird.applications.training.requirements import require_packages

require_packages()
