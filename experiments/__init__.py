"""Measurements side by side with others, on this machine.

Every bench is a list of steps over cases and peers of its own, and shares how it measures:
`timing` runs callables in turns, `contest` says who cannot take part and why, `memory` measures in
fresh processes, `environment` says where it was measured, `run` puts a result together from the
steps, and `report` and `plot` write it down.

What is measured: `attention` (the operator alone), `encoders` (whole models) and `training` (whole
training steps). `goals` holds each against the ratios that Longbird sets itself.
"""

from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
"""Root of the checkout, from which processes of experiments are started."""
