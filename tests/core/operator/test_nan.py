"""NaN and infinity of one token: where they go, and where they never go.

In q and k: to no query that does not see the token. In v: to every query that sees it, in its own
channel; and perhaps to others of the same sequence and head, since 0 x NaN is NaN.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import longbird as lb

N, TOKEN, CHANNEL = 200, 100, 3
GRAPHS = [
    lb.Window(2),
    lb.Window(2) | lb.GlobalTokens([7]),
    lb.Window(3, dilation=2),
    lb.bigbird(block=16),
]
FLEX = pytest.param("flex", marks=[pytest.mark.slow, pytest.mark.filterwarnings("ignore")])


def run(impl: str, graph: lb.Graph, bad: str | None = None, value: float = 0.0) -> Tensor:
    """Two padded rows, of which the second is shorter; the first has a bad token in head 1."""
    generator = torch.Generator().manual_seed(0)
    drawn = dict(zip("qkv", torch.randn(3, 2, 2, N, 16, generator=generator), strict=True))
    if bad is not None:
        drawn[bad][0, 1, TOKEN, CHANNEL] = value
    return lb.attention(**drawn, graph=graph, lengths=[N, 150], impl=impl)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("bad", ["q", "k", "v"])
@pytest.mark.parametrize("graph", GRAPHS, ids=["window", "global", "dilated", "bigbird"])
@pytest.mark.parametrize("impl", ["native", "gather", "reference", FLEX])
def test_where_it_goes(impl, graph, bad, value, request):
    if impl in ("native", "flex"):
        request.getfixturevalue(impl)
    clean, dirty = run(impl, graph), run(impl, graph, bad, value)
    assert torch.equal(dirty[1], clean[1]), "another sequence"
    assert torch.equal(dirty[0, 0], clean[0, 0]), "another head"
    reached = ~dirty[0, 1].isfinite()  # [n, head_dim]
    if bad == "q":
        sees = torch.arange(N) == TOKEN
    else:
        sees = torch.from_numpy(graph.mask(N, 2)[1, :, TOKEN])
    assert sees.any()
    assert not sees.all()
    if bad == "v":
        assert reached[sees, CHANNEL].all(), "a query that sees it"
        assert not reached[:, torch.arange(16) != CHANNEL].any(), "another channel"
    else:
        assert not reached[~sees].any(), "a query that does not see it"
        assert torch.equal(dirty[0, 1, ~sees], clean[0, 1, ~sees])
    if bad == "k" and value != value and impl != "flex":  # whose exp of NaN is 0 on a CPU
        assert reached[sees].all(), "a query that sees it"
