"""Models with fewer positions than a run needs are made longer on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from longbird.applications.training.engine.run_folder import RunFolder
from longbird.core.graph import Graph
from longbird.models.checkpoints import read_config
from longbird.models.conversion import convert_checkpoint


def long_enough(
    source: str,
    length: int,
    graph: Graph | None,
    folder: RunFolder,
    say: Callable[[str], None],
    task: str = "model",
) -> str | Path:
    """The source, or a longer one made of it, in the folder of the run with its certificate.

    Args:
        source: Of an encoder.
        length: Tokens that it has to read.
        graph: Of the longer one; the source's by default.
        folder: Of the run.
        say: Function that is called with a line about it.
        task: The head that is worth keeping, where there is one.

    Raises:
        ValueError: It cannot be made that long.
    """
    if not folder.start.exists():
        longest = read_config(source).longest_document
        if length <= longest:
            return source
        say(
            f"{source} has positions for {longest:,} tokens: it is extended to {length:,}; "
            f"{folder.start} has the result and its certificate"
        )
        with folder.making(folder.start) as new:
            convert_checkpoint(source, new, length, graph=graph, task=task, new_head=True)
    return folder.start
