"""`longbird pretrain`: a language model from raw text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from longbird.applications.training.settings.definition import options_of, task_in
from longbird.applications.training.settings.tasks import MaskedSettings
from longbird.cli.finetune import run
from longbird.cli.training_options import Config, Extend, Out, with_options
from longbird.errors import InvalidValueError


def _pretrain(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="txt, pdf, docx, html, epub, csv, tsv, json, jsonl, parquet, gzip, or folders."
        ),
    ] = None,
    out: Out = Path("run"),
    objective: Annotated[
        str | None,
        typer.Option(
            help="mlm: predict masked tokens. causal: predict the next token. Default: mlm."
        ),
    ] = None,
    config: Config = None,
    extend: Extend = False,
    **options: Any,
) -> None:
    """Train a language model on raw text.

    Repeating the command resumes the run. from_pretrained and
    `longbird finetune --model` load RUN/model. Documents longer than --length
    are cut into consecutive pieces, so nothing is lost.

    For example:

    longbird pretrain corpus/ --model minilm --length 4096 --out run

    longbird pretrain corpus.txt --documents paragraph --objective causal --model scratch:small --tokenizer tokenizer --out run
    """  # noqa: E501
    if objective is None and config is not None:
        objective = task_in(config)
    if objective not in (None, "mlm", "causal"):
        raise InvalidValueError(option="objective", expected="mlm or causal", received=objective)
    run(objective or "mlm", files, out, config=config, extend=extend, **options)


pretrain = with_options(_pretrain, options_of(MaskedSettings).values())
