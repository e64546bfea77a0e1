"""The operator in torch's machinery: gradcheck, double backward, compile, export, ONNX."""

import pytest
import torch
from torch import Tensor

import longbird as lb
from longbird.core.operator import reference

GRAPH = (lb.BlockWindow(3, 4) & lb.Causal()) | lb.GlobalTokens([2])
EXACT = ["reference", "gather"]


def inputs(n=10, batch=1, heads=2, head_dim=3, dtype=torch.float64, grad=True) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(3, batch, heads, n, head_dim, generator=generator, dtype=dtype)
    return [x.clone().requires_grad_(grad) for x in drawn]


def bias(m=2, heads=2, dtype=torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(heads, 2 * m + 1, generator=generator, dtype=dtype).requires_grad_()


CALLS = {
    "plain": {},
    "ragged": {"lengths": torch.tensor([10, 0, 7])},
    "globals": {"global_tokens": torch.eye(10, dtype=torch.bool)[:3]},
    "dropout": {"dropout_p": 0.4, "dropout_seed": 3},
    "scale": {"scale": 2.0},
}


@pytest.mark.parametrize("impl", EXACT)
@pytest.mark.parametrize("options", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("graph", [GRAPH, lb.Edges([(0, 3), (4, 4), (4, 5)])], ids=["a", "b"])
def test_gradcheck(impl, options, graph):
    """Against finite differences, rows without keys included."""

    def call(q, k, v, table):
        out, lse = lb.attention(
            q, k, v, graph, relative_bias=table, impl=impl, return_lse=True, **options
        )
        return out, lse.masked_fill(lse == -torch.inf, 0.0)

    batch = 3 if "lengths" in options or "global_tokens" in options else 1
    arguments = (*inputs(batch=batch, head_dim=2), bias())
    assert torch.autograd.gradcheck(call, arguments, fast_mode=batch > 1)


@pytest.mark.parametrize("impl", EXACT)
def test_gradgradcheck(impl):
    def call(q, k, v, table):
        out = lb.attention(q, k, v, GRAPH, relative_bias=table, impl=impl)
        return out

    assert torch.autograd.gradgradcheck(call, (*inputs(n=6, head_dim=2), bias()))


def test_packed_gradcheck():
    def call(q, k, v):
        return lb.attention_packed(q, k, v, lb.Window(2), [0, 4, 4, 9], impl="gather")

    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 9, 2, 3, generator=generator, dtype=torch.float64).unbind()
    assert torch.autograd.gradcheck(call, [x.clone().requires_grad_() for x in (q, k, v)])


def test_native_refuses_double_backward(native):
    q, k, v = inputs(dtype=torch.float32)
    out = lb.attention(q, k, v, GRAPH, impl=native)
    (gradient,) = torch.autograd.grad(out.sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match=r"once.*gather"):
        gradient.sum().backward()


def test_partial_gradients(impl):
    """Only one input wants a gradient."""
    q, k, v = inputs(n=40, dtype=torch.float32, grad=False)
    whole = inputs(n=40, dtype=torch.float32)
    expected = torch.autograd.grad(lb.attention(*whole, GRAPH, impl=impl).sum(), whole)
    for number, name in enumerate("qkv"):
        some = {"q": q, "k": k, "v": v}
        leaf = some[name] = some[name].clone().requires_grad_()
        lb.attention(**some, graph=GRAPH, impl=impl).sum().backward()
        torch.testing.assert_close(leaf.grad, expected[number])


def test_no_grad_and_inference_mode(impl):
    q, k, v = inputs(dtype=torch.float32)
    expected = lb.attention(q, k, v, GRAPH, impl=impl)
    with torch.no_grad():
        assert not lb.attention(q, k, v, GRAPH, impl=impl).requires_grad
    with torch.inference_mode():
        assert torch.equal(lb.attention(q, k, v, GRAPH, impl=impl), expected)


def test_hardmax_is_uniform_over_the_largest():
    q, k, v = inputs(n=6, grad=False)
    k[:, :, 3] = k[:, :, 1]
    out, top = reference.attend(q, k, v, lb.Full(), scoring="hardmax")
    scores = q @ k.transpose(-1, -2) * 3**-0.5
    largest = scores == scores.amax(-1, keepdim=True)
    assert (largest.sum(-1) == 2).any()
    expected = largest.double() / largest.sum(-1, keepdim=True) @ v
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(top, scores.amax(-1))
    out, top = reference.attend(q, k, v, lb.Edges([(1, 2)]), scoring="hardmax")
    assert torch.equal(out[:, :, 1], v[:, :, 2])
    assert not out[:, :, 2:].any()
    with pytest.raises(ValueError, match="hardmax"):
        reference.attend(q, k, v, lb.Full(), scoring="max")


# ---- compile and export ----


@pytest.mark.slow  # torch compiles
@pytest.mark.parametrize("dynamic", [False, None, True])
def test_compile_without_graph_breaks(native, dynamic):
    torch.compiler.reset()

    @torch.compile(fullgraph=True, dynamic=dynamic, backend="aot_eager")
    def layer(q, k, v, table, lengths):
        out, lse = lb.attention(
            q * 2, k, v, GRAPH, relative_bias=table, lengths=lengths, return_lse=True
        )
        return out.sin(), lse

    def eager(q, k, v, table, lengths):
        out, lse = lb.attention(
            q * 2, k, v, GRAPH, relative_bias=table, lengths=lengths, impl=native, return_lse=True
        )
        return out.sin(), lse

    for n in (12, 31, 50):
        q, k, v = inputs(n=n, batch=2, head_dim=8, dtype=torch.float32)
        table, lengths = bias(dtype=torch.float32), torch.tensor([n, n - 5])
        found, expected = layer(q, k, v, table, lengths), eager(q, k, v, table, lengths)
        torch.testing.assert_close(found, expected)
        leaves = (q, k, v, table)
        torch.testing.assert_close(
            torch.autograd.grad(found[0].sum(), leaves),
            torch.autograd.grad(expected[0].sum(), leaves),
        )


@pytest.mark.slow  # torch compiles
@pytest.mark.parametrize("dynamic", [False, None])
def test_compile_gather(dynamic):
    """Without graph breaks, once for each length."""
    torch.compiler.reset()

    def layer(q, k, v, table):
        options = {"relative_bias": table, "dropout_p": 0.2, "dropout_seed": 3}
        return lb.attention(q * 2, k, v, GRAPH, **options, impl="gather").sin()

    compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for n in (12, 31):
        leaves = (*inputs(n=n, batch=2, head_dim=8), bias())
        found, expected = compiled(*leaves), layer(*leaves)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(
            torch.autograd.grad(found.sum(), leaves), torch.autograd.grad(expected.sum(), leaves)
        )


@pytest.mark.slow  # torch compiles
@pytest.mark.parametrize("impl", EXACT)
@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, at graph breaks
def test_compile_around_what_reads_values(impl):
    """Lengths are values: these implementations then break the graph, and are right."""
    torch.compiler.reset()

    def layer(q, k, v, lengths):
        return lb.attention(q * 2, k, v, GRAPH, lengths=lengths, impl=impl).sin()

    q, k, v = inputs(n=31, batch=2)
    lengths = torch.tensor([31, 20])
    found = torch.compile(layer, backend="aot_eager")(q, k, v, lengths)
    expected = layer(q, k, v, lengths)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found.sum(), (q, k, v)), torch.autograd.grad(expected.sum(), (q, k, v))
    )


