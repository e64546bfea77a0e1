"""How far a run is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from tqdm import tqdm
from transformers import TrainerCallback

EVERY = 30.0
"""Seconds between lines where there is no terminal."""


class Progress(TrainerCallback):
    """Shows steps, loss, tokens a second and the time that is left."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say, self.bar, self.told = say, None, 0.0
        self.loss: float | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """At the beginning, or where it goes on."""
        self.started, self.tokens = time.perf_counter(), state.num_input_tokens_seen
        self.first = state.global_step
        if state.is_world_process_zero and sys.stderr.isatty():
            self.bar = tqdm(total=state.max_steps, initial=state.global_step, unit="step")

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After a step."""
        spent = time.perf_counter() - self.started
        rate = (state.num_input_tokens_seen - self.tokens) / spent
        loss = "" if self.loss is None else f"loss {self.loss:.4f}, "
        if self.bar is not None:
            self.bar.update(state.global_step - self.bar.n)
            self.bar.set_postfix_str(f"{loss}{rate:,.0f} tokens/s")
        elif spent - self.told > EVERY:
            self.told = spent
            left = spent / (state.global_step - self.first) * (state.max_steps - state.global_step)
            self.say(
                f"step {state.global_step} of {state.max_steps}: {loss}{rate:,.0f} tokens/s, "
                f"{left:,.0f} s left"
            )

    def measured(self, line: dict[str, Any]) -> None:
        """What was logged."""
        self.loss = line.get("loss", self.loss)
        scores = {
            name[5:]: value
            for name, value in line.items()
            if name.startswith("eval_") and name != "eval_seconds"
        }
        if scores:
            text = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
            if self.bar is not None:
                self.bar.clear()
            self.say(f"step {line['step']}: {text}")
