"""Sources of the sequences and labels, as pages describe them."""

from experiments.sources import genomes

ECOLI = (
    "E. coli K-12 MG1655, U00096.3, a circle of 4,641,652 bases, from the package "
    f"{genomes.BACTERIA} (sha256 {genomes.BACTERIA_SHA256})"
)
OTHERS = (
    "B. thetaiotaomicron jmh43 (164 contigs, 5,968,415 bases) and S. aureus O11 (2,766,441 "
    "bases), from the same package"
)
REGULATION = (
    f"starts, sites and repeats of E. coli: EcoCyc 29.1 in the package {genomes.REGULATION} "
    f"(sha256 {genomes.REGULATION_SHA256})"
)
FLY = (
    f"upstream sequences of Drosophila (dm3) from the Debian package {genomes.FLY[0]} "
    f"{genomes.FLY[1]} (sha256 {genomes.FLY[2]})"
)