@pytest.mark.slow  # torch compiles
def test_compile_packed_with_dropout(native):
    torch.compiler.reset()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def layer(q, k, v, cu_seqlens, marked, seed):
        return lb.attention_packed(
            q, k, v, GRAPH, cu_seqlens, global_tokens=marked, dropout_p=0.3, dropout_seed=seed
        )

    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 30, 2, 8, generator=generator).unbind()
    marked = torch.rand(30, generator=generator) < 0.1
    cu_seqlens, seed = torch.tensor([0, 11, 30]), torch.tensor(9)
    expected = lb.attention_packed(
        q, k, v, GRAPH, cu_seqlens, global_tokens=marked, dropout_p=0.3, dropout_seed=9
    )
    torch.testing.assert_close(layer(q, k, v, cu_seqlens, marked, seed), expected)


@pytest.mark.slow  # torch compiles
def test_compile_that_draws_a_dropout_seed(native):
    torch.compiler.reset()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def layer(q, k, v):
        return lb.attention(q, k, v, GRAPH, dropout_p=0.5)

    q, k, v = inputs(n=40, head_dim=8, dtype=torch.float32)
    state = torch.random.get_rng_state()
    try:
        first, second = layer(q, k, v), layer(q, k, v)
    finally:
        torch.random.set_rng_state(state)
    assert not torch.equal(first, second)
    first.sum().backward()


