"""`python -m experiments`: how fast and how good it is here, side by side with others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments import CHECKOUT
from experiments.dna.experiments import EXPERIMENTS as OF_DNA
from experiments.dna.experiments import SPEED
from experiments.quality import EXPERIMENTS, SCALES
from longbird.applications.dna.default import PRETRAINED, folder_of_dna
from longbird.cli.command import Command, Group
from longbird.cli.options import (
    IMPLEMENTATIONS,
    Batch,
    HeadDim,
    Heads,
    Threads,
    check_known,
    complete,
    complete_implementation,
)
from longbird.cli.terminal import note, say, stderr, stdout, working
from longbird.errors import InvalidValueError

if TYPE_CHECKING:
    from experiments.encoders.case import Shape
    from experiments.quality.experiment import Experiment
    from experiments.report import Goal, Report
    from experiments.run import Result, Settings, Step

# Options of all benches.
Lengths = Annotated[
    str | None,
    typer.Option(help="Lengths in tokens, separated by commas.", show_default=False),
]
Impl = Annotated[
    str, typer.Option(help="Longbird's implementation.", autocompletion=complete_implementation)
]
Repeats = Annotated[int, typer.Option(help="Most rounds of a comparison.", min=1)]
Budget = Annotated[
    float | None,
    typer.Option(help="Seconds for the rounds of a comparison; three are always run.", min=0),
]
Limit = Annotated[
    float,
    typer.Option(
        help="Leave out peers predicted to take longer than this many seconds a call.", min=0
    ),
]
Out = Annotated[Path, typer.Option("-o", "--out", help="Folder of the results.", file_okay=False)]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer cases: less than ten minutes.")]
RESULTS = CHECKOUT / "experiments" / "results"

# Options of experiments.
Seeds = Annotated[int, typer.Option(help="Runs of each contestant.", min=1, max=1000)]
Scale = Annotated[
    str,
    typer.Option(
        help="default, or tiny to see quickly that it runs.", autocompletion=complete(SCALES)
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(help="A contestant to run, instead of all; may be given several times."),
]
Work = Annotated[
    Path | None,
    typer.Option(
        help="Folder that keeps what is done so far; in the cache by default.",
        file_okay=False,
        show_default=False,
    ),
]

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Measure speed, memory and quality side by side with others.",
)


@app.command(cls=Command)
def attention(
    lengths: Lengths = None,
    heads: Heads = 12,
    head_dim: HeadDim = 64,
    block: Annotated[int, typer.Option(help="Tokens in a block of the graph.", min=1)] = 64,
    window: Annotated[int, typer.Option(help="Blocks in its window.", min=1)] = 3,
    random: Annotated[int, typer.Option(help="Random blocks of a row.", min=0)] = 3,
    batch: Batch = 1,
    impl: Impl = "native",
    repeats: Repeats = 9,
    budget: Budget = None,
    limit: Limit = 20.0,
    threads: Threads = None,
    out: Out = RESULTS,
    quick: Quick = False,
) -> None:
    """Measure attention beside dense SDPA, FlexAttention, and Hugging Face's long models.

    All take turns in one run on the same inputs. Writes JSON, Markdown and a plot. The full
    run takes about twenty minutes on two cores of an otherwise idle machine, the quick one less
    than ten.
    """
    given = _given(lengths, impl, repeats=repeats, budget=budget, limit=limit)
    with working("Loading torch"):
        from experiments.attention import peers, report, steps
        from experiments.attention.case import Case
        from experiments.goals import attention_goals

    case = Case(
        0, heads=heads, head_dim=head_dim, block=block, window=window, random=random, batch=batch
    )
    make = steps.AttentionSettings.quickly if quick else steps.AttentionSettings
    settings = make(mine=peers.longbird(impl), case=case, **given)
    result = _run("attention", settings, steps.steps(settings), threads)
    _publish(result, report.report(result), attention_goals(result), out)


@app.command(cls=Command)
def model(
    shape: Annotated[
        str, typer.Option(help="Shapes of the encoders, separated by commas.")
    ] = "base,minilm",
    lengths: Lengths = None,
    layers: Annotated[
        int,
        typer.Option(
            help="Layers to run; forward at 4,096 tokens always runs all layers of a shape.",
            min=1,
        ),
    ] = 1,
    long_length: Annotated[
        int | None,
        typer.Option(
            help="Tokens of one long forward pass by Longbird alone, 0 for none; by default a "
            "million, and none with --quick.",
            min=0,
            show_default=False,
        ),
    ] = None,
    quantize: Annotated[
        bool,
        typer.Option(
            "--int8",
            help="Measure only int8 weights beside float32, forward: two minutes.",
        ),
    ] = False,
    impl: Impl = "native",
    repeats: Repeats = 9,
    budget: Budget = None,
    limit: Limit = 20.0,
    threads: Threads = None,
    out: Out = RESULTS,
    quick: Quick = False,
) -> None:
    """Measure whole encoders beside Hugging Face's BigBird and Longformer, and BERT in chunks.

    Forward and training step, time and peak memory, a padded batch, and one forward pass of a
    million tokens. Writes JSON, Markdown and a plot. The full run takes about twenty-five
    minutes on two cores of an otherwise idle machine, the quick one less than ten.
    """
    more = {} if long_length is None else {"long_length": long_length}
    given = _given(lengths, impl, repeats=repeats, budget=budget, limit=limit, **more)
    with working("Loading torch"):
        from experiments.encoders import peers, report, steps
        from experiments.goals import encoder_goals, int8_goals

    if quantize:
        settings = steps.EncoderSettings.rounded(impl, shapes=_shapes(shape), **given)
        result = _run("int8", settings, steps.forward_steps(settings), threads)
        return _publish(result, report.report(result), int8_goals(result), out)
    make = steps.EncoderSettings.quickly if quick else steps.EncoderSettings
    settings = make(mine=peers.longbird(impl), shapes=_shapes(shape), layers=layers, **given)
    result = _run("model", settings, steps.steps(settings), threads)
    _publish(result, report.report(result), encoder_goals(result), out)


@app.command(cls=Command)
def train(
    shape: Annotated[
        str, typer.Option(help="Shapes of the encoders, separated by commas.")
    ] = "minilm,base",
    lengths: Lengths = None,
    layers: Annotated[
        int | None,
        typer.Option(
            help="Layers to run; by default all 6 of MiniLM and 2 of BigBird-base up to 4,096 "
            "tokens, and 1 beyond and on the real documents.",
            min=1,
            show_default=False,
        ),
    ] = None,
    ragged: Annotated[
        int, typer.Option(help="Real documents of one epoch; 0 to leave them out.", min=0)
    ] = 12,
    ragged_length: Annotated[
        int, typer.Option(help="Tokens at which these are cut.", min=1024)
    ] = 4096,
    impl: Impl = "native",
    repeats: Repeats = 9,
    budget: Budget = None,
    limit: Limit = 60.0,
    threads: Threads = None,
    out: Out = RESULTS,
    quick: Quick = False,
) -> None:
    """Measure training beside Hugging Face's Trainer with BigBird, Longformer, and BERT in chunks.

    Whole training steps with data loading: tokens per second, waiting for data, and memory, on
    documents of equal length and on real ones. Writes JSON, Markdown and a plot. The full run
    takes about twenty minutes on two cores of an otherwise idle machine, the quick one about five.
    """
    more = {"layers": layers, "ragged": ragged, "ragged_length": ragged_length}
    given = _given(lengths, impl, repeats=repeats, budget=budget, limit=limit, **more)
    with working("Loading torch"):
        from experiments.training import goals, peers, report, steps

    if shape != "minilm,base":
        given["shapes"] = _shapes(shape)
    make = steps.TrainingSettings.quickly if quick else steps.TrainingSettings
    settings = make(mine=peers.longbird(impl), **given)
    result = _run("train", settings, steps.steps(settings), threads)
    _publish(result, report.report(result), goals.training_goals(result), out)


@app.command(cls=Command)
def quality(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=f"The experiment: {', '.join(EXPERIMENTS)}.",
            autocompletion=complete(EXPERIMENTS),
        ),
    ],
    seeds: Seeds = 3,
    scale: Scale = "default",
    only: Only = None,
    work: Work = None,
    threads: Threads = None,
    out: Out = RESULTS,
) -> None:
    """Measure how good models are: experiments with baselines, seeds and confidence intervals.

    The same command continues what was stopped: each finished attempt is kept in the work folder.
    Writes JSON, Markdown and a picture. Each experiment takes up to an hour on two idle cores.
    """
    check_known("NAME", [name], EXPERIMENTS)
    check_known("--scale", [scale], SCALES)
    with working("Loading torch"):
        experiment = import_module(f"experiments.quality.{name}").experiment(scale)
    _experiment(experiment, "quality", seeds, only or [], work, threads, out)


@app.command(cls=Command)
def dna(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=f"The experiment: {', '.join(OF_DNA)}; or {SPEED}.",
            autocompletion=complete((*OF_DNA, SPEED)),
        ),
    ],
    seeds: Seeds = 3,
    scale: Scale = "default",
    only: Only = None,
    work: Work = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A run of `longbird dna pretrain`, the folder of such a model, or default, which "
            "ships, to start from; otherwise one is pretrained first and kept in the work folder.",
            show_default=False,
        ),
    ] = None,
    threads: Threads = None,
    out: Out = RESULTS,
) -> None:
    """Measure DNA models beside simple baselines and beside themselves without pretraining.

    Each experiment has three seeds, confidence intervals and a split that does not leak, names
    its negatives, and takes 30 to 80 minutes on one idle core. The same command continues what was
    stopped. Writes JSON, Markdown and a picture. speed measures bases per second, scanned and
    trained, beside Hugging Face's BigBird and full attention.

    For example:

    python -m experiments dna promoters --scale tiny

    python -m experiments dna promoters --model default
    """
    check_known("NAME", [name], (*OF_DNA, SPEED))
    check_known("--scale", [scale], SCALES)
    if name == SPEED and (only or model is not None):
        raise InvalidValueError(
            "speed takes neither --only nor --model: its models are all measured"
        )
    if model is not None:
        model = folder_of_dna(model, PRETRAINED)
    with working("Loading torch"):
        module = import_module(f"experiments.dna.experiments.{name}")
    if name == SPEED:
        settings = module.settings(scale)
        result = _run("dna-speed", settings, module.steps(settings), threads)
        return _publish(result, module.report(result), (), out)
    with working("Reading genomes"):
        experiment = module.experiment(scale, model)
    _experiment(experiment, "dna", seeds, only or [], work, threads, out)


def _experiment(
    experiment: Experiment,
    family: str,
    seeds: int,
    only: Sequence[str],
    work: Path | None,
    threads: int | None,
    out: Path,
) -> None:
    """Run what is missing of an experiment, and write and print all that is there."""
    import torch

    from experiments.quality.report import Report
    from experiments.quality.run import run
    from longbird.files.sources.packages import cache_folder

    check_known("--only", only, [each.name for each in experiment.contestants])
    work = cache_folder() / family if work is None else work
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        found = run(experiment, tuple(range(seeds)), work, only, note)
    finally:
        torch.set_num_threads(before)
    _show(Report(found).write(out))


def _shapes(text: str) -> tuple[Shape, ...]:
    from experiments.encoders.case import SHAPES

    names = list(dict.fromkeys(text.split(",")))
    if not set(names) <= set(SHAPES):
        raise InvalidValueError(f"--shape is {text!r}, expected some of {', '.join(SHAPES)}")
    return tuple(SHAPES[name] for name in names)


def parse_lengths(text: str) -> tuple[int, ...]:
    """Lengths from a comma-separated list, ascending.

    Examples:
        >>> parse_lengths("1024,512")
        (512, 1024)
    """
    try:
        lengths = {int(part) for part in text.replace("_", "").split(",")}
    except ValueError:
        lengths = set()
    if not lengths or min(lengths) < 1:
        raise InvalidValueError(f"--lengths is {text!r}, expected whole numbers like 512,1024")
    return tuple(sorted(lengths))


def _given(lengths: str | None, impl: str, **options: Any) -> dict[str, Any]:
    """The settings that were asked for; the quick and the full form know the others."""
    check_known("--impl", [impl], IMPLEMENTATIONS)
    given = {name: value for name, value in options.items() if value is not None}
    if lengths is not None:
        given["lengths"] = parse_lengths(lengths)
    with working("Loading torch"):
        from longbird.core.operator.dispatch import implementations

    states = implementations()
    if states[impl] != "available":
        here = ", ".join(name for name, state in states.items() if state == "available")
        raise InvalidValueError(f"--impl is {impl!r}: {states[impl]}. Available here: {here}")
    return given


def _run(name: str, settings: Settings, steps: Sequence[Step], threads: int | None) -> Result:
    """Take the steps of a bench with a number of threads, showing which one it is at."""
    import torch
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TimeElapsedColumn,
    )

    from experiments.run import run

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        with Progress(*columns, console=stderr, transient=True) as progress:
            task = progress.add_task("starting", total=len(steps))
            done = iter(range(len(steps)))

            def tell(title: str) -> None:
                progress.update(task, description=title, completed=next(done))
                if not stderr.is_terminal:
                    stderr.print(title, highlight=False, markup=False)

            return run(name, settings, steps, tell)
    finally:
        torch.set_num_threads(before)


def _publish(result: Result, report: Report, goals: Sequence[Goal], out: Path) -> None:
    """Write the results, then print them."""
    _show(report.write(result, goals, out))


def _show(written: Sequence[Path]) -> None:
    """Print a page without its pictures, and the names of all files."""
    from rich.markdown import Markdown

    lines = written[0].read_text().splitlines()
    stdout.print(Markdown("\n".join(line for line in lines if not line.startswith("!["))))
    for path in written:
        say(f"Wrote {path}")


def main() -> None:
    """Run the command line; deliberate errors are one line."""
    from longbird.cli import errors

    try:
        app(prog_name="python -m experiments")
    except Exception as error:
        if errors.is_debugging():
            raise
        sys.exit(errors.report(error))


if __name__ == "__main__":
    main()
