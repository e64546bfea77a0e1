"""The oracle finds what is right and what is wrong."""

import pytest
import torch

import longbird as lb
from longbird.ops import dispatch, gather, native

GRAPH = lb.bigbird(block=16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_all_agree(impl, dtype):
    report = lb.check(GRAPH, 150, dtype=dtype, impls=[impl])
    assert report.ok, str(report)
    (row,) = report.rows
    assert row.impl == impl and row.ran and len(row.gradients) == 3
    assert report.raise_if_failed() is report
    assert "ok" in str(report) and impl in str(report)


def test_float64():
    report = lb.check(GRAPH, 100, dtype=torch.float64, impls=["gather"])
    assert report.ok and report.rows[0].output < 1e-12


def test_everything_at_once(impl):
    marked = torch.zeros(3, 90, dtype=torch.bool)
    marked[0, 5] = True
    report = lb.check(
        lb.Window(4),
        90,
        batch=3,
        heads=3,
        head_dim=8,
        lengths=[90, 0, 17],
        global_tokens=marked,
        relative_bias=torch.ones(3, 5),
        scale=0.2,
        impls=[impl],
    )
    assert report.ok, str(report)


def test_own_data(impl):
    generator = torch.Generator().manual_seed(5)
    q, k = torch.randn(2, 1, 2, 60, 24, generator=generator).unbind()
    report = lb.check(lb.Causal(), 60, q=q, k=k, impls=[impl])
    assert report.ok and report.shape == (1, 2, 60, 24)
    with pytest.raises(ValueError, match="n = 61"):
        lb.check(lb.Causal(), 61, q=q)


def test_gradients_that_are_all_rounding_errors(impl):
    """Each query sees itself alone: the gradients of q and k are zero."""
    assert lb.check(lb.Window(0), 50, impls=[impl]).ok


def broken(call):
    out, lse = gather.run(call)
    return out + 1e-3, lse


def test_finds_a_wrong_output(monkeypatch):
    monkeypatch.setitem(dispatch.ABSENT, "native", None)
    monkeypatch.setattr(native, "run", broken)
    report = lb.check(GRAPH, 60, impls=["gather", "native"])
    assert not report.ok
    assert [row.ok for row in report.rows] == [True, False]
    with pytest.raises(AssertionError, match="FAILED"):
        report.raise_if_failed()


def test_finds_nan_and_wrong_gradients(monkeypatch):
    monkeypatch.setitem(dispatch.ABSENT, "native", None)
    monkeypatch.setattr(native, "run", lambda call: (gather.run(call)[0] * torch.nan, None))
    assert not lb.check(GRAPH, 60, impls=["native"]).ok

    def wrong_gradient(call):
        out, lse = gather.run(call)
        return out + (call.k - call.k.detach()), lse

    monkeypatch.setattr(native, "run", wrong_gradient)
    report = lb.check(GRAPH, 60, impls=["native"])
    assert not report.ok and report.rows[0].output < 2e-5


def test_says_why_one_did_not_run(monkeypatch):
    monkeypatch.setitem(dispatch.ABSENT, "native", "no compiler was there")
    monkeypatch.setitem(dispatch.ABSENT, "flex", "nor was triton")
    report = lb.check(GRAPH, 60)
    assert report.ok
    assert "did not run: no compiler was there" in str(report)
    assert not lb.check(GRAPH, 60, impls=["native"]).ok
    multiset = lb.LegacyBigBird("huggingface_eval", block=8, random=1, full_up_to=8)
    marked = torch.ones(1, 60, dtype=torch.bool)
    report = lb.check(multiset, 60, global_tokens=marked)
    assert not report.ok and "more than once" in str(report)


def test_bad_arguments():
    with pytest.raises(ValueError, match="'dense'"):
        lb.check(GRAPH, 60, impls=["dense"])
    with pytest.raises(TypeError, match="graph"):
        lb.check("bigbird", 60)


def test_seed_decides_and_random_state_is_left_alone():
    state = torch.random.get_rng_state()
    first, again, other = (
        lb.check(GRAPH, 60, seed=seed, impls=["gather"]).rows[0].output for seed in (0, 0, 1)
    )
    assert first == again != other
    assert torch.equal(torch.random.get_rng_state(), state)
