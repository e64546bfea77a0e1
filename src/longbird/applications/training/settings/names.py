"""What to tell a caller who uses a name that is not an option."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence

TOKENS = "; batches are filled by tokens, not by documents"
FAMILIAR: dict[str, tuple[str, str]] = {
    "lr": ("learning_rate", ""),
    "peak_lr": ("learning_rate", ""),
    "num_train_epochs": ("epochs", ""),
    "num_epochs": ("epochs", ""),
    "n_epochs": ("epochs", ""),
    "max_steps": ("steps", ""),
    "num_steps": ("steps", ""),
    "batch_size": ("tokens_per_batch", TOKENS),
    "train_batch_size": ("tokens_per_batch", TOKENS),
    "eval_batch_size": ("tokens_per_batch", TOKENS),
    "per_device_train_batch_size": ("tokens_per_batch", TOKENS),
    "per_device_eval_batch_size": ("tokens_per_batch", TOKENS),
    "gradient_accumulation_steps": ("accumulate", ""),
    "max_length": ("length", ""),
    "max_seq_length": ("length", ""),
    "block_size": ("length", ""),
    "warmup_ratio": ("warmup", ""),
    "warmup_steps": ("warmup", "; it is a fraction of the steps"),
    "lr_scheduler_type": ("schedule", ""),
    "scheduler": ("schedule", ""),
    "max_grad_norm": ("clip", ""),
    "output_dir": ("out", ""),
    "output": ("out", ""),
    "model_name_or_path": ("model", ""),
    "base_model": ("model", ""),
    "eval_steps": ("evaluate_every", ""),
    "save_steps": ("save_every", "; it is a number of seconds"),
    "early_stopping_patience": ("patience", ""),
    "random_state": ("seed", ""),
    "data_seed": ("seed", ""),
    "text_column": ("text", ""),
    "label_column": ("label", ""),
    "lora_r": ("lora", ""),
    "lora_rank": ("lora", ""),
    "validation_split": ("hold_out", ""),
    "test_size": ("hold_out", ""),
    "train_file": ("train", ""),
    "validation_file": ("validation", ""),
    "eval_file": ("validation", ""),
    "mlm_probability": ("mask", ""),
    "num_beams": ("beams", ""),
}
"""Names that other libraries use: the name here, and what differs in the meaning."""


def unknown_option(
    name: str,
    options: Collection[str],
    others: Mapping[str, Sequence[str]] | None = None,
    task: str = "this task",
) -> str:
    """Return a message about a name that is not an option.

    Args:
        name: The name that was received.
        options: Names of the options that there are.
        others: Options of other tasks, with the tasks that have them.
        task: Name of the task.

    Examples:
        >>> unknown_option("lr", ["learning_rate"])
        'unknown option `lr`: use `learning_rate`'
        >>> unknown_option("beams", ["length"], {"beams": ["summarize"]}, "classify")
        'classify has no option `beams`, which belongs to summarize'
        >>> unknown_option("legnth", ["length"])
        'unknown option `legnth`: did you mean `length`?'
    """
    if found := familiar(name, options):
        return f"unknown option `{name}`: use `{found}`{FAMILIAR[name][1]}"
    if others and name in others:
        return f"{task} has no option `{name}`, which belongs to {', '.join(others[name])}"
    if close := difflib.get_close_matches(name, options, 1, cutoff=0.7):
        return f"unknown option `{name}`: did you mean `{close[0]}`?"
    return f"unknown option `{name}`, expected one of {', '.join(options)}"


def familiar(name: str, options: Collection[str]) -> str | None:
    """Return the option that other libraries call by this name, if there is one."""
    found = FAMILIAR.get(name, (None, ""))[0]
    return found if found in options or found in ("out", "train") else None
