"""Dropout: the same edges in every implementation, forward and backward; right on average."""

import pytest
import torch
from comparison import assert_parity, results
from strategies import Case

import longbird as lb

GRAPH = lb.bigbird(block=16) | lb.GlobalTokens([3])


def case(batch=2, n=130, head_dim=16, graph=GRAPH, **options) -> Case:
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, batch, 2, n, head_dim, generator=generator).unbind()
    return Case(q, k, v, graph, options)


@pytest.mark.parametrize("seed", [0, 1, -1, 2**40 + 3, -(2**63)])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.99])
def test_equals_reference_of_the_same_seed(impl, seed, p):
    assert_parity(case(dropout_p=p, dropout_seed=seed), impl)


@pytest.mark.parametrize("graph", [lb.Window(5, dilation=3), lb.Full()])
def test_edges_are_dropped_by_token_number(impl, graph):
    """However a layout orders its tokens."""
    assert_parity(case(graph=graph, dropout_p=0.4, dropout_seed=8), impl)


def test_seed_decides(impl):
    first, _ = case(dropout_p=0.3, dropout_seed=1)(impl)
    again, _ = case(dropout_p=0.3, dropout_seed=torch.tensor(1))(impl)
    other, _ = case(dropout_p=0.3, dropout_seed=2)(impl)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_sequences_and_heads_have_streams_of_their_own(impl):
    q = torch.randn(1, 1, 130, 16, generator=torch.Generator().manual_seed(0)).expand(3, 2, -1, -1)
    out = lb.attention(q, q, q, GRAPH & lb.Full(), dropout_p=0.5, dropout_seed=1, impl=impl)
    shared = lb.attention(q, q, q, lb.Window(9), dropout_p=0.5, dropout_seed=1, impl=impl)
    for outputs in (out, shared):
        flat = outputs.flatten(0, 1)
        assert all(not torch.equal(flat[a], flat[b]) for a in range(6) for b in range(a))


def test_lse_is_of_the_undropped_scores(impl):
    _, dropped = case(dropout_p=0.5, dropout_seed=1)(impl)
    _, plain = case()(impl)
    torch.testing.assert_close(dropped, plain)


def test_expectation(impl):
    """The mean over seeds of dropped attention is attention without dropout."""
    p, seeds = 0.3, 400
    one = case(batch=1, n=40, graph=lb.Window(4))
    expected, _ = one(impl)
    total = torch.zeros_like(expected)
    for seed in range(seeds):
        total += case(batch=1, n=40, graph=lb.Window(4), dropout_p=p, dropout_seed=seed)(impl)[0]
    error = (total / seeds - expected).abs().max()
    # The largest of 1,280 means with a deviation of at most sqrt(p / (1 - p)) * |v| / sqrt(seeds).
    assert error < 5 * (p / (1 - p)) ** 0.5 * float(one.v.abs().max()) / seeds**0.5


def test_seed_is_drawn_from_torch(impl):
    """As torch's own dropout does, and only if there is dropout and no seed."""
    generator_state = torch.random.get_rng_state()
    try:
        torch.manual_seed(5)
        first, _ = case(dropout_p=0.3)(impl)
        second, _ = case(dropout_p=0.3)(impl)
        torch.manual_seed(5)
        again, _ = case(dropout_p=0.3)(impl)
    finally:
        torch.random.set_rng_state(generator_state)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_forward_and_backward_drop_the_same_edges(impl):
    """Output is linear in v: out = P v, so the gradient of v must be P^T of the same P."""
    one = case(batch=1, n=60, dropout_p=0.6, dropout_seed=4)
    found = results(one, impl)
    identity = torch.eye(60).expand(1, 2, 60, 60)
    q, k = (torch.nn.functional.pad(x, (0, 44)) for x in (one.q, one.k))
    p = lb.attention(q, k, identity.contiguous(), GRAPH, scale=0.25, **one.options, impl=impl)
    d_out = torch.randn(found["out"].shape, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(found["dv"], p.transpose(-1, -2) @ d_out, atol=1e-5, rtol=1e-4)
