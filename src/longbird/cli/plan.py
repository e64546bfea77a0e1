"""`longbird plan`: what attention will cost on this machine, before it is run."""

from __future__ import annotations

from typing import Annotated

import typer

from longbird.cli.graph_argument import GraphArgument, parse_graph
from longbird.cli.options import Batch, DType, HeadDim, Heads, Storage, Threads, Tokens
from longbird.cli.terminal import say, working


def plan(
    graph: GraphArgument = "bigbird",
    n: Tokens = 4096,
    heads: Heads = 12,
    head_dim: HeadDim = 64,
    layers: Annotated[int, typer.Option(help="Layers that attend.", min=1)] = 1,
    batch: Batch = 1,
    dtype: Storage = DType.float32,
    backward: Annotated[bool, typer.Option(help="Count the backward pass too.")] = False,
    threads: Threads = None,
) -> None:
    """Predict FLOPs, memory and time of a graph, and the length above which sparse wins here.

    Takes a second or two: the machine is calibrated with a few small calls.
    """
    parsed = parse_graph(graph)
    with working(f"Laying out {n:,} tokens, and timing small calls to calibrate"):
        import torch

        from longbird.cost import plan as predict

        if threads is not None:
            torch.set_num_threads(threads)
        planned = predict(
            {"graph": parsed, "heads": heads, "head_dim": head_dim, "layers": layers},
            n,
            batch=batch,
            dtype=getattr(torch, dtype.value),
            backward=backward,
        )
    say(str(planned))
