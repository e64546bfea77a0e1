"""A graph on the command line: an expression, a preset's name, or a JSON file."""

from __future__ import annotations

from pathlib import Path

from longbird.graph import Graph, as_graph

HELP = (
    'A graph: an expression ("bigbird(block=64) & Causal()"), the name of a preset (bigbird, '
    "longformer), or a JSON file."
)


def parse_graph(text: str) -> Graph:
    """The graph that an expression, a preset's name or a JSON file stands for.

    Raises:
        ValueError: It is none of these; the message points at the part that is not understood.
    """
    if text.strip().endswith(".json"):
        path = Path(text.strip())
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
        return Graph.from_json(path.read_text(encoding="utf-8"))
    return as_graph(text)
