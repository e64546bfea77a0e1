"""Options that several subcommands share, so that they have one name and one meaning."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from longbird.errors import InvalidValueError
from longbird.files.paths import check_picture

Tokens = Annotated[int, typer.Option("-n", "--tokens", help="Tokens of a sequence.", min=1)]
Heads = Annotated[int, typer.Option("--heads", help="Heads.", min=1)]
HeadDim = Annotated[int, typer.Option("--head-dim", help="Size of a head.", min=1)]
Batch = Annotated[int, typer.Option("--batch", help="Sequences.", min=1)]

# Of commands that use a trained model.
Trained = Annotated[str, typer.Argument(help="The folder of a run, or of a model.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TextColumn = Annotated[
    str | None, typer.Option(help="Column of the text; that of the run by default.")
]
TokensAtOnce = Annotated[
    int | None, typer.Option(help="Tokens that are read at once; as in the run by default.")
]


def _check_picture(out: Path | None) -> Path | None:
    """Before anything that takes long."""
    if out is not None:
        check_picture(out)
    return out


Picture = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--out",
        help="Also write a picture: a .png, .svg or .pdf file.",
        callback=_check_picture,
    ),
]
Encoding = Annotated[str | None, typer.Option(help="Encoding of the files.")]


def _check_threads(threads: int | None) -> int | None:
    """More than a few to a core only wait for each other, and each has a stack of its own."""
    cores = os.cpu_count() or 1
    if threads is not None and threads > (most := max(64, 4 * cores)):
        raise typer.BadParameter(
            f"received {threads}, expected at most {most} on this machine with {cores} cores"
        )
    return threads


Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        help="Threads; torch's own number by default.",
        min=1,
        callback=_check_threads,
    ),
]


class DType(str, Enum):
    """Storage of q, k and v."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"
    float64 = "float64"


Storage = Annotated[DType, typer.Option("--dtype", help="Storage of q, k and v.")]


IMPLEMENTATIONS = ("native", "flex", "gather", "reference")
"""By name; asking which of them can run here would import torch."""


def complete(names: Iterable[str]) -> Callable[[str], list[str]]:
    """What the shell offers of these names."""
    known = tuple(names)

    def begins(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return begins


complete_implementation = complete(IMPLEMENTATIONS)


def check_known(option: str, given: Iterable[str | None], names: Iterable[str]) -> None:
    """Raises if one of the values of an option has no meaning; None is no value."""
    known = tuple(names)
    for value in given:
        if value is not None and value not in known:
            raise InvalidValueError(
                f"{option} must be one of {', '.join(known)}, received {value!r}"
            )
