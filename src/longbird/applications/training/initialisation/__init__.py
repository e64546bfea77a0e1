"""The model and the tokenizer that a run starts from: loaded, made longer, or new."""

from longbird.applications.training.requirements import require_packages

require_packages()
