"""Measurements of speed and quality beside other methods: `python -m experiments NAME`.

`framework` contains what all experiments share. `speed`, `quality` and `dna` contain the
experiments; every module there with a function `experiment(scale)` is one. `sources` downloads
the public documents and genomes that they use, and `results` has the recorded runs.
"""

from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
"""Root of the checkout, in which processes of experiments are started."""
