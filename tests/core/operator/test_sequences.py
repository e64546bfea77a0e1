"""Padding costs nothing and changes nothing; a sequence gives the same alone and in a batch."""

import pytest
import torch
from comparison import results
from hypothesis import given
from hypothesis import strategies as st
from strategies import Case

import longbird as lb

GRAPH = lb.bigbird(block=16) | lb.GlobalTokens([0])
LENGTHS = (70, 0, 200, 1, 131)


def batch(lengths=LENGTHS, n=200, heads=2, head_dim=32, graph=GRAPH, **options) -> Case:
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, len(lengths), heads, n, head_dim, generator=generator).unbind()
    return Case(q, k, v, graph, {"lengths": torch.tensor(lengths), **options})


def same(impl: str, a: torch.Tensor, b: torch.Tensor) -> None:
    """Bitwise for native, whose arithmetic does not depend on the batch; else rounding errors."""
    if impl == "native":
        assert torch.equal(a, b)
    else:
        torch.testing.assert_close(a, b, atol=2e-6, rtol=1e-5)


@given(lengths=st.lists(st.integers(0, 150), min_size=1, max_size=4), extra=st.integers(0, 9))
def test_batch_equals_single(impl, lengths, extra):
    case = batch(lengths, n=max(lengths) + extra, head_dim=16)
    together = results(case, impl)
    generator = torch.Generator().manual_seed(1)
    d_out = torch.randn(together["out"].shape, generator=generator)
    d_lse = torch.randn(together["lse"].shape, generator=generator)
    for row, length in enumerate(lengths):
        one = [x[row : row + 1, :, :length].clone() for x in (case.q, case.k, case.v)]
        leaves = [x.requires_grad_() for x in one]
        out, lse = lb.attention(*leaves, GRAPH, impl=impl, return_lse=True)
        upstream = [x[row : row + 1, :, :length] for x in (d_out, d_lse)]
        gradients = torch.autograd.grad([out, lse], leaves, upstream)
        names = ("out", "lse", "dq", "dk", "dv")
        for name, alone in zip(names, (out, lse, *gradients), strict=True):
            found = together[name][row : row + 1, :, :length]
            same(impl, found, alone)


def test_padding_is_zero_and_its_content_does_not_matter(impl):
    clean = batch()
    padding = torch.arange(200) >= clean.options["lengths"][:, None]
    expected = results(clean, impl)
    assert not expected["out"].transpose(1, 2)[padding].any()
    assert (expected["lse"].transpose(1, 2)[padding] == -torch.inf).all()
    for name in ("dq", "dk", "dv"):
        assert not expected[name].transpose(1, 2)[padding].any()

    dirty = batch()
    for value, x in zip((torch.nan, torch.inf, 1e30), (dirty.q, dirty.k, dirty.v), strict=True):
        x.transpose(1, 2)[padding] = value
    found = results(dirty, impl)
    for name in expected:
        assert torch.equal(found[name], expected[name]), name


def test_packed_equals_padded(impl):
    marked = torch.rand(5, 200, generator=torch.Generator().manual_seed(3)) < 0.05
    exists = torch.arange(200) < torch.tensor(LENGTHS)[:, None]
    bias = torch.randn(2, 9, generator=torch.Generator().manual_seed(4))
    shared = {"relative_bias": bias, "dropout_p": 0.2, "dropout_seed": 5}
    padded = batch(global_tokens=marked & exists, **shared)
    q, k, v = (x.transpose(1, 2)[exists] for x in (padded.q, padded.k, padded.v))
    cu_seqlens = torch.tensor([0, *LENGTHS]).cumsum(0).int()
    packed = Case(q, k, v, GRAPH, {"cu_seqlens": cu_seqlens, **shared})
    packed.options["global_tokens"] = marked[exists]
    for a, b in zip(padded(impl), packed(impl), strict=True):
        same(impl, a.transpose(1, 2)[exists], b)


