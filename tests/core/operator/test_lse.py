"""The log-sum-exp: right, differentiable, and good for merging partial results."""

import torch
from comparison import results
from hypothesis import given
from hypothesis import strategies as st
from strategies import Case
from torch import Tensor

import longbird as lb


def inputs(n: int, heads=2, head_dim=16, dtype=torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(n)
    return list(torch.randn(3, 1, heads, n, head_dim, generator=generator, dtype=dtype).unbind())


def merge(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """As a user would: attention over a union of disjoint edge sets, from its parts."""
    lse = torch.logaddexp(first[1], second[1])
    shares = [torch.exp(part[1] - lse).nan_to_num(0.0)[..., None] for part in (first, second)]
    return shares[0] * first[0] + shares[1] * second[0], lse


def test_full_lse_is_logsumexp(impl):
    q, k, v = inputs(77)
    _, lse = lb.attention(q, k, v, lb.Full(), impl=impl, return_lse=True)
    expected = (q.double() @ k.double().transpose(-1, -2) / 4).logsumexp(-1)
    torch.testing.assert_close(lse.double(), expected, atol=1e-5, rtol=0)


def test_gradient_of_lse_alone(impl):
    """It is the probabilities times the keys."""
    q, k, v = (x.requires_grad_() for x in inputs(90))
    graph = lb.Window(7)
    _, lse = lb.attention(q, k, v, graph, impl=impl, return_lse=True)
    lse.sum().backward()
    hidden = torch.from_numpy(~graph.mask(90))
    p = (q @ k.transpose(-1, -2) / 4).masked_fill(hidden, -torch.inf).softmax(-1).detach()
    torch.testing.assert_close(q.grad, p @ k.detach() / 4, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(k.grad, p.transpose(-1, -2) @ q.detach() / 4, atol=1e-5, rtol=1e-4)
    assert v.grad is None or not v.grad.any()


@given(n=st.integers(1, 150), cut=st.integers(0, 150), seed=st.integers(0, 3))
def test_disjoint_parts_merge(impl, n, cut, seed):
    """Forward and backward; rows that have no keys in one part, or in both, included."""
    pairs = lb.ErdosRenyi(0.05, seed).mask(n)[0].nonzero()
    left = [(i, j) for i, j in zip(*pairs, strict=True) if j < cut]
    right = [(i, j) for i, j in zip(*pairs, strict=True) if j >= cut]
    whole = results(Case(*inputs(n), lb.Edges([*left, *right])), impl)

    leaves = [x.requires_grad_() for x in inputs(n)]
    parts = [
        lb.attention(*leaves, lb.Edges(part), impl=impl, return_lse=True) for part in (left, right)
    ]
    out, lse = merge(*parts)
    torch.testing.assert_close(out, whole["out"], atol=5e-6, rtol=1e-5)
    torch.testing.assert_close(lse, whole["lse"], atol=5e-6, rtol=1e-5)
    assert out.isfinite().all()


def test_merged_gradients(impl):
    n, graph = 120, lb.Window(9)
    near = lb.Window(3)
    far = lb.Edges(list(zip(*(graph.mask(n) & ~near.mask(n))[0].nonzero(), strict=True)))

    leaves = [x.requires_grad_() for x in inputs(n)]
    parts = [lb.attention(*leaves, g, impl=impl, return_lse=True) for g in (near, far)]
    upstream = torch.randn(1, 2, n, 16, generator=torch.Generator().manual_seed(0))
    found = torch.autograd.grad(merge(*parts)[0], leaves, upstream)
    expected = torch.autograd.grad(lb.attention(*leaves, graph, impl=impl), leaves, upstream)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
