"""Hidden states, attention weights and their gradients, as a caller sees them."""

import pytest
import torch
from small_models import (
    CASES,
    DECODERS,
    HEADS,
    LAYERS,
    LENGTHS,
    ROWS,
    SIZES,
    WIDTH,
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
from torch.nn.functional import one_hot


@every_model
def test_hidden_states(family, name):
    asked = {"output_hidden_states": True}
    by_config = name.endswith("Model")
    model = model_of(family, name, **(asked if by_config else {}))
    inputs = inputs_of(family, name)
    output = run(model, **inputs, **({} if by_config else asked))
    rows = 2 * ROWS if name == "ForMultipleChoice" else ROWS
    written = N if name.startswith("Seq2SeqFor") else 9
    sides = {"encoder_": N, "decoder_": written} if family in WRITERS else {"": N}
    for side, length in sides.items():
        states = output[f"{side}hidden_states"]
        assert len(states) == LAYERS + 1
        assert all(x.shape == (rows, length, WIDTH) for x in states)
    if name in ("Model", "Seq2SeqModel"):
        last = output[f"{'decoder_' if family in WRITERS else ''}hidden_states"][-1]
        assert torch.equal(last, output.last_hidden_state)
    plain = run(model, **inputs, output_hidden_states=False)
    assert not any("hidden_states" in key for key in plain)


@pytest.mark.parametrize(("family", "name"), [c for c in CASES if c[0] != "etc"])
def test_attentions(family, name):
    """Rows sum to 1 where there is a token, and look at tokens of their own document alone."""
    asked = {"output_attentions": True}
    by_config = name.endswith("Model")
    model = model_of(family, name, **(asked if by_config else {}))
    inputs = inputs_of(family, name)
    output = run(model, **inputs, **({} if by_config else asked))
    expected = run(model, **inputs, output_attentions=False)
    assert not any("attentions" in key for key in expected)
    assert_same(first_of(output), first_of(expected), atol=1e-5, rtol=1e-5)
    lengths = LENGTHS[:, 0].tolist()
    if name == "ForMultipleChoice":
        lengths = [length for pair in zip(lengths, lengths[::-1], strict=True) for length in pair]
    sparse = output["encoder_attentions" if family in WRITERS else "attentions"]
    assert len(sparse) == LAYERS
    for layer in sparse:
        weights = layer.dense(N)
        assert weights.shape == (len(lengths), HEADS, N, N)
        for row, length in zip(weights, lengths, strict=True):
            torch.testing.assert_close(row[:, :length].sum(-1), torch.ones(HEADS, length))
            assert not row[:, length:].any()
            assert not row[..., length:].any()
    if family in WRITERS:
        written = N if name.startswith("Seq2SeqFor") else 9
        for key, keys in (("decoder_attentions", written), ("cross_attentions", N)):
            assert [x.shape for x in output[key]] == [(ROWS, HEADS, written, keys)] * LAYERS
            for x in output[key]:
                torch.testing.assert_close(x.sum(-1), torch.ones(ROWS, HEADS, written))
    if family in DECODERS:
        assert not sparse[0].dense(N).triu(1).any()


@pytest.mark.parametrize("family", ["longformer", "led"])
def test_global_tokens_see_and_are_seen(family):
    name = "Seq2SeqModel" if family in WRITERS else "Model"
    model, inputs = model_of(family, name), inputs_of(family, name)
    inputs["global_attention_mask"] = one_hot(torch.tensor([7, 8, 9]), N)
    output = run(model, **inputs, output_attentions=True)
    key = "encoder_attentions" if family in WRITERS else "attentions"
    for layer in output[key]:
        for row, (place, length) in enumerate(zip((7, 8, 9), (N, 30, 11), strict=True)):
            weights = layer.dense(N)[row, :, :length, :length]
            assert (weights[:, place] > 0).all()
            assert (weights[:, :, place] > 0).all()
    without = {k: x for k, x in inputs.items() if k != "global_attention_mask"}
    changed = first_of(run(model, **without)) - first_of(output)
    assert changed.abs().amax((1, 2)).min() > 1e-3


def test_each_task_of_longformer_has_its_global_tokens():
    ids = ids_of()
    ids[:, [4, 5, N - 1]] = SIZES["sep_token_id"]
    column = torch.arange(N).expand(ROWS, N)
    for name, expected in (
        ("ForSequenceClassification", column == 0),
        ("ForQuestionAnswering", column < 4),
        ("ForMultipleChoice", column > 5),
        ("ForTokenClassification", None),
        ("ForMaskedLM", None),
    ):
        model = model_of("longformer", name)
        shape = (lambda x: x[:, None]) if name == "ForMultipleChoice" else (lambda x: x)
        marks = {} if expected is None else {"global_attention_mask": shape(expected.long())}
        assert_same(
            run(model, input_ids=shape(ids)),
            run(model, input_ids=shape(ids), **marks),
            rtol=0,
            atol=0,
        )


@every_model
def test_gradients_reach_hidden_states_and_embeddings(family, name):
    model, inputs = model_of(family, name), inputs_of(family, name)
    model.enable_input_require_grads()
    first_of(model(**inputs)).square().sum().backward()
    gradient = model.get_input_embeddings().weight.grad
    assert gradient.isfinite().all()
    assert gradient.any()
    model.disable_input_require_grads()
