"""Options that several subcommands share, so that they have one name and one meaning."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

Tokens = Annotated[int, typer.Option("-n", "--tokens", help="Tokens of a sequence.", min=1)]
Heads = Annotated[int, typer.Option("--heads", help="Heads.", min=1)]
HeadDim = Annotated[int, typer.Option("--head-dim", help="Size of a head.", min=1)]
Batch = Annotated[int, typer.Option("--batch", help="Sequences.", min=1)]
Threads = Annotated[
    int | None, typer.Option("--threads", help="Threads; torch's own number by default.", min=1)
]


class DType(str, Enum):
    """Storage of q, k and v."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"
    float64 = "float64"


Storage = Annotated[DType, typer.Option("--dtype", help="Storage of q, k and v.")]


def complete_implementation(incomplete: str) -> list[str]:
    """The implementations' names; asking which of them can run here would import torch."""
    names = ("native", "gather", "flex", "reference")
    return [name for name in names if name.startswith(incomplete)]
