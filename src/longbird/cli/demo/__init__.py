"""`longbird demo`: ask a long document questions, or draw, check and time the kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longbird.cli.options import Tokens, check_known

SUBJECTS = ("ask", "kernel")


def demo(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="[WHAT]",
            help="ask: questions about a long document. kernel: the BigBird graph drawn, checked "
            "and timed against dense attention.",
        ),
    ] = "ask",
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Output folder.", file_okay=False)
    ] = Path(),
    n: Tokens = 4096,
) -> None:
    """Ask a document of 34,000 words questions, and show the answers with their evidence.

    The same model then reads chunks of 512 tokens, and uses dense attention, for comparison. All
    results are on one page, demo.html.
    """
    check_known("what to show", [subject], SUBJECTS)
    if subject == "kernel":
        from longbird.cli.demo.kernel import show_kernel

        show_kernel(out, n)
    else:
        from longbird.cli.demo.answers import show_answers

        show_answers(out)
