"""What can be known about a graph without training a model on it.

- `measures`: hops, clustering, spectra and the other measures of a graph.
- `plan`: predicted work, memory and time, and the length from which a sparse graph is faster.
- `check`: every implementation of the operator compared with the dense one.
- `drawing`: a graph in the terminal or as a picture.
- `theory`: what the papers prove, as programs: Turing completeness, universality, limits.

Nothing here knows about models or documents.
"""
