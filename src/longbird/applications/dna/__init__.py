"""DNA models: training on genomes and their labels, evaluation, and scans of whole genomes.

`genomes` reads genomes, labels and signals, and tokenizes DNA; `scanning` scores a genome with a
trained model. The tasks are trained by the engine of `longbird.applications.training`, and their
examples are windows of a genome. Comparisons with baselines belong to `experiments/dna`.
"""
