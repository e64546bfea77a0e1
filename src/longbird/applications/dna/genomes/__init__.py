r"""Genomes: sequences, features and signals from files, and tokenizers of DNA.

Coordinates are converted where a file is read, and nowhere else: an `Interval` is 0-based and
excludes its end, whatever the format of the file. Nothing here imports torch.

Examples:
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "tiny.fa")
    >>> _ = file.write_text(">chr1\nACGTTAACGG\n")
    >>> with open_genome(file) as genome:
    ...     [genome.bases(window) for window in windows(genome, 6, 4)]
    ['ACGTTA', 'TAACGG']
    >>> folder.cleanup()
"""

from longbird.applications.dna.genomes.feature import Feature
from longbird.applications.dna.genomes.genome import Contig, Genome, open_genome
from longbird.applications.dna.genomes.interval import Interval
from longbird.applications.dna.genomes.labels import circular_in, read_features
from longbird.applications.dna.genomes.letters import reverse_complement
from longbird.applications.dna.genomes.signals import Signal, open_signal
from longbird.applications.dna.genomes.tokenizer import DnaTokenizer, Encoding
from longbird.applications.dna.genomes.windows import windows

__all__ = [
    "Contig",
    "DnaTokenizer",
    "Encoding",
    "Feature",
    "Genome",
    "Interval",
    "Signal",
    "circular_in",
    "open_genome",
    "open_signal",
    "read_features",
    "reverse_complement",
    "windows",
]
