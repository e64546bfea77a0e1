"""`longbird bench`: how fast it is here, side by side with others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from longbird.bench import model as model_bench
from longbird.bench import model_report, plot, report
from longbird.bench.attention import LENGTHS, Settings, Tell, run, stages
from longbird.bench.encoders import SHAPES, Shape
from longbird.bench.work import Work
from longbird.ops.dispatch import implementations

Measured = TypeVar("Measured")

ATTENTION_LENGTHS = ",".join(map(str, LENGTHS))
MODEL_LENGTHS = ",".join(map(str, model_bench.LENGTHS))

# Options of both benches.
Lengths = Annotated[str, typer.Option(help="Lengths in tokens, separated by commas.")]
Impl = Annotated[str, typer.Option(help="Longbird's implementation.")]
Repeats = Annotated[int, typer.Option(help="Most rounds of a comparison.", min=1)]
Limit = Annotated[
    float, typer.Option(help="Leave out peers predicted to take more seconds a call.")
]
Threads = Annotated[
    int | None, typer.Option(help="Threads of everybody; torch's own number by default.", min=1)
]
Out = Annotated[Path, typer.Option(help="Folder of the results.")]

console = Console()
bench_app = typer.Typer(
    no_args_is_help=True, help="Measure speed and memory side by side with others."
)


@bench_app.command()
def attention(
    lengths: Lengths = ATTENTION_LENGTHS,
    heads: Annotated[int, typer.Option(help="Heads.", min=1)] = 12,
    head_dim: Annotated[int, typer.Option(help="Size of a head.", min=1)] = 64,
    block: Annotated[int, typer.Option(help="Tokens in a block of the graph.", min=1)] = 64,
    window: Annotated[int, typer.Option(help="Blocks in its window.", min=1)] = 3,
    random: Annotated[int, typer.Option(help="Random blocks of a row.", min=0)] = 3,
    batch: Annotated[int, typer.Option(help="Sequences.", min=1)] = 1,
    impl: Impl = "native",
    repeats: Repeats = 9,
    limit: Limit = 20.0,
    threads: Threads = None,
    out: Out = Path("benchmarks/results"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Short lengths and few rounds: a minute or two.")
    ] = False,
) -> None:
    """Measure attention beside dense SDPA, FlexAttention, and Hugging Face's long models.

    Everybody takes turns in one run on the same inputs. Writes JSON, Markdown and a plot. The full
    run takes ten to fifteen minutes on two cores, of an otherwise idle machine.
    """
    _require(impl)
    settings = Settings(
        work=Work(heads, head_dim, block, window, random, batch),
        lengths=parse_lengths(lengths),
        implementation=impl,
        repeats=repeats,
        limit=limit,
    )
    settings = settings.quick() if quick else settings
    result = _measure(lambda tell: run(settings, tell), stages(settings), threads)
    for sheet in report.sheets(result):
        sheet.show(console)
    written = report.write(result, out)
    written.append(plot.write(result, out / f"{report.stem(result)}.png"))
    _name(written)


@bench_app.command()
def model(
    shape: Annotated[
        str, typer.Option(help="Shapes of the encoders, separated by commas.")
    ] = ",".join(SHAPES),
    lengths: Lengths = MODEL_LENGTHS,
    layers: Annotated[
        int,
        typer.Option(
            help="Layers that are run, but forward at 4,096 tokens, which runs all of a shape.",
            min=1,
        ),
    ] = 1,
    long_length: Annotated[
        int, typer.Option(help="Tokens of one long forward pass, Longbird alone; 0: none.", min=0)
    ] = 1_000_000,
    impl: Impl = "native",
    repeats: Repeats = 9,
    budget: Annotated[
        float, typer.Option(help="Seconds for the rounds of a comparison; three are always run.")
    ] = 15.0,
    limit: Limit = 20.0,
    threads: Threads = None,
    out: Out = Path("benchmarks/results"),
    quick: Annotated[
        bool, typer.Option("--quick", help="One short length and few rounds: some minutes.")
    ] = False,
) -> None:
    """Measure whole encoders beside Hugging Face's BigBird and Longformer, and BERT in chunks.

    Forward and training step, time and peak memory, a padded batch, and one forward pass of a
    million tokens. Writes JSON, Markdown and a plot. The full run takes about twenty-five
    minutes on two cores, of an otherwise idle machine.
    """
    _require(impl)
    settings = model_bench.Settings(
        shapes=parse_shapes(shape),
        lengths=parse_lengths(lengths),
        layers=layers,
        implementation=impl,
        repeats=repeats,
        limit=limit,
        budget=budget,
        long_length=long_length,
    )
    settings = settings.quick() if quick else settings
    total = model_bench.stages(settings)
    result = _measure(lambda tell: model_bench.run(settings, tell), total, threads)
    for sheet in model_report.sheets(result):
        sheet.show(console)
    _name(model_report.write(result, out))


def parse_shapes(text: str) -> tuple[Shape, ...]:
    """Shapes from a comma-separated list of their names.

    Examples:
        >>> [shape.name for shape in parse_shapes("minilm,base")]
        ['MiniLM', 'BigBird-base']
    """
    names = list(dict.fromkeys(text.split(",")))
    if not set(names) <= set(SHAPES):
        raise ValueError(f"shape is {text!r}, expected some of {', '.join(SHAPES)}")
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
        raise ValueError(f"lengths is {text!r}, expected whole numbers like 512,1024")
    return tuple(sorted(lengths))


def _require(impl: str) -> None:
    states = implementations()
    if states.get(impl) != "available":
        raise ValueError(
            f"impl is {impl!r}: {states.get(impl, 'there is no such implementation')}. "
            f"Here are {', '.join(name for name, state in states.items() if state == 'available')}"
        )


def _measure(run: Callable[[Tell], Measured], total: int, threads: int | None) -> Measured:
    """Run something with a number of threads, telling `total` times what it does."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        with _progress() as progress:
            task = progress.add_task("starting", total=total)
            started = False

            def tell(text: str) -> None:
                nonlocal started
                progress.update(task, description=text, advance=1 if started else 0)
                if not console.is_terminal:
                    console.print(text, highlight=False, markup=False)
                started = True

            result = run(tell)
            progress.update(task, description="measured", completed=total)
    finally:
        torch.set_num_threads(before)
    return result


def _name(written: Sequence[Path]) -> None:
    for path in written:
        console.print(f"Wrote {path}", highlight=False, markup=False)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
