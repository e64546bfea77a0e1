"""Measurements of attention, side by side with its peers on the same machine.

`timing` runs callables in turns; `peers` are the attention functions that take part; `attention`
runs the whole comparison; `goals` holds it against the ratios that Longbird sets itself;
`report` and `plot` write down what came out; `environment` says where it was measured.
"""
