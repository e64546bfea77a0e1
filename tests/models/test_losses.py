"""Losses and gradients of every head, with checkpointing and dropout."""

from unittest import mock

import pytest
import torch
from small_models import (
    ENCODERS,
    MASK,
    ROWS,
    N,
    assert_same,
    every_decoder,
    every_loss,
    every_writer,
    ids_of,
    inputs_of,
    model_of,
    run,
)
from torch import nn
from torch.nn.functional import cross_entropy
from transformers.modeling_layers import GradientCheckpointingLayer

from longbird.models.losses import answer_loss


def training_model(family, name, **changes):
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "use_cache": False}
    return model_of(family, name, **{**none, **changes}).train()


def gradients_of(model, inputs):
    model.zero_grad()
    model(**inputs).loss.backward()
    return {
        key: parameter.grad.clone()
        for key, parameter in model.named_parameters()
        if parameter.grad is not None
    }


@every_loss
def test_training_with_and_without_checkpointing(family, name):
    """All parameters learn, and recomputing the layers gives the same gradients."""
    model, inputs = training_model(family, name), inputs_of(family, name, labels=True)
    expected = gradients_of(model, inputs)
    assert set(expected) == {key for key, _ in model.named_parameters()}
    assert all(gradient.isfinite().all() for gradient in expected.values())
    layer = next(m for m in model.modules() if isinstance(m, GradientCheckpointingLayer))
    for reentrant in (False, True):
        options = {"use_reentrant": reentrant}
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
        with mock.patch.object(layer, "forward", wraps=layer.forward) as forward:
            if reentrant:
                model.enable_input_require_grads()
            got = gradients_of(model, inputs)
            assert forward.call_count > 1
        assert_same(got, expected, atol=1e-5, rtol=1e-4)
        model.gradient_checkpointing_disable()
    model.disable_input_require_grads()


@every_loss
def test_dropout_is_seeded_by_torch(family, name):
    model = training_model(family, name, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    inputs = inputs_of(family, name, labels=True)
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(float(run(model, **inputs).loss))
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize(
    ("problem", "labels"),
    [
        ("multi_label_classification", torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])),
        ("single_label_classification", torch.tensor([0, 1, 1])),
        ("regression", torch.tensor([0.3, -1.0, 2.0])),
    ],
    ids=["several", "one", "number"],
)
def test_problem_types(family, problem, labels):
    count = 1 if problem == "regression" else 2
    name = "ForSequenceClassification"
    model = training_model(family, name, num_labels=count, problem_type=problem)
    output = model(**inputs_of(family, name), labels=labels)
    output.loss.backward()
    expected = {
        "multi_label_classification": nn.functional.binary_cross_entropy_with_logits,
        "single_label_classification": cross_entropy,
        "regression": lambda x, y: (x[:, 0] - y).square().mean(),
    }[problem](output.logits, labels)
    torch.testing.assert_close(output.loss, expected)


@pytest.mark.parametrize("name", ["ForMaskedLM", "ForTokenClassification"])
def test_labels_that_do_not_count(name):
    """-100, and whatever stands in the padding."""
    model, inputs = model_of("bigbird", name), inputs_of("bigbird", name, labels=True)
    inputs["labels"][:, 3:9] = -100
    output = run(model, **inputs)
    hidden = inputs["labels"].masked_fill(MASK == 0, -100)
    expected = cross_entropy(output.logits.flatten(0, 1), hidden.flatten())
    torch.testing.assert_close(output.loss, expected)


@every_loss
def test_where_no_label_counts(family, name):
    """The loss is 0 and so are all gradients, whoever counts the labels."""
    model, inputs = training_model(family, name), inputs_of(family, name, labels=True)
    for key, x in inputs.items():
        if "label" in key or "positions" in key:
            inputs[key] = torch.full_like(x, -100 if "label" in key else N)
    counted = (
        [{}, {"num_items_in_batch": 0}] if getattr(model, "accepts_loss_kwargs", False) else [{}]
    )
    for more in counted:
        assert model(**inputs, **more).loss == 0
        assert not any(x.any() for x in gradients_of(model, {**inputs, **more}).values())


@pytest.mark.parametrize("counting", [1, 2, 3])
def test_losses_are_those_of_torch_to_the_last_bit(counting):
    """Over any part of the labels."""
    labels, rows = torch.tensor([1, 0, 1]), torch.arange(ROWS)
    labels[rows >= counting] = -100
    name = "ForSequenceClassification"
    output = run(
        model_of("bigbird", name, num_labels=2), **inputs_of("bigbird", name), labels=labels
    )
    assert torch.equal(output.loss, cross_entropy(output.logits, labels))
    name, ends = "ForQuestionAnswering", torch.where(rows < counting, 5 + rows, N + 7)
    inputs = inputs_of("bigbird", name) | {"start_positions": ends, "end_positions": ends[:, None]}
    output = run(model_of("bigbird", name), **inputs)
    start, end = (
        cross_entropy(x, ends.clamp(max=N), ignore_index=N)
        for x in (output.start_logits, output.end_logits)
    )
    assert torch.equal(output.loss, (start + end) / 2)


