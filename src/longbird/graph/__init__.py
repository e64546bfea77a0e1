"""What attends to what: attention graphs, as immutable values. NumPy only."""

from longbird.graph.base import Graph as Graph
from longbird.graph.choices import ByLength as ByLength
from longbird.graph.choices import PerHead as PerHead
from longbird.graph.combinations import Intersection as Intersection
from longbird.graph.combinations import Union as Union
from longbird.graph.edges import Edges as Edges
from longbird.graph.expression import as_graph as as_graph
from longbird.graph.globals import GlobalBlocks as GlobalBlocks
from longbird.graph.globals import GlobalTokens as GlobalTokens
from longbird.graph.legacy import LegacyBigBird as LegacyBigBird
from longbird.graph.presets import bigbird as bigbird
from longbird.graph.presets import longformer as longformer
from longbird.graph.random import ErdosRenyi as ErdosRenyi
from longbird.graph.random import RandomBlocks as RandomBlocks
from longbird.graph.random import WattsStrogatz as WattsStrogatz
from longbird.graph.reach import Reach as Reach
from longbird.graph.streaming import Stream as Stream
from longbird.graph.streaming import stream as stream
from longbird.graph.windows import BlockWindow as BlockWindow
from longbird.graph.windows import Causal as Causal
from longbird.graph.windows import Full as Full
from longbird.graph.windows import Window as Window
