"""Attention over a graph: the graph, its compiled layout, and the operator that runs it.

- `graph`: which token attends to which, as immutable values; NumPy only.
- `layout`: a graph at a given length, as the lists of tiles and bit masks that kernels take.
- `operator`: `attention` and its four implementations, which do not know each other.
- `machine`: how much memory this process may use, and the formatting of sizes and large numbers.

Nothing here knows about models, files or the command line. The native kernels are in `csrc`.
"""
