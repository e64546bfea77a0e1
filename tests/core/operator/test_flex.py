"""FlexAttention on a CPU: forward only, compiled.

All tests have two tiles, as a new shape compiles for ten seconds.
"""

import pytest
import torch

import longbird as lb

pytestmark = [
    pytest.mark.slow,  # compiled by g++
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),  # torch's own
]


def inputs(n: int, batch=1, heads=2, head_dim=16, dtype=torch.float32) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(batch, heads, n, head_dim, generator=generator).to(dtype) for _ in range(3)
    ]


def assert_same(q, k, v, graph, **options):
    found = lb.attention(q, k, v, graph, impl="flex", **options)
    exact = lb.attention(q.double(), k.double(), v.double(), graph, impl="reference", **options)
    allowed = 2e-5 if q.dtype == torch.float32 else 4 * torch.finfo(q.dtype).eps * v.abs().max()
    assert found.dtype == q.dtype
    assert (found.double() - exact).abs().max() <= allowed


def test_graphs(flex):
    for graph in (
        lb.bigbird(block=16),
        lb.Window(5, dilation=2) | lb.GlobalTokens([0, -1]),
        lb.Edges([(0, 5), (199, 2), (150, 150)]),
        lb.BlockWindow(3, block=84),
    ):
        assert_same(*inputs(200), graph)


def test_lengths_and_global_tokens(flex):
    marked = torch.zeros(3, 256, dtype=torch.bool)
    marked[0, 200] = marked[2, 3] = True
    lengths = torch.tensor([256, 0, 177])
    assert_same(*inputs(256, batch=3), lb.Window(20), lengths=lengths, global_tokens=marked)


def test_graphs_of_their_own(flex):
    graphs = [lb.Window(20), lb.bigbird(block=16), "Window(20)"]
    assert_same(*inputs(256, batch=3), graphs, lengths=torch.tensor([256, 256, 177]))
    assert_same(*inputs(256, batch=3), lambda n: lb.Window(n // 9), lengths=[256, 256, 177])


def test_packed(flex):
    q, k, v = (x[0].transpose(0, 1).contiguous() for x in inputs(330))
    graph = lb.bigbird(block=16)
    found = lb.attention_packed(q, k, v, graph, [0, 130, 330], impl="flex")
    exact = lb.attention_packed(q, k, v, graph, [0, 130, 330], impl="reference")
    torch.testing.assert_close(found, exact, atol=2e-5, rtol=0)


def test_relative_bias_scale_and_bfloat16(flex):
    bias = torch.randn(2, 9, generator=torch.Generator().manual_seed(1))
    q, k, v = inputs(200, dtype=torch.bfloat16)
    assert_same(q, k, v, lb.Window(9, dilation=2), relative_bias=bias, scale=0.3)


def test_refusals(flex):
    q, k, v = inputs(200)
    graph = lb.Window(3)
    leaf = q.clone().requires_grad_()
    bias = torch.zeros(2, 3, requires_grad=True)
    refused = {
        "backward": lambda: lb.attention(leaf, k, v, graph, impl="flex"),
        "log-sum-exp": lambda: lb.attention(q, k, v, graph, impl="flex", return_lse=True),
        "dropout": lambda: lb.attention(q, k, v, graph, impl="flex", dropout_p=0.1),
        "relative_bias": lambda: lb.attention(q, k, v, graph, impl="flex", relative_bias=bias),
        "float64": lambda: lb.attention(q.double(), k.double(), v.double(), graph, impl="flex"),
        "more than once": lambda: lb.attention(
            q, k, v, lb.LegacyBigBird("huggingface_eval", block=8, full_up_to=8), impl="flex"
        ),
    }
    for reason, call in refused.items():
        with pytest.raises(ValueError, match=reason):
            call()
    with torch.no_grad():
        assert torch.equal(
            lb.attention(leaf, k, v, graph, impl="flex"), lb.attention(q, k, v, graph, impl="flex")
        )
