"""The model and the tokenizer that a run starts from: loaded, made longer, or new."""

import longbird.applications.training.requirements  # noqa: F401
