"""Makes the files of the reader that ships, of a finished run.

    python recipes/reader/ship.py RUN

They go into src/longbird/applications/reading/shipped:
the configuration, and the difference to the weights of
MiniLM. What making it small costs, shrunk.py measures.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from difference import write_difference
from safetensors.torch import load_file

from longbird.applications.reading.default_reader import DIFFERENCE, SHIPPED, starting_weights
from longbird.files.sources import minilm


def ship(run: Path) -> None:
    """Writes the files."""
    model = run / "model"
    SHIPPED.mkdir(exist_ok=True)
    trained = load_file(model / "model.safetensors")
    config = json.loads((model / "config.json").read_text("utf-8"))
    start = starting_weights(minilm.path(), config["max_position_embeddings"])
    write_difference(trained, start, SHIPPED / DIFFERENCE)
    (SHIPPED / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    size = (SHIPPED / DIFFERENCE).stat().st_size
    print(f"{SHIPPED / DIFFERENCE}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    ship(Path(sys.argv[1]))
