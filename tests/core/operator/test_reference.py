"""The reference is what torch's own attention gives under `graph.mask`, for every piece."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import longbird as lb
from longbird.core import graph as pieces
from longbird.core.operator import reference

CASES = {
    "Full": ["Full()"],
    "Causal": ["Causal()"],
    "Window": ["Window(3)", "Window(2, dilation=5)"],
    "BlockWindow": ["BlockWindow(3, block=16)"],
    "GlobalTokens": ["GlobalTokens([0, 7, -1])"],
    "GlobalBlocks": ["GlobalBlocks(1, 1, block=16)"],
    "RandomBlocks": ["RandomBlocks(2, block=8, seed=1)"],
    "ErdosRenyi": ["ErdosRenyi(0.05, seed=2)"],
    "WattsStrogatz": ["WattsStrogatz(4, 0.3, seed=3)"],
    "Edges": ["Edges([])", "Edges([(0, 3), (5, 5), (5, 6), (40, 2)])"],
    "PerHead": ["PerHead([Causal(), Window(2), Edges([(0, 3)])])"],
    "ByLength": ['ByLength({44: "Causal"}, Window(2))', 'ByLength({45: "Causal"}, Window(2))'],
    "LegacyBigBird": ['LegacyBigBird("huggingface_eval", block=8, random=1, full_up_to=8)'],
    "Union": ["Window(1) | GlobalTokens([4])"],
    "Intersection": ["bigbird(block=8) & Causal()"],
}
ABSTRACT = (lb.Graph, pieces.EdgeList)
PIECES = sorted(
    name
    for name, piece in vars(pieces).items()
    if isinstance(piece, type) and issubclass(piece, lb.Graph) and piece not in ABSTRACT
)


@pytest.mark.parametrize("name", PIECES)
def test_reference_is_torch_attention_under_the_mask(name):
    """Forward and backward, in float64; rows without keys give zeros, and pass nothing on."""
    assert name in CASES, f"{name} is a new piece: give it a case here"
    n, heads = 45, 3
    for expression in CASES[name]:
        graph = eval(expression, vars(pieces))
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randn(4, 2, heads, n, 6, generator=generator, dtype=torch.float64)
        q, k, v = (x.clone().requires_grad_() for x in drawn[:3])
        found, _ = reference.attend(q, k, v, graph)
        gradients = torch.autograd.grad(found, (q, k, v), drawn[3])

        mask = torch.from_numpy(graph.mask(n, heads))
        empty = ~mask.any(-1)
        # torch's attention of a row without keys is not defined: it sees all, and is left out.
        bias = torch.zeros(heads, n, n, dtype=torch.float64)
        bias = bias.masked_fill(~(mask | empty[..., None]), -torch.inf)
        counts = torch.from_numpy(graph.counts(n, heads)).double()
        bias = torch.where(counts > 1, counts.log(), bias)  # what counts c times weighs c times
        expected = F.scaled_dot_product_attention(q, k, v, bias.expand(2, -1, -1, -1))
        expected = expected.masked_fill(empty[..., None], 0.0)
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-12)
        torch.testing.assert_close(
            gradients, torch.autograd.grad(expected, (q, k, v), drawn[3]), atol=1e-12, rtol=1e-12
        )
        assert not found[:, empty].any()
        assert not gradients[0][:, empty].any()


def test_the_cases_are_those_of_public_pieces():
    """`longbird.core.graph` has every piece that `longbird` makes public."""
    public = {
        name
        for name in dir(lb)
        if isinstance(getattr(lb, name), type) and issubclass(getattr(lb, name), lb.Graph)
    }
    assert public - {"Graph"} <= set(PIECES)
    rare = lb.Edges([(0, 3)]).mask(45, 3)
    assert (~rare.any(-1)).any()  # rows without keys are among the cases
