"""`python -m experiments model`: whole encoders beside those of transformers.

`case` is what everybody does, `peers` who does it, `steps` what is measured, `report` what is said
about it.
"""
