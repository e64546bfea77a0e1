"""Layouts: graphs at a given length, as the arrays that kernels take."""

from longbird.core.layout.layout import Layout as Layout
from longbird.core.layout.layout import compile_layout as compile_layout
from longbird.core.layout.tiling import Tiling as Tiling
