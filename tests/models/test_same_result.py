"""The same result by another way: twice, alone or in a batch, ids or embeddings, tuple or dict."""

import pytest
import torch
import transformers
from small_models import (
    DECODERS,
    ENCODERS,
    LENGTHS,
    ROWS,
    WRITERS,
    N,
    assert_same,
    every_model,
    first_of,
    ids_of,
    inputs_of,
    model_of,
    run,
)
from torch import Tensor
from torch.nn.functional import one_hot


@every_model
def test_deterministic(family, name):
    model, inputs = model_of(family, name), inputs_of(family, name)
    assert_same(run(model, **inputs), run(model, **inputs), atol=0, rtol=0)


@every_model
def test_train_and_eval_agree_without_dropout(family, name):
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "use_cache": False}
    model, inputs = model_of(family, name, **none), inputs_of(family, name)
    assert_same(run(model, **inputs), run(model.train(), **inputs))


@every_model
def test_alone_as_in_a_batch(family, name):
    """Every row of a ragged batch gives what it gives alone, without its padding."""
    model = model_of(family, name, use_cache=False)
    inputs = inputs_of(family, name)
    asked = {"output_hidden_states": name != "ForMultipleChoice"}  # there, rows are choices
    together = run(model, **inputs, **asked)
    for row, length in enumerate(LENGTHS[:, 0].tolist()):
        if name == "ForMultipleChoice" and length < N:
            continue  # its choices are of two lengths
        alone = {
            key: x[row : row + 1, ..., : x.shape[-1] if "decoder" in key else length]
            for key, x in inputs.items()
        }
        single = run(model, **alone, **asked)
        for key, value in single.items():
            for a, b in zip(
                value if isinstance(value, tuple) else (value,),
                together[key] if isinstance(value, tuple) else (together[key],),
                strict=True,
            ):
                b = b[row : row + 1]
                if a.ndim > 1 and b.shape[1] != a.shape[1]:
                    b = b[:, : a.shape[1]]
                torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", [*ENCODERS, *DECODERS])
def test_padding_may_be_anywhere(family):
    """Left padding, or holes, as random masks of transformers' tests have."""
    name = "ForCausalLM" if family in DECODERS else "ForMaskedLM"
    model, ids = model_of(family, name, use_cache=False), ids_of()
    mask = torch.rand(ROWS, N, generator=torch.Generator().manual_seed(3)) < 0.6
    mask[1] = torch.arange(N) >= 20
    marks = {"global_attention_mask": one_hot(mask.int().argmax(1), N)}
    marks = marks if family == "longformer" else {}
    logits = run(model, input_ids=ids, attention_mask=mask, **marks).logits
    assert not logits[~mask].any()
    for row in range(ROWS):
        kept = mask[row]
        marked = {key: x[row : row + 1, kept] for key, x in marks.items()}
        alone = run(model, input_ids=ids[row : row + 1, kept], **marked).logits
        torch.testing.assert_close(logits[row, kept], alone[0], atol=1e-5, rtol=1e-5)


@every_model
def test_tuple_as_dict(family, name):
    labels = name not in ("Model", "Seq2SeqModel", "ForEmbedding")
    model, inputs = model_of(family, name), inputs_of(family, name, labels=labels)
    attentions = name.endswith("Model") and family != "etc"
    asked = {"output_hidden_states": True, "output_attentions": attentions}
    as_dict = run(model, **inputs, **asked, return_dict=True)
    as_tuple = run(model, **inputs, **asked, return_dict=False)
    assert isinstance(as_tuple, tuple)
    assert_same(as_tuple, as_dict.to_tuple(), atol=0, rtol=0)
    model.config.return_dict = False
    assert isinstance(run(model, **inputs), tuple)


@every_model
def test_embeddings_as_ids(family, name):
    model, inputs = model_of(family, name), inputs_of(family, name)
    if name.startswith("Seq2SeqFor"):
        inputs["decoder_input_ids"] = inputs["input_ids"]
    expected = run(model, **inputs)
    lookup = model.get_input_embeddings()
    with_embeddings = {key: x for key, x in inputs.items() if not key.endswith("input_ids")}
    with_embeddings["inputs_embeds"] = lookup(inputs["input_ids"])
    if family in WRITERS:
        with_embeddings["decoder_inputs_embeds"] = lookup(inputs["decoder_input_ids"])
    if name == "Seq2SeqForSequenceClassification":
        with pytest.raises(ValueError, match="input_ids must be given"):
            run(model, **with_embeddings)
        return
    if name == "ForQuestionAnswering" and family == "bigbird":
        # Where the question ends cannot be seen in embeddings: nothing can be hidden.
        model.config.qa_hides_question = False
        expected = run(model, **inputs)
    assert_same(run(model, **with_embeddings), expected)
    assert_same(run(model, input_ids=None, **with_embeddings), expected)


@every_model
def test_a_row_without_tokens(family, name):
    """It gives finite numbers, and does not disturb the other rows."""
    model, inputs = model_of(family, name, use_cache=False), inputs_of(family, name)
    inputs["attention_mask"][1] = 0
    others = {key: x[[0, 2]] for key, x in inputs.items()}
    asked = {"output_attentions": family != "etc" and name.endswith("Model")}
    if name == "Seq2SeqForSequenceClassification":
        with pytest.raises(ValueError, match=r"end token .* rows \[1\] have none"):
            run(model, **inputs)
        return
    output = run(model, **inputs, **asked)
    for key, value in run(model, **others).items():
        if isinstance(value, Tensor):
            assert output[key].isfinite().all()
            torch.testing.assert_close(output[key][[0, 2]], value, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ENCODERS)
def test_a_mask_of_ones_is_no_mask(family):
    model, ids = model_of(family, "Model"), ids_of()
    expected = run(model, input_ids=ids)
    for dtype in (torch.long, torch.bool, torch.float32):
        mask = torch.ones(ids.shape, dtype=dtype)
        assert_same(run(model, input_ids=ids, attention_mask=mask), expected, atol=0, rtol=0)


def test_feed_forward_in_pieces(monkeypatch):
    from longbird.models.layers.layer import FeedForward

    for family, name in (("bigbird", "ForMaskedLM"), ("led", "ForConditionalGeneration")):
        model, inputs = model_of(family, name), inputs_of(family, name)
        whole = first_of(run(model, **inputs))
        with monkeypatch.context() as patch:
            patch.setattr(FeedForward, "PIECE", 5)
            pieces = first_of(run(model, **inputs))
        torch.testing.assert_close(pieces, whole)


def cache_of(*values):
    cache = transformers.DynamicCache()
    for layer, value in enumerate(values):
        cache.update(torch.full((1, 1, 2, 3), value), torch.ones(1, 1, 2, 3), layer)
    return cache


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (torch.zeros(2), torch.ones(2)),
        (torch.zeros(2), None),
        ({"a": (torch.zeros(2),)}, {"a": (torch.ones(2),)}),
        ({"a": None}, {"b": None}),
        ([torch.zeros(2)], [torch.zeros(2)] * 2),
        (cache_of(1.0, 2.0), cache_of(1.0, 3.0)),
        (object(), object()),
    ],
    ids=["values", "none", "inside", "names", "lengths", "caches", "unknown"],
)
def test_what_differs_or_is_unknown_is_not_the_same(a, b):
    if type(a) is not object:
        assert_same(a, a)
    with pytest.raises((AssertionError, TypeError, ValueError)):
        assert_same(a, b)
