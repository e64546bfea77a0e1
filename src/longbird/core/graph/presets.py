"""The patterns of published papers, composed of pieces."""

from __future__ import annotations

import inspect

from longbird.core.graph.arguments import integer
from longbird.core.graph.base import Graph
from longbird.core.graph.combinations import Union
from longbird.core.graph.globals import GlobalBlocks
from longbird.core.graph.random import RandomBlocks
from longbird.core.graph.windows import BlockWindow, Window
from longbird.errors import InvalidValueError


def bigbird(
    block: int = 64,
    window: int = 3,
    random: int = 3,
    global_first: int = 1,
    global_last: int = 1,
    seed: int = 0,
) -> Graph:
    """Return BigBird: a window of blocks, global blocks, and random blocks elsewhere [1].

    Args:
        block: Number of tokens in a block.
        window: Number of blocks in the window, an odd number.
        random: Number of random key blocks for each query block and head, fewer if fewer are left.
        global_first: Number of global blocks at the beginning.
        global_last: Number of global blocks at the end.
        seed: Seed of the random blocks.

    Examples:
        >>> layout = bigbird().layout(4096, heads=12)
        >>> print(f"{layout.density:.3f}")
        0.152

    References:
        [1] M. Zaheer et al., "Big Bird: Transformers for Longer Sequences", NeurIPS 2020.
    """
    base = BlockWindow(window, block) | GlobalBlocks(global_first, global_last, block)
    return base | RandomBlocks(random, block, seed, avoid=base)


def as_bigbird(graph: Union) -> str | None:
    """Return the call of `bigbird` that makes a graph, without default arguments, or None.

    Examples:
        >>> as_bigbird(bigbird(seed=7, block=32))
        'bigbird(block=32, seed=7)'
    """
    parts = {type(part): part for part in graph.parts}
    window, global_, random = (
        parts.get(kind) for kind in (BlockWindow, GlobalBlocks, RandomBlocks)
    )
    if not (
        isinstance(window, BlockWindow)
        and isinstance(global_, GlobalBlocks)
        and isinstance(random, RandomBlocks)
    ):
        return None
    arguments = {
        "block": window.block,
        "window": window.width,
        "random": random.count,
        "global_first": global_.first,
        "global_last": global_.last,
        "seed": random.seed,
    }
    if bigbird(**arguments) != graph:
        return None
    usual = inspect.signature(bigbird).parameters
    given = (f"{name}={x}" for name, x in arguments.items() if x != usual[name].default)
    return f"bigbird({', '.join(given)})"


def longformer(window: int = 512, dilation: int = 1) -> Graph:
    """Return Longformer: a window of tokens; global tokens are chosen for each example [1].

    Args:
        window: Total number of neighbours, an even number: half of them on each side.
        dilation: Distance between neighbouring keys of the window.

    Examples:
        >>> longformer(window=512)
        Window(radius=256, dilation=1)

    References:
        [1] I. Beltagy, M. E. Peters, A. Cohan, "Longformer: The Long-Document Transformer", 2020.
    """
    window = integer(window, "longformer window")
    if window % 2:
        raise InvalidValueError(
            f"longformer window must be even (half on each side), received {window}"
        )
    return Window(window // 2, dilation)
