"""Steps with a cache give what the whole sequence gives."""

import pytest
import torch
from small_models import (
    N,
    assert_same,
    every_decoder,
    every_writer,
    ids_of,
    inputs_of,
    model_of,
    run,
)


@every_decoder
@pytest.mark.parametrize("steps", [[1] * 12, [3, 1, 5, 3], [12]], ids=["one", "some", "all"])
def test_cached_steps_of_a_causal_model(family, steps):
    model, ids = model_of(family, "ForCausalLM"), ids_of(n=32)
    expected = run(model, input_ids=ids, use_cache=False)
    assert expected.past_key_values is None
    output = run(model, input_ids=ids[:, :20])  # a cache is made without asking
    logits = [output.logits]
    for step in steps:
        seen = sum(x.shape[1] for x in logits)
        output = run(
            model, input_ids=ids[:, seen : seen + step], past_key_values=output.past_key_values
        )
        logits.append(output.logits)
    torch.testing.assert_close(torch.cat(logits, 1), expected.logits, atol=1e-4, rtol=1e-4)


@every_decoder
def test_cached_steps_after_left_padding(family):
    model, ids = model_of(family, "ForCausalLM"), ids_of(n=32)
    mask = torch.arange(32) >= torch.tensor([[0], [6], [13]])
    expected = run(model, input_ids=ids, attention_mask=mask, use_cache=False).logits
    output = run(model, input_ids=ids[:, :20], attention_mask=mask[:, :20], use_cache=True)
    for n in (21, 24, 32):
        seen = output.past_key_values.get_seq_length()
        output = run(
            model,
            input_ids=ids[:, seen:n],
            attention_mask=mask[:, :n],
            past_key_values=output.past_key_values,
        )
        torch.testing.assert_close(output.logits, expected[:, seen:n], atol=1e-4, rtol=1e-4)


@every_writer
@pytest.mark.parametrize("steps", [[1] * 5, [3, 2]], ids=["one", "some"])
def test_cached_steps_of_a_writer(family, steps):
    model = model_of(family, "ForConditionalGeneration")
    inputs = inputs_of(family, "ForConditionalGeneration")
    output_ids = inputs.pop("decoder_input_ids")
    output_mask = torch.arange(9) >= torch.tensor([[0], [2], [3]])
    for mask in (None, output_mask):
        masks = {} if mask is None else {"decoder_attention_mask": mask}
        whole = run(model, **inputs, decoder_input_ids=output_ids, use_cache=False, **masks)
        assert whole.past_key_values is None
        masks = {} if mask is None else {"decoder_attention_mask": mask[:, :4]}
        output = run(model, **inputs, decoder_input_ids=output_ids[:, :4], **masks)
        encoded = (output.encoder_last_hidden_state,)
        seen = 4
        for step in steps:
            masks = {} if mask is None else {"decoder_attention_mask": mask[:, : seen + step]}
            output = run(
                model,
                attention_mask=inputs["attention_mask"],
                encoder_outputs=encoded,
                decoder_input_ids=output_ids[:, seen : seen + step],
                past_key_values=output.past_key_values,
                **masks,
            )
            got, expected = output.logits, whole.logits[:, seen : seen + step]
            torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
            seen += step
        assert output.past_key_values.get_seq_length() == 9


@every_writer
def test_encoder_alone(family, tmp_path):
    """What the encoder gives alone, after a file too, is what the whole model makes of it."""
    model, inputs = model_of(family, "Seq2SeqModel"), inputs_of(family, "Seq2SeqModel")
    expected = run(model, **inputs)
    output_ids = inputs.pop("decoder_input_ids")
    encoder = model.get_encoder()
    encoded = run(encoder, **inputs)
    assert torch.equal(encoded[0], expected.encoder_last_hidden_state)
    given = run(
        model,
        attention_mask=inputs["attention_mask"],
        encoder_outputs=encoded,
        decoder_input_ids=output_ids,
    )
    assert torch.equal(given.last_hidden_state, expected.last_hidden_state)
    encoder.save_pretrained(tmp_path)
    loaded = type(encoder).from_pretrained(tmp_path)
    torch.testing.assert_close(run(loaded, **inputs)[0], encoded[0])


@every_writer
def test_decoder_alone(family, tmp_path):
    """The decoder runs without the rest of the model, with a cache, and after a file."""
    model, inputs = model_of(family, "Seq2SeqModel"), inputs_of(family, "Seq2SeqModel")
    expected = run(model, **inputs)
    decoder = model.get_decoder()
    read = {
        "encoder_hidden_states": expected.encoder_last_hidden_state,
        "encoder_attention_mask": inputs["attention_mask"],
    }
    ids = inputs["decoder_input_ids"]
    output = run(decoder, input_ids=ids, **read)
    torch.testing.assert_close(output.last_hidden_state, expected.last_hidden_state)
    first = run(decoder, input_ids=ids[:, :6], use_cache=True, **read)
    then = run(decoder, input_ids=ids[:, 6:], past_key_values=first.past_key_values, **read)
    torch.testing.assert_close(
        then.last_hidden_state, expected.last_hidden_state[:, 6:], atol=1e-4, rtol=1e-4
    )
    decoder.save_pretrained(tmp_path)
    loaded = type(decoder).from_pretrained(tmp_path)
    assert torch.equal(run(loaded, input_ids=ids, **read)[0], output[0])


@every_writer
def test_decoder_without_an_encoder(family):
    """A language model of its own: without an input there is no attention to it."""
    decoder, ids = model_of(family, "Seq2SeqModel").get_decoder(), ids_of(n=12)
    mask = torch.arange(12) >= torch.tensor([[0], [2], [5]])
    expected = run(decoder, input_ids=ids, attention_mask=mask).last_hidden_state
    first = run(decoder, input_ids=ids[:, :9], attention_mask=mask[:, :9], use_cache=True)
    cache = first.past_key_values
    then = run(decoder, input_ids=ids[:, 9:], attention_mask=mask, past_key_values=cache)
    got = then.last_hidden_state
    torch.testing.assert_close(got, expected[:, 9:], atol=1e-4, rtol=1e-4)


def test_a_graph_that_cannot_be_streamed():
    """It needs no cache to be evaluated or, slowly, to generate; and none is made up."""
    model, inputs = model_of("bigbird", "ForCausalLM"), inputs_of("bigbird", "ForCausalLM", True)
    output = run(model, **inputs)
    assert output.past_key_values is None
    assert output.loss.isfinite()
    assert_same(run(model, **inputs, use_cache=False), output, atol=0, rtol=0)
    with pytest.raises(ValueError, match="LegacyBigBird"):
        run(model, **inputs, use_cache=True)
    ids = inputs["input_ids"]
    got = model.generate(ids, max_new_tokens=2, do_sample=False, use_cache=False)
    assert torch.equal(got[:, N], run(model, input_ids=ids).logits[:, -1].argmax(-1))
