"""Makes the files of the models of DNA that ship, of finished runs, and measures what ships.

    python recipes/dna/ship.py FOLDER

FOLDER is that of train.sh. They go into src/longbird/applications/dna/shipped: two folders, as
`from_pretrained` takes them, with weights in half precision, and the card with what is measured
here on stretches that neither was trained on.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from prepare import GENOMES, SEED, TIMES
from safetensors.torch import load_file, save_file

from experiments.dna import promoters
from experiments.dna.bases import letters
from experiments.dna.corpora import corpus
from experiments.dna.linear import AtContent, OneHot, Words
from experiments.dna.markov import TwoSided, choose
from experiments.sources import genomes
from longbird.applications.dna.default import PRETRAINED, PROMOTER, SHIPPED
from longbird.applications.dna.runs import evaluate, load
from longbird.files.digest import sha256_of

NAMES = {
    "coli": "E. coli, last fifth",
    "theta": "B. thetaiotaomicron, longest contig",
    "aureus": "S. aureus, last fifth",
    "worm": "C. elegans X, last fifth",
    "fly": "Drosophila, upstream of genes on 2R",
}
RUNS = ("1-short", "2-long", "3-promoter")
HERE, WEIGHTS = Path(__file__).parent, "model.safetensors"
BATCH = 256
MEASURED = int(os.environ.get("MEASURED", "400000"))
"""Bases of each genome that bits are counted on, at most."""
SHARES = (0.15, 0.02)
"""Of the tokens that are hidden: as in training, and few, so that most neighbours are seen."""


def ship(run: Path, which: str, learned: dict[str, Any]) -> None:
    """Writes one of the two folders."""
    folder, model = SHIPPED / which, run / "model"
    folder.mkdir(parents=True, exist_ok=True)
    for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "dna.json"):
        shutil.copyfile(model / file, folder / file)
    halves = {name: x.half() for name, x in load_file(model / WEIGHTS).items()}
    save_file(halves, folder / WEIGHTS, metadata={"format": "pt"})
    (folder / WEIGHTS).chmod(0o644)
    # Says what it learned from where a run does, so that `evaluate` can warn.
    (folder / "data.json").write_text(json.dumps(learned, indent=1) + "\n", "utf-8")


def learned_from(data: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the two learned from: the files of the packages, and what of them was held out."""
    coli, theta, aureus = (
        each() for each in (genomes.escherichia_coli, genomes.bacteroides, genomes.staphylococcus)
    )
    files = [coli.genome, genomes.escherichia_coli_genbank(), theta.genome, aureus.genome]
    files += [genomes.caenorhabditis_x(), genomes.drosophila_upstream()]
    held = [
        line[1:].strip().removesuffix(":test")
        for genome in GENOMES
        for line in (data / f"{genome}.test.fa").open("r", encoding="ascii")
        if line.startswith(">") and genome != "fly"
    ]
    [validation, test] = (
        (data / f"starts-{part}.txt").read_text("ascii").strip() for part in ("validation", "test")
    )

    def listed(paths: list[Path]) -> dict[str, dict[str, str]]:
        return {"train": {path.name: sha256_of(path) for path in paths}}

    every = ", ".join([*held, test, "chr2R of Drosophila"])
    return (
        {"files": listed(files), "parts": {"train": "all but the test", "test": every}},
        {
            "files": listed(files[:2]),
            "parts": {"train": "all but these", "validation": validation, "test": test},
        },
    )


# ---- what is measured


def bits(model: Path, data: Path, share: float) -> dict[str, float]:
    """Bits per base of held-out stretches, by genome."""
    found: dict[str, float] = {}
    for genome in GENOMES:
        records = (data / f"{genome}.test.fa").read_text("ascii").split(">")[1:]
        text, bases = "", 0
        for record in records:
            name, _, sequence = record.partition("\n")
            sequence = sequence.replace("\n", "")[: MEASURED - bases]
            bases += len(sequence)
            if sequence:
                text += f">{name}\n{sequence}\n"
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch, "some.fa")
            file.write_text(text, "ascii")
            measured = evaluate(model, file, mask=share, say=lambda _: None).metrics
        found[genome] = measured["pseudo_bits_per_base"]
    return found


def tables() -> dict[int, float]:
    """Bits per base of tables of the bases on both sides, on the same part of E. coli."""
    given = corpus("E. coli")
    found: dict[int, float] = {}
    for width in (4, 6):
        model = TwoSided(width).count(given.train)
        chosen = choose(model, given.validation, size=width)
        values = [model.bits(each[:MEASURED], chosen.strength)[width] for each in given.test]
        found[width] = float(np.nanmean(np.concatenate(values)))
    return found


@dataclass
class Ranking:
    """How well scores tell starts from the rest."""

    auroc: float
    average_precision: float

    def __str__(self) -> str:
        return f"{self.auroc:.3f} / {self.average_precision:.3f}"


