"""attention_weights: sparse rows that equal the dense probabilities."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs, multiset_graphs

import longbird as lb


def inputs(n, batch=2, heads=3, head_dim=8, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, batch, heads, n, head_dim, generator=generator, dtype=dtype).unbind()


def dense(q, k, graph, global_tokens=None, bias=None, scale=None):
    """Probabilities of one sequence [heads, n, head_dim] by the definition."""
    heads, n, head_dim = q.shape
    counts = torch.from_numpy(graph.counts(n, heads)).double()
    if global_tokens is not None:
        counts = counts.maximum((global_tokens[:, None] | global_tokens).double())
    scores = q.double() @ k.double().transpose(-1, -2) * (scale or head_dim**-0.5)
    if bias is not None:
        m, token = bias.shape[1] // 2, torch.arange(n)
        scores = scores + bias.double()[:, (token - token[:, None]).clamp(-m, m) + m]
    return (scores + counts.log()).softmax(-1).nan_to_num(0.0)


@given(
    data=st.data(),
    n=st.sampled_from([1, 15, 17, 65, 140]),
    multiset=st.booleans(),
    marked=st.booleans(),
)
def test_equals_dense(data, n, multiset, marked):
    graph = data.draw(multiset_graphs() if multiset else graphs(n))
    q, k = inputs(n)
    global_tokens = torch.rand(2, n, generator=torch.Generator().manual_seed(1)) < 0.1
    global_tokens = global_tokens if marked else None
    bias = torch.randn(3, 7, generator=torch.Generator().manual_seed(2))
    rows = data.draw(st.lists(st.integers(0, n - 1), max_size=5))
    found = lb.attention_weights(
        q, k, graph, rows, global_tokens=global_tokens, relative_bias=bias, scale=0.4
    )
    assert found.shape == (2, 3, len(rows))
    for row in range(2):
        chosen = None if global_tokens is None else global_tokens[row]
        expected = dense(q[row], k[row], graph, chosen, bias, 0.4)[:, rows]
        torch.testing.assert_close(found.dense(n)[row].double(), expected, atol=1e-5, rtol=0)


def test_rows_sum_to_one_and_name_their_keys():
    q, k = inputs(300)
    graph = lb.bigbird(block=16) | lb.GlobalTokens([5])
    found = lb.attention_weights(q, k, graph, rows=[0, 5, 150])
    mask = graph.mask(300, 3)
    for b in range(2):
        for head in range(3):
            for query in (0, 5, 150):
                keys, weights = found.row(b, head, query)
                assert keys.tolist() == mask[head, query].nonzero()[0].tolist()
                assert float(weights.sum()) == pytest.approx(1.0, abs=1e-6)
    assert found.queries.tolist() == [0, 5, 150]


def test_row_takes_a_token():
    q, k = inputs(300)
    graph = lb.Window(1)
    both = lb.attention_weights(q, k, graph, rows=[150, 7])
    assert both.row(1, 2, 7)[0].tolist() == [6, 7, 8]
    assert torch.equal(both.row(1, 2, 7)[1], both.dense(300)[1, 2, 1, 6:9])
    assert both.row(torch.tensor(1), np.int64(2), 150)[0].tolist() == [149, 150, 151]
    one_row = lb.attention_weights(q[1:], k[1:], graph, rows=[150, 7])
    no_batch = lb.attention_weights(q[1], k[1], graph, rows=[150, 7])
    for weights in (one_row, no_batch):
        assert torch.equal(weights.row(2, 7)[1], both.row(1, 2, 7)[1])
        assert torch.equal(weights.row(0, 2, 7)[1], both.row(1, 2, 7)[1])
    one_head = lb.attention_weights(q[:, 2:], k[:, 2:], graph, rows=[150, 7])
    assert torch.equal(one_head.row(1, 7)[1], both.row(1, 2, 7)[1])
    one = lb.attention_weights(q[1:, 2:], k[1:, 2:], graph)
    for index in ((7,), (0, 7), (0, 0, 7)):
        assert torch.equal(one.row(*index)[1], both.row(1, 2, 7)[1])

    wrong = {
        r"batch row \(of 2\), a head \(of 3\).*received row\(7\)": (both, (7,)),
        r"received row\(2, 7\)": (both, (2, 7)),
        r"received row\(0, 3, 7\)": (both, (0, 3, 7)),
        r"received row\(-1, 0, 7\)": (both, (-1, 0, 7)),
        r"received row\(0, 0, 0, 7\)": (both, (0, 0, 0, 7)),
        r"received row\(\)": (one, ()),
        r"received row\(1, 7\)": (one, (1, 7)),
        r"token 8, only of \[150, 7\]": (both, (0, 0, 8)),
        r"token -1, only of \[0 to 299\]": (one, (-1,)),
        r"token 300, only of \[0 to 299\]": (one, (300,)),
    }
    for message, (weights, index) in wrong.items():
        with pytest.raises(ValueError, match=message):
            weights.row(*index)
    for index in ((1.5,), (0, 0, "a"), (None, 7)):
        with pytest.raises(TypeError, match=r"row takes integers.*received row\("):
            one.row(*index)


def test_dense_has_room_for_every_key():
    q, k = inputs(20)
    weights = lb.attention_weights(q, k, lb.Edges([(0, 0), (0, 9), (1, 5)]), rows=[0, 1])
    wide = weights.dense(20)
    assert torch.equal(weights.dense(10), wide[..., :10])
    assert not wide[..., 10:].any()
    for n in (9, 8, 1, 0):
        with pytest.raises(ValueError, match=rf"key 9; received n = {n}"):
            weights.dense(n)
    with pytest.raises(ValueError, match="received -1"):
        weights.dense(-1)
    for n in (10.0, "10", None, True):
        with pytest.raises(TypeError, match="n must be an integer"):
            weights.dense(n)
    nothing = lb.attention_weights(q, k, lb.Edges([]), rows=[0])
    assert nothing.dense(0).shape == (*nothing.shape, 0)


def test_repr_is_short():
    q, k = inputs(300)
    found = lb.attention_weights(q, k, lb.Window(1), rows=[0, 5])
    assert repr(found) == "SparseRows(batch: 2, heads: 3, tokens: [0, 5], weights: 30)"
    every = lb.attention_weights(q[0], k[0], lb.Window(1))
    assert repr(every) == "SparseRows(heads: 3, tokens: [0 to 299], weights: 2694)"
    some = lb.attention_weights(q, k, lb.Window(1), rows=range(0, 300, 2))
    assert len(repr(some)) < 120
    assert repr(lb.attention_weights(q, k, lb.Window(1), rows=[])).count("tokens: []") == 1


def test_weights_times_values_is_attention():
    q, k = inputs(120)
    v = inputs(120)[1] + 1
    graph = lb.Window(9, dilation=3) | lb.GlobalTokens([4])
    found = lb.attention_weights(q, k, graph).dense(120) @ v
    expected = lb.attention(q, k, v, graph, impl="gather")
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_lengths_and_no_batch_axis():
    q, k = inputs(50)
    graph = lb.Window(2)
    found = lb.attention_weights(q, k, graph, rows=[0, 30, 45], lengths=[50, 31])
    assert found.row(1, 0, 30)[0].tolist() == [28, 29, 30]
    assert len(found.row(1, 0, 45)[0]) == 0
    empty = lb.attention_weights(q, k, graph, rows=[0], lengths=[0, 50])
    assert len(empty.row(0, 2, 0)[0]) == 0
    alone = lb.attention_weights(q[1, :, :31], k[1, :, :31], graph, rows=[0, 30])
    assert alone.shape == (3, 2)
    torch.testing.assert_close(alone.dense(31), found.dense(50)[1, :, :2, :31])
    marked = torch.zeros(50, dtype=torch.bool)
    marked[7] = True
    assert 7 in lb.attention_weights(q[0], k[0], graph, [40], global_tokens=marked).row(0, 40)[0]


def test_rows_without_keys():
    q, k = inputs(10)
    found = lb.attention_weights(q, k, lb.Edges([(1, 2)]), rows=[0, 1])
    assert len(found.row(0, 0, 0)[0]) == 0
    assert found.row(0, 0, 1)[1].tolist() == [1.0]
    assert lb.attention_weights(q, k, lb.Full(), rows=[]).shape == (2, 3, 0)


def test_differentiable():
    q, k = (x.clone().requires_grad_() for x in inputs(6, 1, 1, 2, torch.float64))

    def weights(q, k):
        return lb.attention_weights(q, k, lb.Window(2), rows=[0, 3]).weights

    assert torch.autograd.gradcheck(weights, (q, k))


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([-1], ValueError),
        ([50], ValueError),
        ([1.5], TypeError),
        ([[1]], TypeError),
        ("a", TypeError),
    ],
)
def test_bad_rows(rows, error):
    q, k = inputs(50)
    with pytest.raises(error, match="rows"):
        lb.attention_weights(q, k, lb.Window(2), rows=rows)


def test_bad_input():
    q, k = inputs(50)
    with pytest.raises(ValueError, match="49"):
        lb.attention_weights(q, k[:, :, :49], lb.Window(2), rows=[0])
    with pytest.raises(TypeError, match=r"q must be .* nested"):
        nested = torch.nested.nested_tensor([q[0, 0], k[0, 0]], layout=torch.jagged)
        lb.attention_weights(nested, nested, lb.Window(2))
    with pytest.raises(TypeError, match="graph"):
        lb.attention_weights(q, k, None, rows=[0])
    with pytest.raises(TypeError, match="k must be"):
        lb.attention_weights(q[0], None, lb.Window(2), rows=[0])
