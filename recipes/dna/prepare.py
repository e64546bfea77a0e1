"""Makes the files that the models of DNA are trained and measured with, and their first weights.

    python recipes/dna/prepare.py FOLDER

What `experiments.dna` holds out (a fifth of E. coli to count bits on and another for its
promoters, with a gap around both; the last fifth of chromosome X of C. elegans; chromosome 2R of
Drosophila) is in no file to learn from, and neither is what models are chosen by there. Files to
learn from have stretches of genomes as sequences, named after where they lie; those named
`...:validation` choose the best model.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from experiments.dna.artificial import CHROMOSOMES, merged, upstream
from experiments.dna.bases import letters, read_fasta
from experiments.dna.corpora import GAP
from experiments.dna.models import Plan, write_new
from experiments.dna.organisms import bacterium
from experiments.dna.promoters import AFTER, BEFORE
from experiments.dna.splits import TEST, TRAIN, VALIDATION, by_fifth, stretches
from experiments.sources import genomes

WIDTH = 80
CHOOSING = 120_000
"""Bases of each genome that choose the best model, at most."""
PROMOTERS, BITS = 2, 4
"""The fifths of E. coli that are held out."""
TIMES = {"coli": 4, "theta": 2, "aureus": 4, "worm": 1, "fly": 1}
"""How often a genome is in an epoch: together, the bacteria have as many bases as the animals."""
SHIFT = 1361
"""Bases by which copies are shifted, so that their windows differ."""
SEED = 0

Record = tuple[str, np.ndarray]
Files = dict[str, list[Record]]


def divided(name: str, sequence: np.ndarray, sides: np.ndarray) -> Files:
    """The stretches of a sequence to learn from and those to measure with."""

    def records(side: int, kind: str) -> Iterator[Record]:
        for start, end in stretches(sides == side):
            yield f"{name}:{start + 1}-{end}:{kind}", sequence[start:end]

    chosen = [(name, bases[:CHOOSING]) for name, bases in records(VALIDATION, "validation")]
    return {"train": [*records(TRAIN, "train"), *chosen], "test": list(records(TEST, "test"))}


def coli() -> Files:
    """Without the fifth of promoters, and without the fifth of bits, which is the test."""
    [(name, sequence)] = bacterium("E. coli").sequences.items()
    sides = by_fifth(len(sequence), BITS, GAP, circular=True)
    promoters = by_fifth(len(sequence), PROMOTERS, GAP, circular=True)
    sides[(promoters != TRAIN) & (sides == TRAIN)] = -1
    return divided(name, sequence, sides)


def aureus() -> Files:
    """Without its last fifth."""
    [(name, sequence)] = bacterium("S. aureus").sequences.items()
    return divided(name, sequence, by_fifth(len(sequence), BITS, GAP, circular=True))


def worm() -> Files:
    """Without its last fifth."""
    [(title, sequence)] = read_fasta(genomes.caenorhabditis_x())
    sides = by_fifth(len(sequence), BITS, GAP, circular=False)
    return divided(title.split()[0], sequence, sides)


def theta() -> Files:
    """Without its longest contig; the second chooses."""
    contigs = bacterium("B. theta").sequences
    longest, second, *rest = sorted(contigs, key=lambda name: -len(contigs[name]))
    train = [(f"{name}:train", contigs[name]) for name in rest]
    chosen = (f"{second}:validation", contigs[second][:CHOOSING])
    return {"train": [*train, chosen], "test": [(f"{longest}:test", contigs[longest])]}


def fly() -> Files:
    """Without chromosome 2R; some of X chooses, and the rest of it is in neither."""
    test, validation = CHROMOSOMES
    found: Files = {"train": [], "test": []}
    chosen: list[Record] = []
    for chromosome, start, bases in merged(upstream()):
        name = f"{chromosome}:{start + 1}-{start + len(bases)}"
        if chromosome in validation:
            chosen.append((f"{name}:validation", bases))
        else:
            kind = "test" if chromosome in test else "train"
            found[kind].append((f"{name}:{kind}", bases))
    upto = int(np.searchsorted(np.cumsum([len(bases) for _, bases in chosen]), CHOOSING))
    found["train"] += chosen[:upto]
    return found


def again(records: Iterable[Record], number: int) -> Iterator[Record]:
    """What is learned from once more, from other starts."""
    for name, bases in records:
        if name.endswith(":train") and len(bases) > number * SHIFT:
            yield f"{name}:{number + 1}", bases[number * SHIFT :]


GENOMES = {"coli": coli, "theta": theta, "aureus": aureus, "worm": worm, "fly": fly}


def write(file: Path, records: Iterable[Record]) -> None:
    """As FASTA."""
    records = list(records)
    with file.open("w", encoding="ascii") as out:
        for name, bases in records:
            text = letters(bases)
            out.write(f">{name}\n")
            out.writelines(f"{text[at : at + WIDTH]}\n" for at in range(0, len(text), WIDTH))
    print(f"{file}: {sum(len(bases) for _, bases in records):,} bases")


def start(folder: Path) -> None:
    """New weights and the tokenizer, of a shape that the trials in README.md chose.

    Most heads look at a neighbour from the start: in the trials, weights without that had not
    found out that neighbours matter.
    """
    write_new(Plan(layers=4), [], SEED, folder)


def promoters(folder: Path) -> None:
    """The genome of E. coli with its starts, and which fifth chooses and which is measured on."""
    shutil.copyfile(genomes.escherichia_coli().genome, folder / "genome.fa")
    shutil.copyfile(genomes.starts(experimental=True), folder / "starts.bed")
    [(name, sequence)] = bacterium("E. coli").sequences.items()
    sides = by_fifth(len(sequence), PROMOTERS, BEFORE + AFTER, circular=True)
    for side, file in ((VALIDATION, "starts-validation.txt"), (TEST, "starts-test.txt")):
        [(first, last)] = stretches(sides == side)
        (folder / file).write_text(f"{name}:{first + 1}-{last}\n", "ascii")


def main(folder: Path) -> None:
    """Writes files to learn from and one to measure with for each genome, and the promoters."""
    folder.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    for genome, make in GENOMES.items():
        made = make()
        names += [name for name, _ in made["train"] if name.endswith(":validation")]
        write(folder / f"{genome}.test.fa", made["test"])
        write(folder / f"{genome}.fa", made["train"])
        for number in range(1, TIMES[genome]):
            write(folder / f"{genome}-{number + 1}.fa", again(made["train"], number))
    promoters(folder)
    start(folder / "start")
    # The last file, so that it tells that all is there.
    (folder / "validation.txt").write_text("\n".join(names) + "\n", "ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