def ranking(scores: np.ndarray, positive: np.ndarray) -> Ranking:
    """Of one set."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    return Ranking(
        float(roc_auc_score(positive, scores)), float(average_precision_score(positive, scores))
    )


@torch.no_grad()
def starts(model: Path, negatives: str) -> Ranking:
    """A model on the windows of the benchmark that are held out."""
    trained, given = load(model), promoters.examples(negatives).held_out
    texts = [letters(each) for each in given.windows]
    scores = [
        trained.task.scored(trained.model, texts[at : at + 256])
        for at in range(0, len(texts), 256)
    ]
    return ranking(np.concatenate(scores), given.positive)


def baselines(negatives: str) -> dict[str, Ranking]:
    """What needs no network, learned and measured on the same windows."""
    given = promoters.examples(negatives)
    learned, held = given.learned, given.held_out
    made = {"A+T content": AtContent(), "5-mers": Words(5), "one-hot": OneHot()}
    return {
        name: ranking(
            each.fit(learned.windows, learned.positive, learned.group).scores(held.windows),
            held.positive,
        )
        for name, each in made.items()
    }


# ---- the card


def card(folder: Path) -> str:
    """The card, all of whose figures are measured here or stand in the runs."""
    data, shipped = folder / "data", SHIPPED / PRETRAINED
    short, long, promoter = (
        json.loads((folder / run / "result.json").read_text("utf-8")) for run in RUNS
    )
    often, rarely = (bits(shipped, data, share) for share in SHARES)
    before = bits(folder / RUNS[1], data, SHARES[0])
    table, epoch = tables(), _epoch(data)
    config = json.loads((shipped / "config.json").read_text("utf-8"))
    described = json.loads((SHIPPED / PROMOTER / "dna.json").read_text("utf-8"))
    recipes = list(promoters.RATIOS)
    made = [baselines(each) for each in recipes]
    shares = [float(promoters.examples(each).held_out.positive.mean()) for each in recipes]
    rows = {"guessing": [Ranking(0.5, share) for share in shares]}
    rows |= {name: [each[name] for each in made] for name in made[0]}
    rows["twin, from random weights"] = [starts(folder / "3-twin", each) for each in recipes]
    rows["**the model that ships**"] = [starts(SHIPPED / PROMOTER, each) for each in recipes]
    for recipe, twin, own in zip(recipes, *list(rows.values())[-2:], strict=True):
        if own.average_precision <= twin.average_precision:
            print(f"warning: with {recipe} negatives the twin is as good")
    learned = short["tokens"] + long["tokens"]
    return (
        (HERE / "card.md")
        .read_text("utf-8")
        .format(
            parameters=sum(x.numel() for x in load_file(shipped / WEIGHTS).values()) / 1e6,
            megabytes=sum(each.stat().st_size for each in SHIPPED.rglob(WEIGHTS)) / 1e6,
            layers=config["num_hidden_layers"],
            width=config["hidden_size"],
            heads=config["num_attention_heads"],
            block=config["graph"]["parts"][0]["block"],
            times=", ".join(f"{_genome(each)} x {number}" for each, number in TIMES.items()),
            seed=SEED,
            short_tokens=short["tokens"] / 1e6,
            short_steps=short["steps"],
            long_tokens=long["tokens"] / 1e6,
            long_steps=long["steps"],
            promoter_tokens=promoter["tokens"] / 1e6,
            promoter_steps=promoter["steps"],
            hours=(short["seconds"] + long["seconds"] + promoter["seconds"]) / 3600,
            epoch=epoch / 1e6,
            epochs=learned / epoch,
            cost=1e-4 + max(abs(often[each] - before[each]) for each in GENOMES),  # rounded up
            measured=MEASURED,
            table4=table[4],
            table6=table[6],
            bits="\n".join(
                f"| {NAMES[each]} | {often[each]:.3f} | {rarely[each]:.3f} |" for each in GENOMES
            ),
            counts=_counts(),
            starts="\n".join(f"| {name} | {one} | {two} |" for name, (one, two) in rows.items()),
            one_in=round(1 / described["prevalence"]),
        )
    )


def _genome(name: str) -> str:
    return NAMES[name].partition(",")[0]


def _counts() -> str:
    held = {each: promoters.examples(each).held_out.positive for each in promoters.RATIOS}
    words = [f"{int((~own).sum()):,} {name}" for name, own in held.items()]
    return f"{int(next(iter(held.values())).sum())} starts, {' and '.join(words)} places"


def _epoch(data: Path) -> int:
    """Bases of an epoch."""
    files = [
        each for each in data.glob("*.fa") if not each.name.endswith((".test.fa", "genome.fa"))
    ]
    return sum(
        len(line.strip()) for file in files for line in file.open("r") if not line.startswith(">")
    )


def main(folder: Path) -> None:
    """Writes the files, then measures them."""
    learned = learned_from(folder / "data")
    for run, which, own in zip(RUNS[1:], (PRETRAINED, PROMOTER), learned, strict=True):
        ship(folder / run, which, own)
    (SHIPPED / "README.md").write_text(card(folder), "utf-8")
    print(f"{SHIPPED / 'README.md'} has what was measured")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
