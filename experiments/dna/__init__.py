"""DNA: labelled data sets, splits without leaks, baselines and metrics.

Sequences are arrays of numbers (`bases`), positions are 0-based, and ends are exclusive.
`organisms` reads genomes with genes. `splits` divides them, and `twins` checks whether the same
sequence is on both sides. Data sets are `corpora`, `promoters`, `artificial` (promoters of
Drosophila against negatives made of them) and `profile` (properties of bins along a genome).

Five things are measured, each in a file with its baselines: `bits` (with `markov`), `classifying`
and `scanning` (with `linear` and `cnn`), `coding` (with `periodic`) and `profiling` (with words
and a `motif`). `metrics` and `peaks` define the measures. `models` contains the pretrained models
and their twins without pretraining, `finetuned` trains them on windows, and `tracks` on labels
along a genome. `experiments` contains the experiments made of these.
"""
