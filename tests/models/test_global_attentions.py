"""What global tokens look at: as transformers gives it for Longformer and LED; BigBird-ETC."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_etc import GRAPHS, HEADS, MOST, VARIANTS, batch, documents_alone, looped_attention, tiny
from theirs import configuration, theirs_of
from torch import Tensor

import longbird as lb

CLOSE = {"atol": 2e-6, "rtol": 0}


# ---- Longformer and LED ----

N = 24
IDS = torch.randint(10, 100, (3, N), generator=torch.Generator().manual_seed(0))
MASK = (torch.arange(N) < torch.tensor([[N], [19], [N]])).long()
MARKED = torch.zeros_like(IDS)
MARKED[0, [0, 3, 17]] = MARKED[1, [2, 5]] = 1  # and none in the third document


def assert_same_weights(found: Any, expected: Any, mask: Tensor, marked: Tensor) -> None:
    """Theirs has something for global tokens that a document has not; ours has zeros."""
    assert len(found) == len(expected) == 2
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape == (len(mask), 2, N, int(marked.sum(1).max()))
        for row, count in enumerate(marked.sum(1).tolist()):
            one = ours[row, ..., :count]
            torch.testing.assert_close(one, theirs[row, ..., :count], **CLOSE)
            torch.testing.assert_close(one.sum(1), torch.ones(2, count), atol=1e-5, rtol=0)
            assert not ours[row, ..., count:].any()
            assert not ours[row, :, mask[row] == 0].any()


LONGFORMER_HEADS = [
    "LongbirdModel", "LongbirdForMaskedLM", "LongbirdForSequenceClassification",
    "LongbirdForTokenClassification", "LongbirdForQuestionAnswering",
]  # fmt: skip


@torch.no_grad()
@pytest.mark.parametrize("head", LONGFORMER_HEADS)
def test_longformer(head, tmp_path):
    theirs = theirs_of("longformer", head, configuration("longformer", head))
    theirs.save_pretrained(tmp_path)
    ours = getattr(lb, head).from_pretrained(tmp_path)
    inputs = {"attention_mask": MASK, "global_attention_mask": MARKED, "output_attentions": True}
    expected, found = theirs(IDS, **inputs), ours(IDS, **inputs)
    assert_same_weights(found.global_attentions, expected.global_attentions, MASK, MARKED)
    assert len(found.attentions) == 2
    # As in theirs, there are none without global tokens, or without being asked for.
    inputs["global_attention_mask"] = torch.zeros_like(IDS)
    assert theirs(IDS, **inputs).global_attentions is None
    assert ours(IDS, **inputs).global_attentions is None
    assert ours(IDS, global_attention_mask=MARKED).global_attentions is None


@torch.no_grad()
def test_longformer_with_padding_before(tmp_path):
    """In columns of the batch, wherever a document stands in its row."""
    theirs = theirs_of("longformer", "LongbirdModel", configuration("longformer"))
    theirs.save_pretrained(tmp_path)
    ours = lb.LongbirdModel.from_pretrained(tmp_path)
    asked = {"output_attentions": True}
    right = ours(IDS, MASK, global_attention_mask=MARKED, **asked).global_attentions
    mask, marked, ids = MASK.clone(), MARKED.clone(), IDS.clone()
    for row, shift in ((1, 5),):
        mask[row], marked[row], ids[row] = (x[row].roll(shift) for x in (MASK, MARKED, IDS))
    left = ours(ids, mask, global_attention_mask=marked, **asked).global_attentions
    for a, b in zip(left, right, strict=True):
        torch.testing.assert_close(a[1].roll(-5, 1), b[1], **CLOSE)
        torch.testing.assert_close(a[[0, 2]], b[[0, 2]], **CLOSE)


@torch.no_grad()
@pytest.mark.parametrize(
    "head",
    ["Seq2SeqModel", "ForConditionalGeneration", "Seq2SeqForQuestionAnswering"],
)
def test_led(head, tmp_path):
    head = f"Longbird{head}"
    theirs = theirs_of("led", head, configuration("led", head))
    theirs.save_pretrained(tmp_path)
    ours = getattr(lb, head).from_pretrained(tmp_path)
    inputs = {"attention_mask": MASK, "global_attention_mask": MARKED, "output_attentions": True}
    expected, found = theirs(IDS, **inputs), ours(IDS, **inputs)
    weights = found.encoder_global_attentions, expected.encoder_global_attentions
    assert_same_weights(*weights, MASK, MARKED)
    assert set(expected) - {"encoder_attentions"} == set(found) - {"encoder_attentions"}


def test_global_attentions_have_gradients():
    config = lb.LongbirdConfig(
        vocab_size=120,
        hidden_size=32,
        num_attention_heads=2,
        num_hidden_layers=1,
        graph=lb.longformer(8),
        global_projections=True,
    )
    model = lb.LongbirdModel(config)
    out = model(IDS, global_attention_mask=MARKED, output_attentions=True)
    out.global_attentions[0].square().sum().backward()
    attention: Any = model.layers[0].attention
    assert attention.query_global.weight.grad.any()
    assert attention.key_global.weight.grad.any()


# ---- BigBird-ETC ----


@torch.no_grad()
@pytest.mark.parametrize("segments", [True, False], ids=["segments", "fixed"])
@pytest.mark.parametrize("variant", ["shared", "projections", "pre-norm"])
@pytest.mark.parametrize("graph", ["bigbird", "window", "layers"])
def test_etc(graph, variant, segments):
    """Rows and keys below n are text; n + i is global token i, with n the columns of the batch."""
    model = tiny(graph=GRAPHS[graph], **VARIANTS[variant])
    inputs = batch()
    if not segments:
        del inputs["segment_ids"]
    seen: list[Tensor] = []
    for layer in model.layers:
        layer.attention.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    out = model(**inputs, output_attentions=True)
    n, most = 23, (4 if segments else MOST)
    assert out.global_attentions is None
    tokens = int(inputs["attention_mask"].sum())
    for layer, rows in enumerate(out.attentions):
        assert rows.shape == (3, HEADS, n + most)
        dense = rows.dense(n + most)
        first, first_added = 0, tokens
        for row, (ids, its) in enumerate(documents_alone(inputs)):
            length = len(ids)
            g = MOST if its is None else max(1, 1 + max(its.tolist(), default=-1))
            x = torch.cat(
                [seen[layer][first : first + length], seen[layer][first_added : first_added + g]]
            )
            first, first_added = first + length, first_added + g
            mask = model.config.layer_graphs[layer].mask(length, heads=HEADS)
            expected = torch.zeros(HEADS, length + g, length + g, dtype=x.dtype)
            looped_attention(model.layers[layer], x, g, its, mask, None, expected)
            kept = torch.cat([torch.arange(length), n + torch.arange(g)])
            found = dense[row][:, kept][:, :, kept]
            torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)
            assert dense[row].sum() == pytest.approx(HEADS * (length + g))  # nothing elsewhere
        starts = torch.zeros(len(rows.keys) + 1, dtype=torch.bool)
        starts[rows.row_ptr] = True
        assert (rows.keys.diff()[~starts[1:-1]] > 0).all()


def test_etc_attentions_by_row_and_with_gradients():
    model, inputs = tiny(), batch()
    rows = model(**inputs, output_attentions=True).attentions[0]
    keys, weights = rows.row(0, 1, 23)  # the first global token of the first document
    assert keys.tolist() == [*range(23), 23, 24, 25, 26]
    assert weights.sum().item() == pytest.approx(1.0)
    rows.weights.square().sum().backward()
    attention: Any = model.layers[0].attention
    assert attention.query.weight.grad.any()
    assert attention.label_embedding.weight.grad.any()


@torch.no_grad()
def test_asking_changes_nothing():
    model, inputs = tiny(dtype=torch.float32), batch()
    asked = model(**inputs, output_attentions=True)
    assert torch.equal(asked.last_hidden_state, model(**inputs).last_hidden_state)