def test_neighbours_of_one_length(impl):
    """Whether they run together, or (with global tokens, here none) each alone."""
    lengths = (50, 50, 7, 7, 0, 0, 50)
    options = {"dropout_p": 0.3, "dropout_seed": 2}
    together = batch(lengths, n=60, **options)
    alone = batch(lengths, n=60, global_tokens=torch.zeros(7, 60, dtype=torch.bool), **options)
    for a, b in zip(together(impl), alone(impl), strict=True):
        same(impl, a, b)
    exists = torch.arange(60) < torch.tensor(lengths)[:, None]
    q, k, v = (x.transpose(1, 2)[exists] for x in (together.q, together.k, together.v))
    cu_seqlens = torch.tensor([0, *lengths]).cumsum(0)
    packed = Case(q, k, v, GRAPH, {"cu_seqlens": cu_seqlens, **options})
    for a, b in zip(together(impl), packed(impl), strict=True):
        same(impl, a.transpose(1, 2)[exists], b)


@pytest.mark.parametrize("shape", [(0, 2, 10, 8), (3, 2, 0, 8), (0, 1, 0, 1)])
def test_empty_batches(impl, shape):
    q = torch.randn(shape, requires_grad=True)
    out, lse = lb.attention(q, q, q, GRAPH, impl=impl, return_lse=True)
    assert out.shape == shape
    assert lse.shape == shape[:-1]
    (out.sum() + lse.sum()).backward()
    assert q.grad.shape == shape


def test_only_empty_rows(impl):
    case = batch((0, 0, 0))
    found = results(case, impl)
    assert all(not found[name].any() for name in ("out", "dq", "dk", "dv"))
    packed = torch.randn(0, 2, 8, requires_grad=True)
    for cu_seqlens in ([0], [0, 0, 0]):
        out = lb.attention_packed(packed, packed, packed, GRAPH, cu_seqlens, impl=impl)
        assert out.shape == (0, 2, 8)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, "list"])
def test_lengths_of_any_integer_type(impl, dtype):
    case = batch()
    expected, _ = case(impl)
    lengths = list(LENGTHS) if dtype == "list" else case.options["lengths"].to(dtype)
    found = lb.attention(case.q, case.k, case.v, GRAPH, lengths=lengths, impl=impl)
    assert torch.equal(found, expected)


def strided(x: torch.Tensor, how: str) -> torch.Tensor:
    """The same values with other strides."""
    if how == "heads last":
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if how == "channels apart":
        return x.repeat_interleave(2, -1)[..., ::2]
    if how == "tokens apart":
        return x.repeat_interleave(3, 2)[:, :, ::3]
    return x.transpose(-1, -2).contiguous().transpose(-1, -2)


@pytest.mark.parametrize("how", ["heads last", "channels apart", "tokens apart", "transposed"])
def test_any_strides(impl, how):
    case = batch()
    expected = results(case, impl)
    leaves = [x.clone().requires_grad_() for x in (case.q, case.k, case.v)]
    views = [strided(x, how) for x in leaves]
    assert not views[0].is_contiguous()
    out, lse = lb.attention(*views, GRAPH, **case.options, impl=impl, return_lse=True)
    same(impl, out, expected["out"])
    generator = torch.Generator().manual_seed(1)
    d_out = torch.randn(out.shape, generator=generator)
    d_lse = torch.randn(lse.shape, generator=generator)
    torch.autograd.backward([out, lse], [strided(d_out, how), d_lse])
    for name, leaf in zip(("dq", "dk", "dv"), leaves, strict=True):
        same(impl, leaf.grad, expected[name])


def test_zero_strides(impl):
    """Expanded keys and values (multi-query attention) and an expanded gradient."""
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(2, 3, 90, 16, generator=generator)
    k, v = (torch.randn(1, 1, 90, 16, generator=generator, requires_grad=True) for _ in range(2))
    out = lb.attention(q, k.expand_as(q), v.expand_as(q), GRAPH, impl=impl)
    full_k, full_v = (x.detach().expand_as(q).contiguous().requires_grad_() for x in (k, v))
    expected = lb.attention(q, full_k, full_v, GRAPH, impl=impl)
    same(impl, out, expected)
    out.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(k.grad, full_k.grad.sum((0, 1), keepdim=True), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(v.grad, full_v.grad.sum((0, 1), keepdim=True), atol=1e-4, rtol=1e-4)
