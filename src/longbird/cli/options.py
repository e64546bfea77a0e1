"""Options that several subcommands share, with one name and one meaning."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from longbird.errors import InvalidValueError
from longbird.files.paths import check_picture

Tokens = Annotated[int, typer.Option("-n", "--tokens", help="Tokens in the sequence.", min=1)]
Heads = Annotated[int, typer.Option("--heads", help="Number of attention heads.", min=1)]
HeadDim = Annotated[int, typer.Option("--head-dim", help="Head size.", min=1)]
Batch = Annotated[int, typer.Option("--batch", help="Number of sequences.", min=1)]

# Options of commands that use a trained model.
Trained = Annotated[str, typer.Argument(help="Folder of a run or of a model.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TextColumn = Annotated[
    str | None, typer.Option(help="Column of the text. Default: the column used in training.")
]
TokensAtOnce = Annotated[
    int | None, typer.Option(help="Maximum number of tokens per batch. Default: as in training.")
]


def _check_picture(out: Path | None) -> Path | None:
    """Reject the path of a picture before anything slow runs."""
    if out is not None:
        check_picture(out)
    return out


Picture = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--out",
        help="Also write a picture (.png, .svg or .pdf).",
        callback=_check_picture,
    ),
]
Encoding = Annotated[str | None, typer.Option(help="Encoding of the files.")]


def _check_threads(threads: int | None) -> int | None:
    """Reject thread counts far above the number of cores, which only cost memory."""
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
        help="Number of threads. Default: chosen by torch.",
        min=1,
        callback=_check_threads,
    ),
]


class DType(str, Enum):
    """Data type of queries, keys and values."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"
    float64 = "float64"


Storage = Annotated[DType, typer.Option("--dtype", help="Data type of queries, keys and values.")]


IMPLEMENTATIONS = ("native", "flex", "gather", "reference")
"""Names only: finding out which of them can run here would import torch."""


def complete(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a completion function for these names."""
    known = tuple(names)

    def begins(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return begins


complete_implementation = complete(IMPLEMENTATIONS)


def check_known(option: str, given: Iterable[str | None], names: Iterable[str]) -> None:
    """Raise an error if a value of an option is unknown; None stands for no value."""
    known = tuple(names)
    for value in given:
        if value is not None and value not in known:
            raise InvalidValueError(
                f"{option} must be one of {', '.join(known)}, received {value!r}"
            )
