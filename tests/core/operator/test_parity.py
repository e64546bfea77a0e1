"""Every implementation equals dense float64 attention: outputs, log-sum-exps, all gradients."""

import pytest
import torch
from comparison import assert_parity
from hypothesis import given
from strategies import BLOCKS, HEAD_DIMS, Case, cases

import longbird as lb

EMPTY = lb.Edges([])


def random_case(n: int, graph: lb.Graph, *, batch=1, heads=2, head_dim=32, **options) -> Case:
    generator = torch.Generator().manual_seed(n)
    q, k, v = torch.randn(3, batch, heads, n, head_dim, generator=generator).unbind()
    return Case(q, k, v, graph, options)


@given(case=cases())
def test_any_call(impl, case):
    assert_parity(case, impl)


@given(case=cases(most=700, head_dims=(32, 64)))
def test_longer_calls(impl, case):
    assert_parity(case, impl)


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
def test_head_sizes(impl, head_dim):
    assert_parity(random_case(131, lb.bigbird(block=16), head_dim=head_dim), impl)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("head_dim", [8, 40, 64])
def test_half_precision(impl, dtype, head_dim):
    bias = torch.randn(2, 7, generator=torch.Generator().manual_seed(0))
    case = random_case(200, lb.bigbird(block=16), head_dim=head_dim, relative_bias=bias)
    assert_parity(case.to(dtype), impl)


@given(case=cases(most=150))
def test_float64(case):
    assert_parity(case.to(torch.float64), "gather")


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("offset", ["1", "block - 1", "block", "block + 1", "3 * block + 7"])
def test_lengths_around_blocks(impl, block, offset):
    n = eval(offset, {"block": block})
    assert_parity(random_case(n, lb.bigbird(block=block)), impl)


@pytest.mark.parametrize(
    "graph",
    [
        lb.Full(),
        lb.Causal(),
        lb.Window(300),
        lb.Window(20, dilation=7),
        lb.Window(3, dilation=2) | lb.GlobalTokens([0, 5, -1]),
        lb.bigbird() & lb.Causal(),
        lb.ErdosRenyi(0.01, seed=3),
        lb.WattsStrogatz(6, 0.2, seed=1),
        lb.LegacyBigBird("huggingface_eval", block=16, random=3, full_up_to=64),
    ],
    ids=lambda graph: f"{graph!r:.40}",
)
def test_graphs(impl, graph):
    assert_parity(random_case(509, graph, heads=3), impl)


def test_rows_without_keys(impl):
    graph = lb.Edges([(0, 3), (5, 5), (5, 6), (90, 2)])
    assert_parity(random_case(100, graph), impl)
    for graph in (EMPTY, lb.Window(0) & lb.Edges([(1, 2)])):
        case = random_case(70, graph)
        out, lse = case(impl)
        assert torch.equal(out, torch.zeros_like(out))
        assert torch.equal(lse, torch.full_like(lse, -torch.inf))
        assert_parity(case, impl)


def test_multiset_counts_twice(impl):
    """A block that is listed c times weighs c times as much."""
    graph = lb.LegacyBigBird("huggingface_eval", block=16, random=3, full_up_to=64)
    case = random_case(160, graph)
    out, _ = case(impl)
    counts = torch.from_numpy(graph.counts(160, 2))
    assert counts.max() == 4
    scores = case.q @ case.k.transpose(-1, -2) * 32**-0.5 + counts.log()
    torch.testing.assert_close(out, scores.softmax(-1) @ case.v, atol=2e-5, rtol=0)


def test_multiset_with_global_tokens(impl):
    """In the graph they become entries; per example only the reference adds them."""
    graph = lb.LegacyBigBird("huggingface_eval", block=16, random=3, full_up_to=64)
    assert_parity(random_case(160, graph | lb.GlobalTokens([7])), impl)
    marked = torch.zeros(1, 160, dtype=torch.bool)
    marked[0, 7] = True
    case = random_case(160, graph, global_tokens=marked)
    expected, _ = random_case(160, graph | lb.GlobalTokens([7]))("reference")
    torch.testing.assert_close(case("reference")[0], expected)
    with pytest.raises(ValueError, match='impl="reference"'):
        case(impl)


def test_global_tokens_that_the_graph_covers_already_count_once(impl):
    marked = torch.zeros(1, 90, dtype=torch.bool)
    marked[0, [0, 3, 89]] = True
    plain = random_case(90, lb.Full())
    case = random_case(90, lb.Full() | lb.GlobalTokens([3, 4]), global_tokens=marked)
    torch.testing.assert_close(case(impl), plain(impl), atol=2e-6, rtol=1e-5)


def test_all_tokens_global(impl):
    marked = torch.ones(1, 70, dtype=torch.bool)
    case = random_case(70, EMPTY, global_tokens=marked)
    torch.testing.assert_close(case(impl), random_case(70, lb.Full())(impl), atol=2e-6, rtol=1e-5)
    assert_parity(case, impl)


def test_rows_sum_to_one(impl):
    case = random_case(300, lb.bigbird(block=16) | lb.GlobalTokens([9]))
    out = lb.attention(case.q, case.k, torch.ones_like(case.v), case.graph, impl=impl)
    torch.testing.assert_close(out, torch.ones_like(out), atol=1e-6, rtol=0)


def test_large_scores_do_not_overflow(impl):
    case = random_case(100, lb.Window(9), scale=40.0)
    found, _ = case(impl)
    exact, _ = case.to(torch.float64)("reference")
    assert found.isfinite().all()
    torch.testing.assert_close(found.double(), exact, atol=2e-3, rtol=0)
