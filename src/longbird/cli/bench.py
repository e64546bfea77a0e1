"""`longbird bench`: how fast it is here, side by side with others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from longbird.bench import plot, report
from longbird.bench.attention import LENGTHS, Settings, run, stages
from longbird.bench.work import Work
from longbird.ops.dispatch import implementations

console = Console()
bench_app = typer.Typer(
    no_args_is_help=True, help="Measure speed and memory side by side with others."
)


@bench_app.callback()
def _group() -> None:
    """Keeps `attention` a subcommand of its own while it is the only one."""


@bench_app.command()
def attention(
    lengths: Annotated[
        str, typer.Option(help="Lengths in tokens, separated by commas.")
    ] = ",".join(map(str, LENGTHS)),
    heads: Annotated[int, typer.Option(help="Heads.", min=1)] = 12,
    head_dim: Annotated[int, typer.Option(help="Size of a head.", min=1)] = 64,
    block: Annotated[int, typer.Option(help="Tokens in a block of the graph.", min=1)] = 64,
    window: Annotated[int, typer.Option(help="Blocks in its window.", min=1)] = 3,
    random: Annotated[int, typer.Option(help="Random blocks of a row.", min=0)] = 3,
    batch: Annotated[int, typer.Option(help="Sequences.", min=1)] = 1,
    impl: Annotated[str, typer.Option(help="Longbird's implementation.")] = "native",
    repeats: Annotated[int, typer.Option(help="Most rounds of a comparison.", min=1)] = 9,
    limit: Annotated[
        float, typer.Option(help="Leave out peers predicted to take more seconds a call.")
    ] = 20.0,
    threads: Annotated[
        int | None,
        typer.Option(help="Threads of everybody; torch's own number by default.", min=1),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("benchmarks/results"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Short lengths and few rounds: a minute or two.")
    ] = False,
) -> None:
    """Measure attention beside dense SDPA, FlexAttention, and Hugging Face's long models.

    Everybody takes turns in one run on the same inputs. Writes JSON, Markdown and a plot. The full
    run takes ten to fifteen minutes on two cores, of an otherwise idle machine.
    """
    states = implementations()
    if states.get(impl) != "available":
        raise ValueError(
            f"impl is {impl!r}: {states.get(impl, 'there is no such implementation')}. "
            f"Here are {', '.join(name for name, state in states.items() if state == 'available')}"
        )
    settings = Settings(
        work=Work(heads, head_dim, block, window, random, batch),
        lengths=parse_lengths(lengths),
        implementation=impl,
        repeats=repeats,
        limit=limit,
    )
    settings = settings.quick() if quick else settings
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        with _progress() as progress:
            task = progress.add_task("starting", total=stages(settings))
            started = False

            def tell(text: str) -> None:
                nonlocal started
                progress.update(task, description=text, advance=1 if started else 0)
                if not console.is_terminal:
                    console.print(text, highlight=False, markup=False)
                started = True

            result = run(settings, tell)
            progress.update(task, description="measured", completed=stages(settings))
    finally:
        torch.set_num_threads(before)
    for sheet in report.sheets(result):
        sheet.show(console)
    written = report.write(result, out)
    written.append(plot.write(result, out / f"{report.stem(result)}.png"))
    for path in written:
        console.print(f"Wrote {path}", highlight=False, markup=False)


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


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
