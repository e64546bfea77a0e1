"""The oracle finds what is right and what is wrong."""

from dataclasses import dataclass

import pytest
import torch

import longbird as lb
from longbird.analysis import check as oracle
from longbird.core.graph import Reach
from longbird.core.operator import dispatch, flex, gather, native

GRAPH = lb.bigbird(block=16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_all_agree(impl, dtype):
    report = lb.check(GRAPH, 150, dtype=dtype, impls=[impl])
    assert report.ok, str(report)
    (row,) = report.rows
    assert row.impl == impl
    assert row.ran
    assert len(row.gradients) == 3
    assert report.raise_if_failed() is report
    assert "ok" in str(report)
    assert impl in str(report)
    assert repr(report) == str(report), "what a notebook shows"


def test_float64():
    report = lb.check(GRAPH, 100, dtype=torch.float64, impls=["gather"])
    assert report.ok
    assert report.rows[0].output < 1e-12


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
    assert report.ok
    assert report.shape == (1, 2, 60, 24)
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
    assert not report.ok
    assert report.rows[0].output < 2e-5


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
    assert not report.ok
    assert "more than once" in str(report)


def test_bad_arguments():
    with pytest.raises(ValueError, match="'dense'"):
        lb.check(GRAPH, 60, impls=["dense"])
    with pytest.raises(TypeError, match="graph"):
        lb.check(None, 60)
    for wrong in ({"n": 1.5}, {"n": -1}, {"n": 60, "heads": "2"}, {"n": 60, "head_dim": True}):
        with pytest.raises((TypeError, ValueError), match=list(wrong)[-1]):
            lb.check(GRAPH, **wrong)


def test_graphs_in_every_form(impl):
    graphs = ["bigbird(block=16)", lb.Window(3), lb.Causal()]
    options = {"batch": 3, "lengths": [60, 0, 31], "impls": [impl]}
    report = lb.check(graphs, 60, **options)
    assert report.ok
    assert "Window(radius=3, dilation=1)" in str(report)
    assert lb.check("Window(3)", 60, impls=[impl]).ok
    report = lb.check(lambda n: lb.Window(n // 4), 60, **options)
    assert report.ok
    assert "lambda" in str(report)
    with pytest.raises(ValueError, match="each of the 2 sequences"):
        lb.check(graphs, 60, batch=2)


def test_flex_is_compiled_only_where_it_is_named(monkeypatch):
    """On a CPU; on CUDA it is what attention takes."""
    ran = []

    def run(call):
        ran.append(call)
        return gather.run(call)

    monkeypatch.setitem(dispatch.ABSENT, "flex", None)
    monkeypatch.setattr(flex, "run", run)
    report = lb.check(GRAPH, 60)
    assert report.ok
    assert not ran
    assert [row.impl for row in report.rows] == ["native", "flex", "gather"]
    assert 'impls=["flex"]' in str(report)
    assert lb.check(GRAPH, 60, impls=["flex"]).ok
    assert ran


@pytest.mark.parametrize(
    ("sizes", "needed"),
    [
        ({"n": 1_000_000}, "119,224 GB"),
        ({"n": 1000, "head_dim": 100_000}, "22 GB"),
        ({"n": 4096, "batch": 64, "heads": 12}, "790 GB"),
        ({"n": 2**31 - 1}, "tokens"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(sizes, needed, monkeypatch):
    def draw(*_, **__):
        raise AssertionError("something was allocated")

    monkeypatch.setattr(torch, "randn", draw)
    with pytest.raises(ValueError, match=rf"{needed}.*fewer tokens"):
        lb.check(GRAPH, **sizes)


def test_own_data_that_does_not_fit_is_refused_at_once():
    x = torch.zeros(1, 1, 1, 8).expand(1, 1, 100_000, 8)
    with pytest.raises(ValueError, match=r"596 GB.*fewer tokens"):
        lb.check(GRAPH, 100_000, q=x)


def test_the_memory_of_a_check_is_about_what_it_says(monkeypatch):
    """Refused where half of what is needed is free, run where twice as much is."""
    needed = 2 * 300 * (64 * 300 + 120 * 64)
    monkeypatch.setattr(oracle, "_free_memory", lambda device: needed // 2)
    with pytest.raises(ValueError, match="here"):
        lb.check(GRAPH, 300, impls=["gather"])
    monkeypatch.setattr(oracle, "_free_memory", lambda device: needed * 2)
    assert lb.check(GRAPH, 300, impls=["gather"]).ok


def test_seed_decides_and_random_state_is_left_alone():
    state = torch.random.get_rng_state()
    first, again, other = (
        lb.check(GRAPH, 60, seed=seed, impls=["gather"]).rows[0].output for seed in (0, 0, 1)
    )
    assert first == again != other
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize(
    ("impls", "error", "message"),
    [
        ("native", TypeError, r"received 'native' \(str\); write impls=\['native'\]"),
        ("dense", TypeError, r"list of names, received 'dense' \(str\)$"),
        (3, TypeError, r"list of names, received 3 \(int\)"),
        ([], ValueError, "some of native, flex, gather, reference, received none; leave it out"),
        ((), ValueError, "received none"),
        (["gather", None], ValueError, "received None"),
        ([["gather"]], ValueError, r"received \['gather'\]"),
    ],
)
def test_names_of_implementations(impls, error, message):
    with pytest.raises(error, match=message):
        lb.check(GRAPH, 60, impls=impls)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"dtype": "float32"}, TypeError, "dtype must be one of torch.float32, .*'float32'"),
        ({"dtype": torch.int32}, TypeError, "dtype must be one of"),
        ({"device": "gpu"}, ValueError, "device must be a device of torch, .* received 'gpu'"),
        ({"device": 3.5}, ValueError, "device must be a device of torch, .* received 3.5"),
        ({"q": [1.0]}, TypeError, "q must be a torch.Tensor, received list"),
        ({"seed": "a"}, TypeError, "seed must be an integer .* received 'a'"),
        ({"seed": 2**70}, ValueError, "seed must be an integer"),
        ({"heads": 1.5}, TypeError, "heads must be an integer"),
    ],
)
def test_other_wrong_arguments(options, error, message):
    with pytest.raises(error, match=message):
        lb.check(GRAPH, 60, **options)


@dataclass(frozen=True)
class ShortReach(lb.Graph):
    """A layout of tiles hides that its reach is too short; a rolling cache does not."""

    streams = True
    period = 1

    def edge(self, i, j, n):
        """Up to 20 back."""
        return (i - j >= 0) & (i - j <= 20)

    def reach(self, n):
        """Too short."""
        return Reach(behind=5, ahead=0)


@pytest.mark.parametrize("n", [64, 300, 1000])
def test_finds_a_false_fact(n):
    report = lb.check(ShortReach() | lb.GlobalTokens([0]), n, impls=["gather"])
    assert all(row.ok for row in report.rows), "the outputs are right"
    assert not report.ok
    with pytest.raises(AssertionError, match=r"ShortReach\(\): reach is false: .* sees key 0 "):
        report.raise_if_failed()


def test_finds_a_false_fact_in_any_sequence():
    long = [lb.Window(3), ShortReach()]
    assert not lb.check(long, 60, batch=2, impls=["gather"]).ok
    assert lb.check(long, 60, batch=2, lengths=[60, 0], impls=["gather"]).ok
    function = lambda n: ShortReach() if n > 40 else lb.Window(3)  # noqa: E731
    assert not lb.check(function, 60, batch=2, lengths=[60, 31], impls=["gather"]).ok
    assert lb.check(function, 60, batch=2, lengths=[40, 31], impls=["gather"]).ok
