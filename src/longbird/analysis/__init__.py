"""Analysis of graphs without training a model.

- `measures`: hops, clustering, spectra and other measures, as plain functions of a graph.
- `plan`, `calibration`: predicted work, memory and time, and the length from which on a sparse
  graph is faster.
- `check`: comparison of every implementation of the operator with the dense one.
- `drawing`, `rendering`: pictures of graphs, and their output to terminals, notebooks and files.
- `theory`: demonstrations of what papers prove: Turing completeness, universality, limits.

Nothing here knows about models or documents.
"""
