"""Edges of one example alone: the same as a model whose graph has them, for the document alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import longbird as lb

SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "sep_token_id": None,
}
N = 30
IDS = torch.randint(3, 50, (3, N), generator=torch.Generator().manual_seed(0))
MASK = torch.ones_like(IDS)
MASK[1, 20:] = 0
MASK[2, :7] = MASK[2, 27:] = MASK[2, 15] = 0
PAIRS = [[(0, 29), (29, 0), (4, 17)], [(19, 1)], [(8, 26), (26, 9), (14, 16), (20, 10)]]
"""In columns of the batch."""
GRAPHS = {
    "window": lb.Window(2),
    "bigbird": lb.bigbird(block=4, random=1),
    "layers": [lb.Window(1), lb.Window(3, dilation=2)],
}


def padded(pairs: list[Any]) -> Tensor:
    out = torch.full((len(pairs), max(map(len, pairs)) + 1, 2), -1)
    for row, each in zip(out, pairs, strict=True):
        row[: len(each)] = torch.tensor(each).reshape(-1, 2)
    return out


def twin(model: Any, pairs: Any) -> Any:
    """The same weights with the edges in the graph of every layer."""
    graphs = [graph | lb.Edges(pairs) for graph in model.config.layer_graphs]
    other = type(model)(type(model.config)(**{**model.config.to_dict(), "graph": graphs})).eval()
    other.load_state_dict(model.state_dict())
    return other


def tiny(model_class: Any = lb.LongbirdModel, **changes: Any) -> Any:
    torch.manual_seed(0)
    return model_class(
        model_class.config_class(**{**SIZES, "graph": lb.Window(2), **changes})
    ).eval()


def assert_as_alone(model: Any, name: str, found: Any, pairs: Any = PAIRS, **more: Tensor) -> None:
    for row, each in enumerate(pairs):
        kept = MASK[row] != 0
        rank = (kept.cumsum(0) - 1).tolist()
        own = twin(model, [(rank[i], rank[j]) for i, j in each])
        options = {key: x[row : row + 1, kept] for key, x in more.items()}
        alone = own(IDS[row : row + 1, kept], **options)
        torch.testing.assert_close(
            getattr(found, name)[row, kept], getattr(alone, name)[0], atol=2e-6, rtol=0
        )


@torch.no_grad()
@pytest.mark.parametrize("graph", GRAPHS)
def test_edges_of_each_document(graph, impl):
    model = tiny(graph=GRAPHS[graph], attention_impl=impl)
    found = model(IDS, MASK, edges=padded(PAIRS))
    assert_as_alone(model, "last_hidden_state", found)
    plain = model(IDS, MASK).last_hidden_state
    assert (found.last_hidden_state - plain).abs().max() > 1e-2


@torch.no_grad()
@pytest.mark.parametrize("variant", ["relative", "longformer", "etc", "global"])
def test_with_other_structure(variant):
    fields: dict[str, Any] = {
        "relative": {"positions": "none", "relative_buckets": 8},
        "longformer": {"global_projections": True},
        "etc": {"num_global_tokens": 4},
        "global": {},
    }[variant]
    more = {}
    if variant == "etc":
        more = {"segment_ids": torch.arange(N).expand(3, N) // 10}
    if variant in ("longformer", "global"):
        more = {"global_attention_mask": (torch.arange(N) == 12).long().expand(3, N)}
    model = tiny(**fields)
    found = model(IDS, MASK, edges=padded(PAIRS), **more)
    assert_as_alone(model, "last_hidden_state", found, **more)


def test_the_same_as_a_list():
    model = tiny()
    expected = model(IDS, MASK, edges=padded(PAIRS)).last_hidden_state
    forms = [np.array(PAIRS[0], np.int32), PAIRS[1], torch.tensor(PAIRS[2])]
    assert torch.equal(model(IDS, MASK, edges=forms).last_hidden_state, expected)
    some = model(IDS, MASK, edges=[None, PAIRS[1], []]).last_hidden_state
    plain = model(IDS, MASK).last_hidden_state
    assert torch.equal(some[1], expected[1])
    torch.testing.assert_close(some[[0, 2]], plain[[0, 2]])
    none = torch.full((3, 2, 2), -1)
    assert torch.equal(model(IDS, MASK, edges=none).last_hidden_state, plain)


def test_without_padding():
    model = tiny()
    found = model(IDS[:1], edges=padded(PAIRS[:1])).last_hidden_state
    expected = twin(model, PAIRS[0])(IDS[:1]).last_hidden_state
    torch.testing.assert_close(found, expected)


@torch.no_grad()
def test_attention_weights_show_them():
    model = tiny()
    rows = model(IDS, MASK, edges=padded(PAIRS), output_attentions=True).attentions[0]
    keys, _ = rows.row(0, 1, 4)
    assert keys.tolist() == [2, 3, 4, 5, 6, 17]
    assert rows.row(2, 0, 1)[0].tolist() == [0, 1, 2, 3, 18]  # columns 8 and 26, of a document


@torch.no_grad()
def test_a_causal_model():
    back = [[(29, 0), (17, 4)], [(19, 1)], [(26, 9)]]
    model = tiny(lb.LongbirdForCausalLM)
    found = model(IDS, MASK, edges=padded(back))
    assert found.past_key_values is None
    assert_as_alone(model, "logits", found, back)
    with pytest.raises(ValueError, match=r"document 0: in \(0, 29\) a token sees a later token"):
        model(IDS, MASK, edges=padded(PAIRS))
    with pytest.raises(ValueError, match="use use_cache=False"):
        model(IDS, MASK, edges=padded(back), use_cache=True)
    options = {"max_new_tokens": 4, "do_sample": False, "eos_token_id": None}
    written = model.generate(IDS, edges=padded(back), use_cache=False, **options)
    text = IDS
    mask = torch.ones_like(IDS)
    for _ in range(4):
        logits = model(text, mask, edges=padded(back)).logits[:, -1]
        text = torch.cat([text, logits.argmax(-1, keepdim=True)], 1)
        mask = torch.ones_like(text)
    assert torch.equal(written, text)


@torch.no_grad()
def test_an_encoder_decoder():
    model = tiny(lb.LongbirdForConditionalGeneration, max_decoder_positions=16, eos_token_id=None)
    given = {"edges": padded(PAIRS[:1])}
    found = model(IDS[:1], decoder_input_ids=IDS[:1, :5], **given).logits
    expected = twin(model, PAIRS[0])(IDS[:1], decoder_input_ids=IDS[:1, :5]).logits
    torch.testing.assert_close(found, expected)
    written = model.generate(IDS[:1], num_beams=2, max_new_tokens=5, **given)
    assert torch.equal(
        written, twin(model, PAIRS[0]).generate(IDS[:1], num_beams=2, max_new_tokens=5)
    )


def test_gradients():
    found, expected = [], []
    model = tiny(lb.LongbirdForMaskedLM)
    model(IDS[:1], labels=IDS[:1], edges=padded(PAIRS[:1])).loss.backward()
    other = twin(model, PAIRS[0])
    other(IDS[:1], labels=IDS[:1]).loss.backward()
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        found.append(a.grad)
        expected.append(b.grad)
    torch.testing.assert_close(found, expected)


def test_choices_and_other_heads():
    ids = IDS[None, :2]
    model = tiny(lb.LongbirdForMultipleChoice)
    each = torch.tensor([[[[0, 29]], [[5, 20]]]])  # [batch, choices, e, 2]
    both = model(ids, edges=each).logits
    for number in range(2):
        alone = model(ids[:, number : number + 1], edges=each[:, number : number + 1]).logits
        torch.testing.assert_close(both[:, number], alone[:, 0])
    for head in (
        "SequenceClassification",
        "TokenClassification",
        "QuestionAnswering",
        "Embedding",
    ):
        model = tiny(getattr(lb, f"LongbirdFor{head}"))
        with_edges, without = model(IDS, edges=padded(PAIRS))[0], model(IDS)[0]
        assert not torch.equal(with_edges, without), head


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        (padded(PAIRS)[:2], "each of 3 documents, received 2"),
        (padded(PAIRS)[0], r"edges must be \[batch, e, 2\]"),
        ([[(0, 30)], [], []], r"document 0 .*0 to 29.*received \(0, 30\)"),
        ([[(0, -1)], [], []], r"received \(0, -1\)"),
        ([[], [(0, 25)], []], r"document 1 must join tokens, and one .* of \(0, 25\) is padding"),
        ([[0, 1], [], []], "must be pairs"),
    ],
)
def test_edges_that_cannot_be(edges, said):
    with pytest.raises(ValueError, match=said):
        tiny()(IDS, MASK, edges=edges)


def test_edges_that_are_no_integers():
    with pytest.raises(TypeError, match="must be integers, received float32"):
        tiny()(IDS, MASK, edges=padded(PAIRS).float())


def test_edges_are_not_exported():
    with pytest.raises(ValueError, match=r"put Edges\(\.\.\.\) into the graph"):
        torch.export.export(tiny(), (IDS,), {"edges": padded(PAIRS)})
