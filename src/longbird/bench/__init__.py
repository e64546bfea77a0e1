"""Measurements of attention and of whole encoders, side by side with their peers on this machine.

`timing` runs callables in turns, `contest` also says who cannot take part and why. `peers` are the
attention functions that take part and `encoders` the models; `attention` and `model` run the two
comparisons, `memory` measures in fresh processes. `goals` holds a run against the ratios that
Longbird sets itself; `report`, `model_report` and `plot` write down what came out; `environment`
says where it was measured.
"""
