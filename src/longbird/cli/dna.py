"""`longbird dna`: train models of genomes, and scan genomes with them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from longbird.applications.dna.default import PRETRAINED, PROMOTER, folder_of_dna
from longbird.applications.dna.settings import (
    ENDINGS,
    NEGATIVES,
    TOKENS,
    DnaLabelSettings,
    DnaPretrainingSettings,
    ScanSettings,
    ending_of,
)
from longbird.applications.training.settings.definition import Option, options_of
from longbird.cli.command import Command, Group
from longbird.cli.early import check_model, check_there
from longbird.cli.errors import INTERRUPTED
from longbird.cli.evaluate import metrics_table
from longbird.cli.options import AsJson, TokensAtOnce, check_known
from longbird.cli.terminal import note, stdout, working
from longbird.cli.training_options import Config, Extend, Out, with_options
from longbird.errors import InvalidValueError

dna = typer.Typer(
    cls=Group,
    help="Train DNA models, and scan genomes with them.",
    no_args_is_help=True,
)

TASKS = ("promoter", "profile", "coding")

Trained = Annotated[
    str,
    typer.Argument(
        help="Folder of a run or of a model, or default for the model that comes with Longbird."
    ),
]


def _pretrain(
    genomes: Annotated[
        list[Path], typer.Argument(help="FASTA (plain, gzip or bgzip) or GenBank.")
    ],
    out: Out = Path("run"),
    config: Config = None,
    extend: Extend = False,
    **options: Any,
) -> None:
    """Train a masked language model on genomes.

    Repeating the command resumes the run. from_pretrained and
    `longbird dna finetune --model` load RUN/model.

    For example:

    longbird dna pretrain ecoli.fa.gz --tokens bpe --length 4096 --out run
    """
    check_known("--tokens", [options["tokens"]], TOKENS)
    check_there(genomes)
    _check_model(options["model"], PRETRAINED)
    from longbird.applications.dna.runs import pretrain as run  # takes seconds to import

    done = run(genomes, out, say=note, config=config, extend=extend, **_given(options))
    if not done.finished:
        raise typer.Exit(INTERRUPTED)


def _finetune(
    task: Annotated[str, typer.Argument(help="What to learn: promoter, profile or coding.")],
    genome: Annotated[Path, typer.Argument(help="FASTA or GenBank.")],
    labels: Annotated[
        list[Path] | None,
        typer.Argument(
            help="BED, GFF3, GenBank or bigWig files. Default: the labels in GENOME (GenBank). "
            "Further genomes may follow, each with its labels after it."
        ),
    ] = None,
    out: Out = Path("run"),
    length: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of tokens that the model reads at once. Default: a promoter's "
            "window; 512 for genes; otherwise that of the model."
        ),
    ] = None,
    config: Config = None,
    extend: Extend = False,
    **options: Any,
) -> None:
    """Train a model on the labels of a genome, or of several.

    The best model is chosen on a held-out part of the genome: other
    sequences, or another stretch with a gap of one window. Every table
    names the kind of negatives, since it determines the score.

    For example:

    longbird dna finetune promoter ecoli.fa starts.bed --model run --out promoters

    longbird dna finetune coding ecoli.gb --model scratch:mini --out genes

    longbird dna finetune profile ecoli.fa chip.bw sites.bed --bin 100 --out profile

    longbird dna finetune coding a.fa a.gff b.fa b.gff c.fa c.gff --test-on c.fa --out genes
    """
    check_known("TASK", [task], TASKS)
    check_known("--tokens", [options["tokens"]], TOKENS)
    check_known("--negatives", [options["negatives"]], NEGATIVES)
    check_there([genome, *(labels or ())])
    _check_model(options["model"], PRETRAINED)
    from longbird.applications.dna.runs import finetune as run  # takes seconds to import

    done = run(
        task, genome, labels or (), out, say=note, length=length, config=config, extend=extend,
        **_given(options),
    )  # fmt: skip
    if not done.finished:
        raise typer.Exit(INTERRUPTED)


def _scan(
    run: Trained,
    genome: Annotated[Path, typer.Argument(help="FASTA or GenBank file.")],
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help=f"Output file, in the format of its ending: {', '.join(ENDINGS)}. Repeat the "
            "option to write several files in one scan."
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(
            help="Region to draw, such as chr1:1-5000, or p:4801-200 across the origin of a "
            "circular sequence. Without --out, only this region is scored."
        ),
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            help="With --plot: BED, GFF3, GenBank or bigWig file to draw above the scores."
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(help="With --plot: file of the picture. \\[beside the output, .png]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    **options: Any,
) -> None:
    """Score a whole genome for a genome browser.

    Files are written at the end, when they are complete. Repeating the
    command resumes an interrupted scan and writes the same files.

    For example:

    longbird dna scan promoters ecoli.fa --out promoters.bed --out promoters.bw

    longbird dna scan genes plasmid.fa --both-strands --out genes.gff3 --minimum-length 200

    longbird dna scan genes plasmid.fa --plot p1:1-5000 --labels plasmid.gff3
    """
    outs = out or []
    if not outs and plot is None:
        raise InvalidValueError(
            "there is nothing to do: set `out` to a file, or `plot` to a region to draw"
        )
    for each in outs:
        ending_of(each)  # raises an error for an unknown format
    _check_model(run, PROMOTER)
    check_there([genome, *(labels or ())])
    from longbird.applications.dna.scanning import scan as score  # takes seconds to import

    score(
        run, genome, outs, force=force, plot=plot, picture=picture, labels=labels or (), say=note,
        **_given(options),
    )  # fmt: skip


def _evaluate(
    run: Trained,
    genome: Annotated[Path, typer.Argument(help="FASTA or GenBank.")],
    labels: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Labels and further genomes, as for finetune; none for a pretrained model."
        ),
    ] = None,
    as_json: AsJson = False,
    on: Annotated[
        list[str] | None,
        typer.Option(
            help="Measure only on a sequence, chr1:1-5000, 5/5 of each sequence, or one genome."
        ),
    ] = None,
    tokens_per_batch: TokensAtOnce = None,
    worst: Annotated[
        Path | None,
        typer.Option(help="Write the windows with the worst predictions (JSON lines)."),
    ] = None,
    **options: Any,
) -> None:
    """Measure a model on a genome, with 95% confidence intervals.

    For example:

    longbird dna evaluate promoters ecoli.fa starts.bed --on 5/5 --json

    longbird dna evaluate run yeast.fa --mask 0.02
    """
    check_known("--negatives", [options["negatives"]], NEGATIVES)
    _check_model(run, PROMOTER if labels else PRETRAINED)
    check_there([genome, *(labels or ())])
    from longbird.applications.dna.runs import evaluate as measure  # takes seconds to import

    with working("Evaluating"):
        found = measure(
            run, genome, labels or (), on=on or (), say=note,
            tokens_per_batch=tokens_per_batch, **_given(options),
        )  # fmt: skip
    if worst is not None:
        found.write_worst(worst)
    if as_json:
        without_nan = json.loads(json.dumps(found.metrics), parse_constant=lambda _: None)
        typer.echo(json.dumps(without_nan))
    else:
        metrics = found.metrics
        recipe = f", negatives: {metrics['negatives']}" if "negatives" in metrics else ""
        stdout.print(metrics_table(metrics, f"{metrics['windows']:,} windows{recipe}"))
        for line in metrics["notes"]:
            note(line)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return options without empty lists, which stand for no value."""
    return {name: value for name, value in options.items() if value != []}


def _check_model(model: str | None, which: str) -> None:
    """Report a missing model before slow imports; `which` is the model that "default" names."""
    if model is not None and not model.startswith("scratch:"):
        check_model(folder_of_dna(model, which))


READING = {
    name: each
    for kind in (DnaPretrainingSettings, DnaLabelSettings)
    for name, each in options_of(kind).items()
    if name in ("kind", "negatives", "per_positive", "mask", "alias", "circular")
}
"""Options that determine how genomes and labels are read, and how negatives are chosen."""
COMMANDS: dict[str, tuple[Any, Iterable[Option]]] = {
    "pretrain": (_pretrain, options_of(DnaPretrainingSettings).values()),
    "finetune": (_finetune, options_of(DnaLabelSettings).values()),
    "scan": (_scan, [*options_of(ScanSettings).values(), READING["alias"], READING["circular"]]),
    "evaluate": (_evaluate, READING.values()),
}
for _name, (_command, _options) in COMMANDS.items():
    dna.command(_name, cls=Command)(with_options(_command, _options))
