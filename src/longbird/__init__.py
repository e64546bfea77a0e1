"""Longbird: sparse attention for long sequences, exact, linear, and fast on a plain CPU.

Examples:
    >>> import torch
    >>> import longbird as lb
    >>> graph = lb.bigbird(block=16)
    >>> q, k, v = torch.randn(3, 1, 4, 1000, 32).unbind()
    >>> lb.attention(q, k, v, graph, impl="gather").shape
    torch.Size([1, 4, 1000, 32])
"""

from importlib.metadata import version as _version

from longbird.graph import BlockWindow as BlockWindow
from longbird.graph import Causal as Causal
from longbird.graph import Edges as Edges
from longbird.graph import ErdosRenyi as ErdosRenyi
from longbird.graph import Full as Full
from longbird.graph import GlobalBlocks as GlobalBlocks
from longbird.graph import GlobalTokens as GlobalTokens
from longbird.graph import Graph as Graph
from longbird.graph import LegacyBigBird as LegacyBigBird
from longbird.graph import RandomBlocks as RandomBlocks
from longbird.graph import WattsStrogatz as WattsStrogatz
from longbird.graph import Window as Window
from longbird.graph import bigbird as bigbird
from longbird.graph import longformer as longformer
from longbird.layout import Layout as Layout
from longbird.ops.api import attention as attention
from longbird.ops.api import attention_packed as attention_packed
from longbird.ops.dispatch import implementations as implementations
from longbird.ops.weights import attention_weights as attention_weights
from longbird.oracle import check as check
from longbird.plan import plan as plan

__version__ = _version("longbird")
