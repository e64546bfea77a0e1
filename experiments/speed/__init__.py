"""How fast Longbird is: times of calls, measured in turns with those of other libraries.

Each comparison is a list of steps over cases and contestants. `timing` runs callables in turns,
`contest` reports who cannot take part and why, `memory` measures calls in fresh processes, `run`
collects a result from the steps, `report` and `plot` write it, and `targets` compares it with the
ratios that the project wants to keep. The packages `attention`, `encoders` and `training` contain
the cases and contestants, and `experiments` the experiments made of them.
"""
