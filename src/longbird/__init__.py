"""Longbird: sparse attention for long sequences, exact, linear, and fast on a plain CPU.

Examples:
    >>> import torch
    >>> import longbird as lb
    >>> graph = lb.bigbird(block=16)
    >>> q, k, v = torch.randn(3, 1, 4, 1000, 32).unbind()
    >>> lb.attention(q, k, v, graph, impl="gather").shape
    torch.Size([1, 4, 1000, 32])
"""

import lazy_loader as _lazy  # pyright: ignore[reportMissingTypeStubs]

from longbird.models.integration.register import register_on_import as _register_on_import

# The public names stand in __init__.pyi, once. Each is imported when it is first used: the command
# answers before torch is there, and graphs need neither torch nor transformers.
_public, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)  # type: ignore[misc]


def __getattr__(name: str) -> object:
    if name == "__version__":  # what reads it takes longer to import than all the rest
        from importlib.metadata import version

        return version("longbird")
    return _public(name)


_register_on_import()  # LONGBIRD_REGISTER=0 leaves it to `register_with_transformers`
