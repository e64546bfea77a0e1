"""Models built on attention over a graph, from their layers to checkpoints of other libraries.

The modules of this folder are the models themselves, as `transformers.PreTrainedModel`s: their
configurations, encoders, decoders and heads. Beside them stand

- `layers`: attention, feed-forward and normalisation layers over packed documents;
- `checkpoints`: reading and writing checkpoints, one name table for each foreign format;
- `conversion`: long models made from short ones;
- `integration`: the registration of all of this with transformers.

Nothing here reads documents or trains; that belongs to `longbird.applications`.
"""

import lazy_loader as _lazy  # pyright: ignore[reportMissingTypeStubs]

# Importing the package imports neither torch nor transformers: `import longbird` registers the
# models with transformers from here, and must stay fast.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)  # type: ignore[misc]