@pytest.mark.slow  # torch compiles
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own
def test_compile_with_inductor(native):
    torch.compiler.reset()
    layer = torch.compile(lambda q, k, v: lb.attention(q, k, v + 1, GRAPH), fullgraph=True)
    q, k, v = inputs(n=40, head_dim=16, dtype=torch.float32)
    expected = lb.attention(q, k, v + 1, GRAPH)
    found = layer(q, k, v)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found.sum(), (q, k, v)), torch.autograd.grad(expected.sum(), (q, k, v))
    )


class Attention(torch.nn.Module):
    """For exporting."""

    def __init__(self, impl: str, graph: lb.Graph = GRAPH) -> None:
        super().__init__()
        self.impl, self.graph = impl, graph

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return lb.attention(q, k, v, self.graph, impl=self.impl)


@pytest.mark.slow  # torch exports
@pytest.mark.parametrize("strict", [False, True])
def test_export_native_of_any_length(native, strict):
    args = tuple(inputs(n=40, batch=2, head_dim=8, dtype=torch.float32, grad=False))
    n, batch = torch.export.Dim("n", min=2, max=4096), torch.export.Dim("batch", min=1, max=64)
    shapes = {name: {0: batch, 2: n} for name in "qkv"}
    program = torch.export.export(Attention(native), args, dynamic_shapes=shapes, strict=strict)
    assert "longbird.native_attention" in str(program.graph)
    other = inputs(n=77, batch=3, head_dim=8, dtype=torch.float32, grad=False)
    torch.testing.assert_close(program.module()(*other), lb.attention(*other, GRAPH, impl=native))


@pytest.mark.slow  # torch exports
def test_export_gather():
    """Plain torch operations alone."""
    graph = lb.bigbird(block=4) | lb.GlobalTokens([1])
    args = tuple(inputs(n=37, head_dim=8, dtype=torch.float32, grad=False))
    program = torch.export.export(Attention("gather", graph), args)
    assert "longbird" not in str(program.graph)
    other = inputs(n=37, head_dim=8, dtype=torch.float32, grad=False)
    other[0] += 1
    torch.testing.assert_close(
        program.module()(*other), lb.attention(*other, graph, impl="reference"), atol=2e-5, rtol=0
    )
    with pytest.raises(Exception, match="strict=False"):  # torch would lose the graph
        torch.export.export(Attention("gather", graph), args, strict=True)


@pytest.mark.slow  # torch exports
@pytest.mark.filterwarnings("ignore")
def test_onnx(tmp_path):
    """The exported gather runs in ONNX Runtime."""
    import onnxruntime

    graph = lb.bigbird(block=4) | lb.GlobalTokens([1])
    args = tuple(inputs(n=37, head_dim=8, dtype=torch.float32, grad=False))
    path = tmp_path / "attention.onnx"
    torch.onnx.export(Attention("gather", graph), args, path, dynamo=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    feed = {name: x.numpy() for name, x in zip(names, args, strict=True)}
    (found,) = session.run(None, feed)
    expected = lb.attention(*args, graph, impl="reference")
    torch.testing.assert_close(torch.from_numpy(found), expected, atol=2e-5, rtol=0)


@pytest.mark.slow  # torch traces and compiles in many ways
@pytest.mark.parametrize("packed", [False, True])
def test_opcheck(native, packed):
    """torch's own checks of the schema, the fake, autograd and compiling."""
    generator = torch.Generator().manual_seed(0)
    shape = (30, 2, 8) if packed else (2, 2, 15, 8)
    q, k, v = (torch.randn(shape, generator=generator, requires_grad=True) for _ in range(3))
    marked = torch.rand(30 if packed else (2, 15), generator=generator) < 0.1
    lengths = None if packed else torch.tensor([15, 0])
    cu_seqlens = torch.tensor([0, 11, 30]) if packed else None
    if not packed:
        marked[1] = False
    table, seed = bias(dtype=torch.float32), torch.tensor(7)
    plain = (q, k, v, GRAPH.key, lengths, cu_seqlens, None, None, 0.0, None, 0.5)
    everything = (q, k, v, GRAPH.key, lengths, cu_seqlens, marked, table, 0.3, seed, 0.5)
    for args in (plain, everything):
        torch.library.opcheck(torch.ops.longbird.native_attention.default, args)
