"""Demonstrations of what papers prove about sparse attention, as programs that can be run.

- Turing completeness: `turing` runs a machine (`machines`) with a sparse decoder, made of
  `decoder_parts` and checked by `nodes`; `machine_run` is the result.
- Universality: `universality` runs the layers of `contextual_mapping` over a graph.
- Limits: `furthest` finds the furthest of `vectors`; `limits` measures what no graph can exceed.

`pictures` draws all of them. Measures of graphs are in `longbird.analysis.measures`.
"""
