"""Makes the files of the reader that ships, of a finished run.

    python recipes/reader/ship.py RUN [QUESTIONS]

They go into src/longbird/reading/shipped: the configuration, and the difference to the weights of
MiniLM. With a file of questions, what making it small has cost.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from safetensors.torch import load_file
from scoring import f1_by_kind, in_percent

from longbird.bench.quality.documents import read_rows
from longbird.data import minilm
from longbird.reading.default import DIFFERENCE, SHIPPED, default_reader, starting_weights
from longbird.reading.difference import write_difference
from longbird.tasks.ask import Ask
from longbird.tasks.trained import load_trained


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


def compare(run: Path, questions: Path) -> None:
    """Prints the F1 of the run's model and of what ships."""
    rows = read_rows(questions)
    for name, folder in (("the run", run / "model"), ("what ships", default_reader())):
        trained = load_trained(folder)
        assert isinstance(trained.task, Ask)
        trained.task.twice = True
        print(f"{name}: {in_percent(f1_by_kind(trained, rows))}")


if __name__ == "__main__":
    ship(Path(sys.argv[1]))
    if len(sys.argv) > 2:
        compare(Path(sys.argv[1]), Path(sys.argv[2]))
