"""`longbird plan`: predict the cost of attention on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longbird.cli import processor
from longbird.cli.graph_argument import HELP, complete_graph, parse_graph
from longbird.cli.options import Batch, DType, HeadDim, Heads, Storage, Threads, Tokens
from longbird.cli.terminal import say, stderr, working
from longbird.errors import InvalidValueError

if TYPE_CHECKING:
    from longbird.core.graph import Graph

OF_A_MODEL = {"heads": "--heads", "head_dim": "--head-dim", "layers": "--layers"}


def plan(
    context: typer.Context,
    graph: Annotated[
        str,
        typer.Argument(
            help=f"{HELP} Or the folder of a model, whose config.json defines layers and heads.",
            autocompletion=complete_graph,
        ),
    ] = "bigbird",
    n: Tokens = 4096,
    heads: Heads = 12,
    head_dim: HeadDim = 64,
    layers: Annotated[int, typer.Option(help="Number of layers with attention.", min=1)] = 1,
    batch: Batch = 1,
    dtype: Storage = DType.float32,
    backward: Annotated[bool, typer.Option(help="Include the backward pass.")] = False,
    threads: Threads = None,
) -> None:
    """Predict operations, memory and time, and the length from which sparse attention is faster.

    This takes a second or two, because a few small calls are timed to calibrate the prediction.
    """
    if is_model(graph):
        given = [option for name, option in OF_A_MODEL.items() if _was_given(context, name)]
        if given:
            raise InvalidValueError(
                f"{graph} is the folder of a model, whose config.json says what "
                f"{' and '.join(given)} would: leave the option out"
            )
        with working("Loading transformers"):
            from longbird.models.checkpoints import read_config
        source: Any = read_config(graph)
    else:
        shape = {"heads": heads, "head_dim": head_dim, "layers": layers}
        source = {"graph": _parse(graph), **shape}
    with working(f"Laying out {n:,} tokens, and timing small calls to calibrate"):
        import torch

        from longbird.analysis.plan import plan as predict

        load, cores = processor.load_average() or 0.0, os.cpu_count() or 1
        if threads is not None:
            torch.set_num_threads(threads)
        planned = predict(
            source, n, batch=batch, dtype=getattr(torch, dtype.value), backward=backward
        )
    say(str(planned))
    longest = getattr(source, "longest_document", None)
    if longest is not None and getattr(source, "positions", "none") != "none" and n > longest:
        _warn(
            f"The model has positions for {longest:,} tokens only: it cannot read {n:,}. "
            "`longbird convert` makes a longer model from a BERT, RoBERTa or MPNet."
        )
    if load > 0.5 * cores:
        _warn(
            f"The machine was busy (load {load:g} with {cores} cores) when it was calibrated: do "
            "not trust the times and the crossover; plan again when it is idle."
        )


def _warn(text: str) -> None:
    stderr.print(text, style="yellow", highlight=False, soft_wrap=True)


def _parse(text: str) -> Graph:
    """Return the graph; an error about a plain word also mentions folders of models."""
    from longbird.core.graph.expression import names

    try:
        return parse_graph(text)
    except ValueError as error:
        word = text.strip()
        if "(" in word or word in names() or word.startswith("{") or word.endswith(".json"):
            raise
        raise InvalidValueError(
            f"{error}, or the folder of a model, which has a config.json"
        ) from error


def is_model(text: str) -> bool:
    """Return whether this is the folder of a model."""
    try:
        return (Path(text) / "config.json").is_file()
    except (OSError, ValueError):  # an expression that is too long for a name
        return False


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
