"""`longbird search`: find embedded documents by their meaning."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from longbird.cli.early import check_model, check_there
from longbird.cli.options import AsJson
from longbird.cli.terminal import echo_json, note, one_line, say, stdout, working
from longbird.errors import InvalidValueError

if TYPE_CHECKING:
    from longbird.applications.search.vectors import Hit

AROUND = 160
"""Maximum number of characters of the previous and the next part that are shown."""


def search(
    vectors: Annotated[Path, typer.Argument(help="File that `longbird embed` wrote.")],
    queries: Annotated[list[str], typer.Argument(help="Texts to search for.")],
    top: Annotated[int, typer.Option(help="Number of results per query.", min=1)] = 10,
    model: Annotated[
        str | None, typer.Option(help="Folder of the model, if it was moved.")
    ] = None,
    index: Annotated[
        bool,
        typer.Option("--index", help="Use an approximate index for a million vectors or more."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the documents, paragraphs or sentences that are closest in meaning to a query.

    For example:

    longbird search reports.npy "Why was the plant closed?"

    longbird search thesis.parquet "sparse attention" "random graphs" --top 3 --json
    """
    check_there([vectors])
    if model is not None:
        check_model(model)
    if not all(query.strip() for query in queries):
        raise InvalidValueError("a query must have at least one word, received an empty one")
    from longbird.applications.search.nearest_vectors import WORTH
    from longbird.applications.search.vectors import Vectors

    opened = Vectors.load(vectors, tell=note)
    if index and len(opened) < WORTH:
        note(f"--index has no effect: an exact search of {len(opened):,} vectors is fast enough")
    with working("Searching"):
        if model is not None:
            from longbird.applications.search.embedder import Embedder

            opened.embedder = opened.checked(Embedder.from_pretrained(model))
        found = opened.search(queries, top, index=index)
    if as_json:
        every = [
            {"query": query, "results": [asdict(hit) for hit in hits]}
            for query, hits in zip(queries, found, strict=True)
        ]
        echo_json(every)
        return
    for query, hits in zip(queries, found, strict=True):
        if len(queries) > 1:
            say(f"{query}\n")
        for hit in hits:
            _show(hit)


def _show(hit: Hit) -> None:
    called = "part" if hit.file.lower().endswith(".epub") else "page"
    page = f", {called} {hit.page}" if hit.page is not None else ""
    say(f"{hit.score:.3f}  {one_line(hit.file)}{page}, line {hit.line}")
    before, after = one_line(hit.before).strip(), one_line(hit.after).strip()
    text = Text()
    if before:
        text.append(f"{'…' * (len(before) > AROUND)}{before[-AROUND:]} ", style="dim")
    cut = "…" if hit.end - hit.start > len(hit.text) else ""
    mark = "" if stdout.is_terminal else "**"
    text.append(f"{mark}{one_line(hit.text)}{cut}{mark}", style="bold")
    if after:
        text.append(f" {after[:AROUND]}{'…' * (len(after) > AROUND)}", style="dim")
    stdout.print(text, soft_wrap=True)
    say("")
