"""A graph at a length, as the arrays that kernels take."""

from longbird.layout.layout import Layout as Layout
from longbird.layout.layout import compile_layout as compile_layout
from longbird.layout.tiling import Tiling as Tiling
