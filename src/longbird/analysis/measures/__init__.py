"""Measures of a graph: hops, paths, clustering, spectra and small-world coefficients."""

from longbird.analysis.measures.analysis import Analysis as Analysis
from longbird.analysis.measures.analysis import Degrees as Degrees
from longbird.analysis.measures.analysis import Measures as Measures
from longbird.analysis.measures.analysis import analyse as analyse
from longbird.analysis.measures.paths import shortest_path as shortest_path
from longbird.analysis.measures.report import compare as compare
from longbird.analysis.measures.small_world import SmallWorld as SmallWorld
from longbird.analysis.measures.star import Star as Star
from longbird.analysis.measures.star import contains_star as contains_star
