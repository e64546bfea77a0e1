"""What Hugging Face BigBird computes, and what Longbird computes from the same weights.

python examples/huggingface_defects.py            a minute or two
python examples/huggingface_defects.py --quick    shorter sequences for the memory
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

import longbird as lb

CONFIG = transformers.BigBirdConfig(
    vocab_size=1000, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=128, block_size=16, num_random_blocks=3, max_position_embeddings=4096,
)  # fmt: skip


def models(folder: str) -> tuple[Any, Any]:
    """Both, fresh from the same file: theirs remembers short batches."""
    theirs = transformers.BigBirdModel.from_pretrained(folder, attn_implementation="eager")
    return theirs.eval(), lb.LongbirdModel.from_pretrained(folder)


def without_dropout(model: Any) -> Any:
    """The model in training mode, with every dropout at 0."""
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if hasattr(module, "dropout_p"):
            module.dropout_p = 0.0
    return model


def difference(first: Tensor, second: Tensor) -> float:
    """The largest difference."""
    return float((first - second).abs().max())


@torch.no_grad()
def differences(folder: str) -> dict[str, tuple[float, float]]:
    """What the title says, measured for theirs and for ours."""
    ids = torch.randint(3, 1000, (1, 512), generator=torch.Generator().manual_seed(0))
    found: dict[str, list[float]] = {}

    def note(what: str, value: float) -> None:
        found.setdefault(what, []).append(value)

    for which in (0, 1):
        model = models(folder)[which]
        evaluated = model(ids).last_hidden_state
        trained = without_dropout(models(folder)[which])(ids).last_hidden_state
        note("train() against eval(), no dropout", difference(evaluated, trained))

        weights = models(folder)[which](ids, output_attentions=True).attentions[0]
        weights = weights if isinstance(weights, Tensor) else weights.dense(512)
        note("attention rows: 1 - smallest sum", 1 - float(weights.sum(-1).min()))

        model = models(folder)[which]
        before = model(ids).last_hidden_state
        model(ids[:, :50])  # one short document in between
        note("before and after a short document", difference(before, model(ids).last_hidden_state))

        # 400 tokens alone, and padded to 512 with a mask.
        alone = models(folder)[which](ids[:, :400]).last_hidden_state
        mask = (torch.arange(512) < 400).long()[None]
        padded = models(folder)[which](ids * mask, attention_mask=mask).last_hidden_state
        note("400 tokens alone and padded to 512", difference(alone, padded[:, :400]))
    return {what: (values[0], values[1]) for what, values in found.items()}


def peak(library: str, tokens: int) -> float:
    """MB that one layer of 12 heads takes beyond what the process had, in a process of its own."""
    command = [sys.executable, __file__, "--peak", library, str(tokens)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


@torch.no_grad()
def measure_peak(library: str, tokens: int) -> None:
    """Prints the growth of the peak of this process."""
    sizes = {
        "num_hidden_layers": 1, "hidden_size": 768, "num_attention_heads": 12, "vocab_size": 100,
        "max_position_embeddings": tokens, "intermediate_size": 768,
    }  # fmt: skip
    model: Any = lb.LongbirdModel(lb.LongbirdConfig(**sizes))
    if library == "huggingface":
        model = transformers.BigBirdModel(transformers.BigBirdConfig(**sizes))
    model.eval()(torch.zeros(1, 1024, dtype=torch.long))  # what is loaded once
    before = peak_so_far()
    model(torch.zeros(1, tokens, dtype=torch.long))
    print(peak_so_far() - before)


def peak_so_far() -> float:
    """The most memory that was ever resident in this process, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage also counts what the process had that started this one
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: list[str] | None = None) -> dict[str, tuple[float, float]]:
    """Measures, prints a table, and returns it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.peak:
        measure_peak(options.peak[0], int(options.peak[1]))
        return {}
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        theirs = transformers.BigBirdModel(CONFIG)
        for parameter in theirs.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        theirs.save_pretrained(folder)
        table = differences(folder)
    tokens = 4096 if options.quick else 6144
    row = f"peak memory of one layer, {tokens} tokens, MB"
    table[row] = peak("huggingface", tokens), peak("longbird", tokens)
    print(f"{'':44}{'Hugging Face':>14}{'Longbird':>14}")
    for what, (before, now) in table.items():
        print(f"{what:44}{before:14.3g}{now:14.3g}")
    return table


if __name__ == "__main__":
    main()
