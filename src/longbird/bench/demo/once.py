"""Time and memory of one reading of many tokens at once, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter
from typing import Any

READINGS = (
    ("longbird", 4096),
    ("dense", 4096),
    ("chunks", 4096),
    ("longbird", 16384),
    ("dense", 16384),
    ("chunks", 16384),
)
"""Who reads, and how many tokens: the BigBird graph, all pairs of tokens, or chunks of 512."""
CHUNK = 512
"""Tokens that a short model reads."""


def measured(text: str) -> Iterator[dict[str, Any]]:
    """What each took: `who`, `tokens`, `seconds` and `bytes` beyond model and libraries."""
    for who, tokens in READINGS:
        script = "from longbird.bench.demo.once import answer; answer()"
        done = subprocess.run(
            [sys.executable, "-c", script, who, str(tokens)],
            input=text,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"reading {tokens:,} tokens ({who}) failed:\n{done.stderr[-2000:]}")
        yield {"who": who, "tokens": tokens, **json.loads(done.stdout.splitlines()[-1])}


def answer() -> None:
    """What the process does: the model reads once to warm up, then what is measured."""
    import torch

    from longbird.applications.reading.default_reader import default_reader
    from longbird.applications.reading.loading import load_tokenizer, quiet
    from longbird.bench.memory import peak_resident_bytes, reset_peak
    from longbird.core.graph import Full
    from longbird.models import LongbirdForQuestionAnswering

    who, tokens = sys.argv[1], int(sys.argv[2])
    folder = default_reader()
    options = {"graph": Full()} if who == "dense" else {}
    with quiet():
        model = LongbirdForQuestionAnswering.from_pretrained(folder, **options).eval()
    ids = load_tokenizer(folder)(sys.stdin.read(), verbose=False)["input_ids"][:tokens]
    rows = tokens // CHUNK if who == "chunks" else 1
    inputs = torch.tensor(ids).reshape(rows, -1)  # [rows, n]
    n = inputs.shape[1]
    question = (torch.arange(n) < 16).long().expand(rows, -1)
    places = (torch.arange(n) % CHUNK).expand(rows, -1)
    small = slice(0, CHUNK)
    with torch.inference_mode():
        for part in (small, slice(None)):
            before, start = reset_peak(), perf_counter()
            model(
                inputs[:, part],
                global_attention_mask=question[:, part],
                position_ids=places[:, part],
            )
            seconds = perf_counter() - start
    print(json.dumps({"seconds": seconds, "bytes": peak_resident_bytes() - before}))
