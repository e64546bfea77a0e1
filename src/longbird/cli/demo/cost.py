"""Time and memory of one forward pass, each measured in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

CHUNK = 512
"""Tokens that a short model reads at once."""
TITLES = {"longbird": "Longbird", "dense": "dense attention", "chunks": f"chunks of {CHUNK}"}
"""Ways to read: along the BigBird graph, over all pairs of tokens, or in chunks."""
PASSES = tuple((method, tokens) for tokens in (4096, 16384) for method in TITLES)
"""Methods and numbers of tokens."""


@dataclass(frozen=True)
class Cost:
    """Time and memory of a forward pass; `bytes` leaves out the model and the libraries."""

    method: str
    tokens: int
    seconds: float
    bytes: int

    @property
    def title(self) -> str:
        """The method in words."""
        return TITLES[self.method]


def measure(text: str) -> Iterator[Cost]:
    """Measure the passes one after another, over the first tokens of a text."""
    for method, tokens in PASSES:
        script = "from longbird.cli.demo.cost import measure_pass; measure_pass()"
        done = subprocess.run(
            [sys.executable, "-c", script, method, str(tokens)],
            input=text,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(
                f"reading {tokens:,} tokens ({method}) failed:\n{done.stderr[-2000:]}"
            )
        yield Cost(method, tokens, **json.loads(done.stdout.splitlines()[-1]))


def measure_pass() -> None:
    """Measure one pass in this process; the arguments are the method and the tokens."""
    import torch

    from longbird.applications.reading.default_reader import default_reader
    from longbird.applications.reading.loading import load_tokenizer, quiet
    from longbird.core.graph import Full
    from longbird.core.machine import peak_memory
    from longbird.models import LongbirdForQuestionAnswering

    method, tokens = sys.argv[1], int(sys.argv[2])
    folder = default_reader()
    options = {"graph": Full()} if method == "dense" else {}
    with quiet():
        model = LongbirdForQuestionAnswering.from_pretrained(folder, **options).eval()
    ids = load_tokenizer(folder)(sys.stdin.read(), verbose=False)["input_ids"][:tokens]
    rows = tokens // CHUNK if method == "chunks" else 1
    inputs = torch.tensor(ids).reshape(rows, -1)  # [rows, n]
    n = inputs.shape[1]
    question = (torch.arange(n) < 16).long().expand(rows, -1)
    positions = (torch.arange(n) % CHUNK).expand(rows, -1)

    def forward(part: slice) -> None:
        model(
            inputs[:, part],
            global_attention_mask=question[:, part],
            position_ids=positions[:, part],
        )

    with torch.inference_mode():
        forward(slice(0, CHUNK))  # warm up
        with peak_memory() as memory:
            start = perf_counter()
            forward(slice(None))
            seconds = perf_counter() - start
    print(json.dumps({"seconds": seconds, "bytes": memory.more}))