@pytest.mark.parametrize("odd", [7.0, -1.0, -100.0, float("nan")])
def test_labels_of_several_classes_are_shares(odd):
    name = "ForSequenceClassification"
    model, inputs = model_of("bigbird", name, num_labels=2), inputs_of("bigbird", name)
    labels = torch.tensor([[0.0, 1.0], [0.3, 1.0], [0.0, odd]])
    with pytest.raises(ValueError, match=r"from 0\.0 to 1\.0, received"):
        model(**inputs, labels=labels)
    model = model_of("bigbird", "ForQuestionAnswering", supporting_sentences=True)
    sentences = {"sentence_positions": torch.zeros(3, 1, dtype=torch.long)}
    inputs = inputs_of("bigbird", "ForQuestionAnswering") | sentences
    with pytest.raises(ValueError, match="sentence_support must be from"):
        model(**inputs, sentence_support=labels[:, 1:])


def test_a_loss_function_of_the_user():
    for name in ("ForTokenClassification", "ForQuestionAnswering"):
        model = model_of("bigbird", name)
        model.loss_function = lambda logits, *_, **__: logits.sum() * 0 + 42
        assert model(**inputs_of("bigbird", name, labels=True)).loss == 42


@every_decoder
def test_causal_loss(family):
    """Every token is predicted from those before it; padding neither predicts nor is predicted."""
    model, inputs = model_of(family, "ForCausalLM"), inputs_of(family, "ForCausalLM")
    output = run(model, **inputs, labels=inputs["input_ids"])
    labels = inputs["input_ids"].masked_fill(MASK == 0, -100)
    expected = cross_entropy(output.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    torch.testing.assert_close(output.loss, expected)


@every_decoder
def test_labels_that_are_shifted_already(family):
    """`shift_labels`, which transformers gives where a sequence is split between machines."""
    model, ids = model_of(family, "ForCausalLM"), ids_of()
    following = nn.functional.pad(ids[:, 1:], (0, 1), value=-100)
    expected = run(model, input_ids=ids, labels=ids).loss
    got = run(model, input_ids=ids, labels=ids, shift_labels=following).loss
    torch.testing.assert_close(got, expected)


@every_writer
def test_loss_of_the_output_is_shifted_once(family):
    model = model_of(family, "ForConditionalGeneration")
    inputs = inputs_of(family, "ForConditionalGeneration", labels=True)
    inputs["labels"][1, 6:] = -100
    output = run(model, **inputs)
    expected = cross_entropy(output.logits.flatten(0, 1), inputs["labels"].flatten())
    torch.testing.assert_close(output.loss, expected)
    start, pad = model.config.decoder_start_token_id, model.config.pad_token_id
    shifted = torch.full_like(inputs["labels"], start)
    shifted[:, 1:] = inputs["labels"][:, :-1].masked_fill(inputs["labels"][:, :-1] == -100, pad)
    del inputs["decoder_input_ids"]
    by_labels = run(model, **inputs)
    del inputs["labels"]
    by_ids = run(model, **inputs, decoder_input_ids=shifted)
    torch.testing.assert_close(by_labels.logits, by_ids.logits)


def test_the_labels_of_one_call_say_nothing_about_the_next():
    model = model_of("bigbird", "ForSequenceClassification", num_labels=2)
    ids = torch.randint(5, 20, (3, 12))
    several = model(ids, labels=torch.ones(3, 2)).loss
    assert model.config.problem_type is None
    one = model(ids, labels=torch.tensor([0, 1, 1])).loss
    assert several.isfinite()
    assert one.isfinite()
    assert torch.equal(model(ids, labels=torch.ones(3, 2)).loss, several)


def test_ends_of_answers_that_do_not_count() -> None:
    torch.manual_seed(0)
    start, end = torch.randn(2, 3, 20)
    first = torch.tensor([4, 99, -100])
    expected = torch.nn.functional.cross_entropy(start[:1], first[:1])
    expected = (expected + torch.nn.functional.cross_entropy(end[:1], first[:1])) / 2
    torch.testing.assert_close(answer_loss(start, end, first, first), expected)
    for odd in (-1, -5):
        with pytest.raises(ValueError, match=f"start_positions must be .* received {odd}"):
            answer_loss(start, end, torch.tensor([4, odd, 0]), first)
