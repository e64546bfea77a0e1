"""The mean of two readers, weight by weight.

    python recipes/reader/mean.py FIRST LAST RUN [SHARE]

SHARE is what LAST counts, three quarters if nothing is said. The result is RUN/model.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from safetensors.torch import load_file, save_file


def mean(first: Path, last: Path, run: Path, share: float = 0.75) -> None:
    """Writes the model, with the configuration and tokenizer of the last."""
    model = run / "model"
    model.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(last / name, model / name)
    before, after = (load_file(each / "model.safetensors") for each in (first, last))
    both = {name: before[name].float().lerp(x.float(), share) for name, x in after.items()}
    save_file(both, model / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    first, last, run = map(Path, sys.argv[1:4])
    mean(first, last, run, *map(float, sys.argv[4:]))
