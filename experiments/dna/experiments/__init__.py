"""What `python -m experiments dna` runs: each is a module with `experiment(scale, model)`.

`speed` is no experiment but a comparison of times, as those of `python -m experiments model` are.
"""

EXPERIMENTS = {
    "bits": "bits per base of E. coli, with short and long windows, beside tables",
    "promoters": "promoters of E. coli, against random and intergenic places",
    "scan": "a whole fifth of E. coli scanned for starts of transcription",
    "artificial": "promoters of Drosophila, against what is made of them",
    "coding": "genes of a bacterium by those of two others",
    "profile": "genes, sites, starts, repeats and ChIP peaks along E. coli",
}
"""The names, and what each is about."""
SPEED = "speed"
