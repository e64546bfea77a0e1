"""Attention graphs: immutable values that specify which queries attend to which keys."""

from longbird.core.graph.base import Graph as Graph
from longbird.core.graph.choices import ByLength as ByLength
from longbird.core.graph.choices import PerHead as PerHead
from longbird.core.graph.combinations import Intersection as Intersection
from longbird.core.graph.combinations import Union as Union
from longbird.core.graph.edges import EdgeList as EdgeList
from longbird.core.graph.edges import Edges as Edges
from longbird.core.graph.expression import as_graph as as_graph
from longbird.core.graph.globals import GlobalBlocks as GlobalBlocks
from longbird.core.graph.globals import GlobalTokens as GlobalTokens
from longbird.core.graph.legacy import LegacyBigBird as LegacyBigBird
from longbird.core.graph.presets import bigbird as bigbird
from longbird.core.graph.presets import longformer as longformer
from longbird.core.graph.random import ErdosRenyi as ErdosRenyi
from longbird.core.graph.random import RandomBlocks as RandomBlocks
from longbird.core.graph.random import WattsStrogatz as WattsStrogatz
from longbird.core.graph.reach import Reach as Reach
from longbird.core.graph.streaming import Stream as Stream
from longbird.core.graph.streaming import stream as stream
from longbird.core.graph.windows import BlockWindow as BlockWindow
from longbird.core.graph.windows import Causal as Causal
from longbird.core.graph.windows import Full as Full
from longbird.core.graph.windows import Window as Window
