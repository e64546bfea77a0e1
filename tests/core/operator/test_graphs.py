"""One graph for all sequences, one for each, or a function of the length; each also as text."""

from __future__ import annotations

import dataclasses
import functools
import gc

import numpy as np
import pytest
import torch
from comparison import results
from strategies import Case
from torch import Tensor

import longbird as lb
from longbird.core.layout import layout as layouts
from longbird.core.operator import graphs

GRAPHS = [
    lb.bigbird(block=16),
    lb.Window(3, dilation=2) | lb.GlobalTokens([1]),
    lb.Window(3, dilation=2) | lb.GlobalTokens([1]),
    lb.Edges([(0, 3), (30, 30), (30, 5)]),
]
LENGTHS = [90, 41, 41, 70]
EVERY = ["native", "gather", "reference"]


def inputs(n=90, batch=4, heads=2, head_dim=8, dtype=torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(3, batch, heads, n, head_dim, generator=generator, dtype=dtype)
    return [x.clone().requires_grad_() for x in drawn]


def marked() -> Tensor:
    tokens = torch.zeros(4, 90, dtype=torch.bool)
    tokens[0, 5] = tokens[2, 40] = True
    return tokens


OPTIONS = {
    "plain": {},
    "ragged": {"lengths": LENGTHS},
    "all": {
        "lengths": LENGTHS,
        "global_tokens": marked(),
        "relative_bias": torch.randn(2, 7, generator=torch.Generator().manual_seed(1)),
        "dropout_p": 0.3,
        "dropout_seed": 4,
        "scale": 0.5,
    },
}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_each_row_is_that_of_a_batch_with_its_graph(name, options, request):
    """Outputs, log-sum-exps and gradients; dropout knows a sequence by its number."""
    if name == "native":
        request.getfixturevalue("native")
    q, k, v = inputs()
    found = results(Case(q, k, v, GRAPHS, options), name)
    for row, graph in enumerate(GRAPHS):
        expected = results(Case(q, k, v, graph, options), name)
        for tensor in ("out", "lse", "dq", "dk", "dv"):
            a, b = found[tensor][row], expected[tensor][row]
            if name == "native":
                assert torch.equal(a, b), tensor
            else:
                torch.testing.assert_close(a, b, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("name", EVERY)
def test_packed(name):
    q, k, v = inputs()
    exists = torch.arange(90) < torch.tensor(LENGTHS)[:, None]
    packed = [x.detach().transpose(1, 2)[exists] for x in (q, k, v)]
    cu_seqlens = torch.tensor([0, *LENGTHS]).cumsum(0)
    found = lb.attention_packed(*packed, GRAPHS, cu_seqlens, impl=name)
    expected = lb.attention(q, k, v, GRAPHS, lengths=LENGTHS, impl=name)
    torch.testing.assert_close(found, expected.transpose(1, 2)[exists], atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_same_graph_in_a_list_is_that_graph(name, options):
    q, k, v = inputs()
    graph = GRAPHS[0]
    single = results(Case(q, k, v, graph, options), name)
    for same in ([graph] * 4, (lb.bigbird(block=16),) * 4, ["bigbird(block=16)", *[graph] * 3]):
        found = results(Case(q, k, v, same, options), name)
        assert all(torch.equal(found[tensor], single[tensor]) for tensor in single)


@pytest.mark.parametrize("name", EVERY)
def test_text(name):
    q, k, v = inputs()
    texts = ["bigbird(block=16)", "Window(2)", "Window(2)", lb.Causal().to_json()]
    graphs = [lb.bigbird(block=16), lb.Window(2), lb.Window(2), lb.Causal()]
    found = lb.attention(q, k, v, texts, impl=name)
    assert torch.equal(found, lb.attention(q, k, v, graphs, impl=name))
    found = lb.attention(q, k, v, "Window(2) | GlobalTokens([0])", impl=name)
    graph = lb.Window(2) | lb.GlobalTokens([0])
    assert torch.equal(found, lb.attention(q, k, v, graph, impl=name))
    with pytest.raises(ValueError, match="Windo"):
        lb.attention(q, k, v, "Windo(2)", impl=name)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_function_is_called_with_the_length_of_each_sequence(name, options):
    q, k, v = inputs()
    asked = []

    def graph(n: int) -> lb.Graph | str:
        asked.append(n)
        return lb.Window(n // 10) if n > 50 else f"Window({n})"

    lengths = options.get("lengths", [90] * 4)
    found = results(Case(q, k, v, graph, options), name)
    assert sorted(asked) == sorted(set(lengths))  # once for each length, backward included
    graphs = [lb.Window(n // 10) if n > 50 else lb.Window(n) for n in lengths]
    expected = results(Case(q, k, v, graphs, options), name)
    assert all(torch.equal(found[tensor], expected[tensor]) for tensor in expected)


def test_forward_and_backward_have_the_same_graph(native):
    """Even of a function that does not give the same twice."""
    seeds = iter(range(10))
    q, k, v = inputs()
    found = results(Case(q, k, v, lambda n: lb.ErdosRenyi(0.1, seed=next(seeds))), native)
    expected = results(Case(q, k, v, lb.ErdosRenyi(0.1, seed=0)), native)
    assert all(torch.equal(found[tensor], expected[tensor]) for tensor in expected)


class OfLength:
    """A callable that is no function."""

    def __call__(self, n: int) -> lb.Graph:
        return lb.Window(n // 10)

    def method(self, n: int) -> lb.Graph:
        return lb.Window(n // 10)


@pytest.mark.parametrize(
    "function",
    [OfLength(), OfLength().method, functools.partial(lambda d, n: lb.Window(n // d), 10)],
    ids=["object", "method", "partial"],
)
def test_anything_that_can_be_called(impl, function):
    q, k, v = inputs()
    found = results(Case(q, k, v, function), impl)
    expected = results(Case(q, k, v, lb.Window(9)), impl)
    assert all(torch.equal(found[tensor], expected[tensor]) for tensor in expected)


@pytest.mark.parametrize("name", EVERY)
def test_no_sequences(name):
    x = torch.zeros(0, 2, 5, 8, requires_grad=True)
    lb.attention(x, x, x, [], impl=name).sum().backward()
    assert x.grad.shape == x.shape
    x = torch.zeros(0, 2, 8)
    assert lb.attention_packed(x, x, x, [], [0], impl=name).shape == x.shape


@pytest.mark.parametrize("name", EVERY)
def test_bad_graphs(name):
    x = torch.zeros(2, 1, 9, 4)
    window = lb.Window(1)
    bad = {
        "each of the 2 sequences, received a list of 3": ([window] * 3, ValueError),
        "each of the 2 sequences, received a list of 1": ([window], ValueError),
        "received a list of 0": ([], ValueError),
        "received NoneType": ([window, None], TypeError),
        "received list": ([window, [window]], TypeError),
        "received ndarray": (window.mask(9), TypeError),
        r"received Tensor.*Edges\(mask": (torch.ones(9, 9).bool(), TypeError),
        r"received Full itself; write Full\(": (lb.Full, TypeError),
        r"received bigbird itself; write bigbird\(": (lb.bigbird, TypeError),
        r"for 9 tokens it returned None \(NoneType\)": (lambda n: None, TypeError),
        "does not exist|at least 10|10 tokens|position": (
            [window, lb.GlobalTokens([9])],
            ValueError,
        ),
    }
    for message, (graph, error) in bad.items():
        with pytest.raises(error, match=message):
            lb.attention(x, x, x, graph, impl=name)
    packed = torch.zeros(9, 1, 4)
    with pytest.raises(ValueError, match="each of the 3 sequences, received a list of 2"):
        lb.attention_packed(packed, packed, packed, [window] * 2, [0, 2, 2, 9], impl=name)


def test_large_graphs_may_die_before_backward(native, monkeypatch):
    monkeypatch.setattr(layouts, "_cache", layouts._Cache())
    random = np.random.default_rng(0)
    q = torch.randn(2, 1, 300, 8, requires_grad=True)
    graphs = [lb.Edges(random.integers(0, 300, (30000, 2))) for _ in range(2)]
    out = lb.attention(q, q, q, graphs, impl=native)
    (expected,) = torch.autograd.grad(out.sum(), q, retain_graph=True)
    del graphs
    monkeypatch.setattr(layouts, "_cache", layouts._Cache())
    gc.collect()
    out.sum().backward()
    assert torch.equal(q.grad, expected)


def test_weights_have_the_graphs_too():
    q, k, v = (x.detach() for x in inputs())
    found = lb.attention_weights(q, k, GRAPHS, lengths=LENGTHS)
    expected = lb.attention(q, k, v, GRAPHS, lengths=LENGTHS, impl="reference")
    torch.testing.assert_close(found.dense(90) @ v, expected, atol=1e-5, rtol=0)
    found = lb.attention_weights(q, k, lambda n: lb.Window(n // 10), [0, 40], lengths=LENGTHS)
    assert [len(found.row(row, 0, 40)[0]) for row in range(4)] == [19, 5, 5, 15]
    assert found.row(0, 1, 0)[0].tolist() == list(range(10))
    alone = lb.attention_weights(q[0], k[0], ["Window(2)"], rows=[0])
    assert alone.row(1, 0)[0].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="each of the 4 sequences"):
        lb.attention_weights(q, k, GRAPHS[:3])


# ---- compile and export ----


def of_length(n: int) -> lb.Graph:
    return lb.Window(n // 10)


@dataclasses.dataclass
class Unhashable(OfLength):
    share: int = 10


@pytest.mark.parametrize("function", [of_length, OfLength(), OfLength().method, Unhashable()])
def test_compiled_programs_keep_a_function_once(function):
    key = graphs._key_in_compiled_program(function)
    kept = len(graphs._in_compiled_programs)
    again = getattr(function, "__self__", None)  # a method is a new object whenever it is named
    assert graphs._key_in_compiled_program(again.method if again else function) == key
    assert len(graphs._in_compiled_programs) == kept
    assert graphs.Graphs.from_key(key).of(0, 40) == lb.Window(4)
    assert graphs._key_in_compiled_program(lambda n: lb.Window(n)) != key


def test_a_function_is_asked_again_when_it_is_compiled_again():
    radius = 1
    function = lambda n: lb.Window(radius)  # noqa: E731
    found = []
    for radius in (1, 2):  # noqa: B007
        key = graphs._key_in_compiled_program(function)
        found.append(graphs.Graphs.from_key(key).of(0, 40))
    assert found == [lb.Window(1), lb.Window(2)]


PAIR = [lb.Window(1) | lb.GlobalTokens([1]), lb.Causal()]
COMPILED = {
    "list": PAIR,
    "text": "Window(3) | GlobalTokens([0])",
    "texts": ["Window(1)", "bigbird(block=16)"],
    "function": of_length,
    "object": OfLength(),
    "method": OfLength().method,
    "partial": functools.partial(lambda d, n: lb.Window(n // d), 10),
}
# What gather makes of a graph takes seconds to compile.
CASES = [("native", name) for name in COMPILED] + [("gather", "list"), ("gather", "function")]
BOTH = [(impl, name) for impl in ("gather", "reference") for name in ("list", "function")]


@pytest.mark.slow
@pytest.mark.parametrize(("impl", "name"), CASES)
def test_compile_without_graph_breaks(impl, name):
    torch.compiler.reset()
    graph = COMPILED[name]

    def layer(q, k, v):
        return lb.attention(q * 2, k, v, graph, impl=impl).sin()

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for n in (20, 33):  # the second time with symbolic lengths
        leaves = inputs(n, batch=2)
        found, expected = compiled(*leaves), layer(*leaves)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(
            torch.autograd.grad(found.sum(), leaves), torch.autograd.grad(expected.sum(), leaves)
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_compile_ragged_native_without_graph_breaks(native, name):
    torch.compiler.reset()
    graph = COMPILED[name]

    def layer(q, k, v, lengths):
        return lb.attention(q, k, v, graph, lengths=lengths, impl=native)

    leaves = (*inputs(batch=2), torch.tensor([90, 40]))
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*leaves), layer(*leaves))


@pytest.mark.slow
@pytest.mark.parametrize(("impl", "name"), BOTH)
@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, at graph breaks
def test_compile_around_what_reads_values(impl, name):
    torch.compiler.reset()
    graph = COMPILED[name]

    def layer(q, k, v, lengths):
        return lb.attention(q * 2, k, v, graph, lengths=lengths, impl=impl).sin()

    leaves = (*inputs(batch=2), torch.tensor([90, 40]))
    found = torch.compile(layer, backend="aot_eager")(*leaves)
    torch.testing.assert_close(found, layer(*leaves))


class Attention(torch.nn.Module):
    def __init__(self, graph, impl: str) -> None:
        super().__init__()
        self.graph, self.impl = graph, impl

    def forward(self, q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None = None) -> Tensor:
        return lb.attention(q, k, v, self.graph, lengths=lengths, impl=self.impl)


EXPORTED = [("native", False), ("native", True), ("gather", False)]


@pytest.mark.slow
@pytest.mark.parametrize(("impl", "strict"), EXPORTED)
@pytest.mark.parametrize("name", ["list", "texts", "function"])
def test_export(impl, name, strict, tmp_path):
    args = tuple(x.detach() for x in inputs(20, batch=2))
    program = torch.export.export(Attention(COMPILED[name], impl), args, strict=strict)
    assert "function:" not in str(program.graph)  # which would exist in this process alone
    torch.export.save(program, tmp_path / "program.pt2")
    found = torch.export.load(tmp_path / "program.pt2").module()(*args)
    torch.testing.assert_close(found, lb.attention(*args, COMPILED[name], impl=impl))


@pytest.mark.slow
@pytest.mark.parametrize(("impl", "strict"), EXPORTED)
def test_export_with_lengths(impl, strict):
    args = (*(x.detach() for x in inputs(20, batch=2)), torch.tensor([20, 7]))
    program = torch.export.export(Attention(PAIR, impl), args, strict=strict)
    other = (*args[:3], torch.tensor([3, 20]))
    expected = lb.attention(*other[:3], PAIR, lengths=other[3], impl="reference")
    torch.testing.assert_close(program.module()(*other), expected, atol=2e-5, rtol=0)
    with pytest.raises(Exception, match="function of the length cannot be exported"):
        torch.export.export(Attention(of_length, impl), args, strict=strict)
