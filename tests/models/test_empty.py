"""Batches without documents, and documents without tokens."""

import pytest
import torch
from small_models import (
    ROWS,
    VOCABULARY,
    WIDTH,
    every_decoder,
    every_loss,
    every_model,
    ids_of,
    inputs_of,
    model_of,
    run,
)
from torch import Tensor

NEED_A_TOKEN = ("ForPreTraining", "ForMultipleChoice", "ForSequenceClassification", "ForEmbedding")


@every_model
def test_a_batch_without_documents(family, name):
    """Every output is as it would be for more of them, without rows."""
    model, inputs = model_of(family, name), inputs_of(family, name)
    asked = {"output_hidden_states": True, "output_attentions": True}
    whole = run(model, **inputs, **asked)
    for mask in ({}, {"attention_mask": None}):
        output = run(model, **{key: x[:0] for key, x in inputs.items()} | mask, **asked)
        assert {key for key in whole if "global_attentions" not in key} == output.keys()
        for key, x in whole.items():
            if isinstance(x, Tensor) and key != "global_hidden_state":
                assert output[key].shape == (0, *x.shape[1:])


@every_loss
def test_a_loss_without_documents(family, name):
    inputs = {key: x[:0] for key, x in inputs_of(family, name, labels=True).items()}
    loss = model_of(family, name)(**inputs).loss
    loss.backward()
    assert loss == 0


@pytest.mark.parametrize(("labels", "kind"), [(1, torch.float32), (3, torch.float32)])
def test_a_loss_of_numbers_without_documents(labels, kind):
    model = model_of("bigbird", "ForSequenceClassification", num_labels=labels)
    assert model(ids_of()[:0], labels=torch.zeros(0, labels, dtype=kind)).loss == 0


@every_model
def test_documents_without_tokens(family, name):
    """Nothing for each token; an error where a whole document is judged by a token of it."""
    model = model_of(family, name)
    inputs = {key: x[..., :0] for key, x in inputs_of(family, name).items()}
    if name == "Seq2SeqForSequenceClassification":
        with pytest.raises(ValueError, match=r"an end token .* rows \[0, 1, 2\] have none"):
            run(model, **inputs)
    elif name in NEED_A_TOKEN and (family != "etc" or name == "ForEmbedding"):
        with pytest.raises(ValueError, match="at least one token, received none in rows 0 to"):
            run(model, **inputs)
    else:
        output = run(model, **inputs)
        assert all(x.isfinite().all() for x in output.values() if isinstance(x, Tensor))
        first = next(iter(output.values()))
        assert name in NEED_A_TOKEN or first.shape[:2] == (ROWS, 0)


def test_questions_about_documents_without_tokens():
    for fields, asked in (
        ({"num_answer_types": 2}, {}),
        ({"supporting_sentences": True}, {"sentence_positions": ids_of()[:, :1]}),
    ):
        model = model_of("bigbird", "ForQuestionAnswering", **fields)
        with pytest.raises(ValueError, match="at least one token"):
            run(model, input_ids=ids_of()[:, :0], **asked)


def test_rows_without_choices():
    model = model_of("bigbird", "ForMultipleChoice")
    assert run(model, input_ids=ids_of()[:, None][:, :0]).logits.shape == (ROWS, 0)


@every_decoder
def test_a_cache_before_the_first_token(family):
    """Nothing is read, then the tokens, then nothing again: as if they were read at once."""
    model, ids = model_of(family, "ForCausalLM"), ids_of()
    expected = run(model, input_ids=ids, use_cache=False).logits
    cache, logits = None, []
    for start, end in ((0, 0), (0, 20), (20, 20), (20, 43)):
        out = run(model, input_ids=ids[:, start:end], past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        logits.append(out.logits)
    assert logits[0].shape == (ROWS, 0, VOCABULARY)
    torch.testing.assert_close(torch.cat(logits, 1), expected, atol=1e-5, rtol=1e-5)


def test_the_first_token_of_nothing_is_zeros():
    """As that of a row of padding, so that a document is the same alone and in a batch."""
    model = model_of("bigbird", "Model")
    mask = torch.zeros(2, 5)
    mask[0] = 1
    padded = run(model, input_ids=ids_of(2, 5), attention_mask=mask).pooler_output[1:]
    alone = run(model, input_ids=ids_of(1, 0)).pooler_output
    assert alone.shape == (1, WIDTH)
    assert torch.equal(alone, padded)
