"""Shapes of what models give, at any length."""

import pytest
import torch
from small_models import (
    ENCODERS,
    LEGACY,
    ROWS,
    VOCABULARY,
    WIDTH,
    WRITERS,
    N,
    assert_same,
    every_model,
    ids_of,
    inputs_of,
    model_of,
    run,
)

import longbird as lb


@every_model
def test_shapes_and_loss(family, name):
    model, inputs = model_of(family, name, num_labels=2), inputs_of(family, name)
    expected = {
        "Model": {"last_hidden_state": (ROWS, N, WIDTH), "pooler_output": (ROWS, WIDTH)},
        "ForPreTraining": {
            "prediction_logits": (ROWS, N, VOCABULARY),
            "seq_relationship_logits": (ROWS, 2),
        },
        "ForMaskedLM": {"logits": (ROWS, N, VOCABULARY)},
        "ForCausalLM": {"logits": (ROWS, N, VOCABULARY)},
        "ForMultipleChoice": {"logits": (ROWS, 2)},
        "ForQuestionAnswering": {"start_logits": (ROWS, N), "end_logits": (ROWS, N)},
        "ForSequenceClassification": {"logits": (ROWS, 2)},
        "ForTokenClassification": {"logits": (ROWS, N, 2)},
        "ForEmbedding": {"embeddings": (ROWS, WIDTH)},
        "Seq2SeqModel": {
            "last_hidden_state": (ROWS, 9, WIDTH),
            "encoder_last_hidden_state": (ROWS, N, WIDTH),
        },
        "ForConditionalGeneration": {"logits": (ROWS, 9, VOCABULARY)},
        "Seq2SeqForQuestionAnswering": {"start_logits": (ROWS, N), "end_logits": (ROWS, N)},
        "Seq2SeqForSequenceClassification": {"logits": (ROWS, 2)},
    }[name]
    without_mask = {key: x for key, x in inputs.items() if key != "attention_mask"}
    for given in (inputs, without_mask):
        output = run(model, **given)
        assert {key: tuple(output[key].shape) for key in expected} == expected
    if name not in ("Model", "Seq2SeqModel", "ForEmbedding"):
        output = run(model, **inputs_of(family, name, labels=True))
        assert {key: tuple(output[key].shape) for key in expected} == expected
        assert output.loss.ndim == 0
        assert output.loss.isfinite()


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("n", [1, 9, 28, 29, 41, 60])
def test_any_length(family, n):
    """Documents of any length, multiples of a block or not, short ones with full attention."""
    model = model_of(family, "Model")
    assert run(model, input_ids=ids_of(n=n)).last_hidden_state.shape == (ROWS, n, WIDTH)


@pytest.mark.parametrize("family", [*ENCODERS, *WRITERS])
def test_a_short_batch_changes_nothing(family):
    """A short batch must not switch the model, or its configuration, to full attention."""
    name = "Seq2SeqModel" if family in WRITERS else "Model"
    model, inputs = model_of(family, name), inputs_of(family, name)
    before, config = run(model, **inputs), model.config.to_dict()
    run(model, **{key: x[:, :9] for key, x in inputs.items()})
    assert_same(run(model, **inputs), before, atol=0, rtol=0)
    assert model.config.to_dict() == config


def test_short_documents_have_full_attention():
    sparse, full = (model_of("bigbird", "Model", graph=graph) for graph in (LEGACY, lb.Full()))
    for n, same in ((28, True), (29, False)):
        a, b = (run(model, input_ids=ids_of(n=n)).last_hidden_state for model in (sparse, full))
        assert torch.allclose(a, b, atol=1e-5) is same
