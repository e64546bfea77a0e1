"""What the papers say of sparse attention, made to run: measures of graphs, and their limits."""

from longbird.theory.analysis import Analysis as Analysis
from longbird.theory.analysis import Degrees as Degrees
from longbird.theory.analysis import Measures as Measures
from longbird.theory.analysis import analyse as analyse
from longbird.theory.analysis import compare as compare
from longbird.theory.paths import shortest_path as shortest_path
from longbird.theory.small_world import SmallWorld as SmallWorld
from longbird.theory.star import Star as Star
from longbird.theory.star import contains_star as contains_star
