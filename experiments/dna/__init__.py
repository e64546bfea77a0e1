"""DNA: sets with labels, splits without leaks, baselines, and figures that say something.

Sequences are arrays of numbers (`bases`), places are 0-based, and ends are not included.
`organisms` reads genomes with genes. `splits` says who learns from what, and `twins` whether
something is on both sides all the same. What is learned from are `corpora`, `promoters`,
`artificial` (promoters of Drosophila against what is made of them) and `profile` (properties of
bins along a genome).

Five things are measured, each in a file with its baselines as contestants of
`experiments.quality`: `bits` (by `markov`), `classifying` and `scanning` (by `linear` and
`cnn`), `coding` (by `periodic`) and `profiling` (by words and by a `motif`). `metrics` and `peaks`
say how. Models stand beside them: `models` has what they begin with, and twins without
pretraining; `finetuned` learns windows, and `tracks` what lies along a genome.

`experiments` are what `python -m experiments dna` runs.
"""
