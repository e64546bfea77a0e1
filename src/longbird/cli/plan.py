"""`longbird plan`: what attention will cost on this machine, before it is run."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import torch
import typer
from rich.console import Console

from longbird.cli.graph_argument import HELP, parse_graph
from longbird.cost import plan as predict

console = Console()


class DType(str, Enum):
    """Storage of q, k and v."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


def plan(
    graph: Annotated[str, typer.Argument(help=HELP)] = "bigbird",
    n: Annotated[int, typer.Option("-n", "--tokens", help="Tokens of a sequence.", min=1)] = 4096,
    heads: Annotated[int, typer.Option(help="Heads.", min=1)] = 12,
    head_dim: Annotated[int, typer.Option(help="Size of a head.", min=1)] = 64,
    layers: Annotated[int, typer.Option(help="Layers that attend.", min=1)] = 1,
    batch: Annotated[int, typer.Option(help="Sequences.", min=1)] = 1,
    dtype: Annotated[DType, typer.Option(help="Storage of q, k and v.")] = DType.float32,
    backward: Annotated[bool, typer.Option(help="Count the backward pass too.")] = False,
    threads: Annotated[
        int | None, typer.Option(help="Threads; torch's own number by default.", min=1)
    ] = None,
) -> None:
    """Predict FLOPs, memory and time of a graph, and the length above which sparse wins here.

    Takes a second or two: the machine is calibrated with a few small calls.
    """
    parsed = parse_graph(graph)
    if threads is not None:
        torch.set_num_threads(threads)
    with console.status("Calibrating"):
        planned = predict(
            {"graph": parsed, "heads": heads, "head_dim": head_dim, "layers": layers},
            n,
            batch=batch,
            dtype=getattr(torch, dtype.value),
            backward=backward,
        )
    console.print(str(planned), highlight=False, markup=False, soft_wrap=True)
