"""`python -m experiments attention`: the operator alone, beside other ways to attend.

`case` is what everybody does, `peers` who does it, `steps` what is measured, `report` what is said
about it.
"""
