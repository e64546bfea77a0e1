"""`generate`: with a cache or without, alone or in a batch, from ids or from embeddings."""

import pytest
import torch
import transformers
from small_models import (
    DECODERS,
    HEADS,
    LAYERS,
    LENGTHS,
    ROWS,
    VOCABULARY,
    WIDTH,
    WRITER_CLASSES,
    WRITERS,
    assert_same,
    every_decoder,
    every_writer,
    ids_of,
    inputs_of,
    model_of,
    run,
)
from torch import Tensor, nn

GENERATORS = [*((f, "ForCausalLM") for f in DECODERS), *((f, WRITER_CLASSES[1]) for f in WRITERS)]
every_generator = pytest.mark.parametrize(("family", "name"), GENERATORS)
METHODS = {
    "greedy": {"do_sample": False},
    "sample": {"do_sample": True, "top_k": 10, "temperature": 0.7, "num_return_sequences": 2},
    "beams": {"num_beams": 3, "do_sample": False, "length_penalty": 2.0},
    "beam sample": {"num_beams": 2, "do_sample": True, "num_return_sequences": 2},
    "processors": {
        "repetition_penalty": 1.2,
        "bad_words_ids": [[1, 0]],
        "no_repeat_ngram_size": 2,
    },
}


def prompt_of(family):
    """A batch to generate from: padded on the left, or a text to read."""
    if family in WRITERS:
        inputs = inputs_of(family, "ForConditionalGeneration")
        del inputs["decoder_input_ids"]
        return inputs
    return {"input_ids": ids_of(n=17), "attention_mask": (torch.arange(17) >= LENGTHS // 9).long()}


def generate(model, prompt, new=6, **options):
    torch.manual_seed(0)
    return model.generate(
        **prompt,
        max_new_tokens=new,
        min_new_tokens=new,
        **{"return_dict_in_generate": True, "output_logits": True, **options},
    )


@every_generator
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_generation_with_and_without_cache(family, name, method):
    model, prompt = model_of(family, name), prompt_of(family)
    cached = generate(model, prompt, use_cache=True, **method)
    plain = generate(model, prompt, use_cache=False, **method)
    start = 1 if family in WRITERS else prompt["input_ids"].shape[1]
    rows = ROWS * method.get("num_return_sequences", 1)
    assert cached.sequences.shape == (rows, start + 6)
    assert cached.past_key_values is not None
    assert plain.get("past_key_values") is None
    assert torch.equal(cached.sequences, plain.sequences)
    assert_same(cached.logits, plain.logits, atol=1e-4, rtol=1e-4)


@every_generator
def test_generation_alone_as_in_a_batch(family, name):
    model, prompt = model_of(family, name), prompt_of(family)
    together = generate(model, prompt).sequences
    for row in range(ROWS):
        kept = prompt["attention_mask"][row] != 0
        alone = generate(model, {key: x[row : row + 1, kept] for key, x in prompt.items()})
        assert torch.equal(alone.sequences[0, -6:], together[row, -6:])


@every_generator
def test_generation_can_go_on(family, name):
    """From the cache of an earlier call, as from the beginning."""
    model, prompt = model_of(family, name), prompt_of(family)
    expected = generate(model, prompt, new=7)
    begun = generate(model, prompt, new=4)
    key = "decoder_input_ids" if family in WRITERS else "input_ids"
    prompt[key] = begun.sequences
    if family in DECODERS:
        prompt["attention_mask"] = nn.functional.pad(prompt["attention_mask"], (0, 4), value=1)
    else:  # without it, transformers gives the model the whole output again
        prompt["decoder_attention_mask"] = torch.ones_like(begun.sequences)
    ended = generate(model, prompt, new=3, past_key_values=begun.past_key_values)
    assert torch.equal(ended.sequences, expected.sequences)
    assert_same(begun.logits + ended.logits, expected.logits, atol=1e-4, rtol=1e-4)


@every_generator
def test_generation_reports_everything(family, name):
    model, prompt = model_of(family, name), prompt_of(family)
    asked = {"output_scores": True, "output_hidden_states": True, "output_attentions": True}
    output = generate(model, prompt, use_cache=False, **asked)
    assert [x.shape for x in output.scores] == [(ROWS, VOCABULARY)] * 6
    prefix = "decoder_" if family in WRITERS else ""
    start = 1 if family in WRITERS else prompt["input_ids"].shape[1]
    states, weights = output[f"{prefix}hidden_states"], output[f"{prefix}attentions"]
    assert len(states) == len(weights) == 6
    for step, (of_states, of_weights) in enumerate(zip(states, weights, strict=True)):
        n = start + step
        assert [x.shape for x in of_states] == [(ROWS, n, WIDTH)] * (LAYERS + 1)
        dense = [x if isinstance(x, Tensor) else x.dense(n) for x in of_weights]
        assert [x.shape for x in dense] == [(ROWS, HEADS, n, n)] * LAYERS
    if family in WRITERS:
        assert len(output.encoder_hidden_states) == LAYERS + 1
        assert len(output.encoder_attentions) == len(output.cross_attentions[0]) == LAYERS


@every_decoder
@pytest.mark.parametrize("beams", [1, 2])
def test_generation_from_embeddings(family, beams):
    model, prompt = model_of(family, "ForCausalLM"), prompt_of(family)
    expected = generate(model, prompt, num_beams=beams).sequences
    ids = prompt.pop("input_ids")
    embeddings = model.get_input_embeddings()(ids)
    got = generate(model, {**prompt, "inputs_embeds": embeddings}, num_beams=beams).sequences
    assert torch.equal(got, expected[:, ids.shape[1] :])


@every_decoder
def test_generation_with_given_positions(family):
    model, prompt = model_of(family, "ForCausalLM"), prompt_of(family)
    places = (prompt["attention_mask"].cumsum(1) - 1).clamp(min=0)
    expected = generate(model, prompt)
    got = generate(model, {**prompt, "position_ids": places})
    assert torch.equal(got.sequences, expected.sequences)
    assert_same(got.logits, expected.logits, atol=1e-4, rtol=1e-4)


@every_generator
def test_logits_of_the_last_tokens_alone(family, name):
    model, inputs = model_of(family, name), inputs_of(family, name)
    expected = run(model, **inputs).logits
    for kept in (0, 1, 3):
        got = run(model, **inputs, logits_to_keep=kept).logits
        torch.testing.assert_close(got, expected[:, -kept:], atol=1e-5, rtol=1e-5)


@every_generator
def test_generation_from_nothing(family, name):
    model = model_of(family, name)
    assert model.generate(do_sample=False, max_new_tokens=3).shape[0] == 1


@every_writer
def test_generation_with_a_draft(family):
    """Assisted decoding, and drafts copied from the prompt, change nothing."""
    model, other = (model_of(family, "ForConditionalGeneration", seed=seed) for seed in (0, 1))
    prompt = {key: x[:1] for key, x in prompt_of(family).items()}
    expected = generate(model, prompt, new=8).sequences
    for assistant in (model, other):
        assistant.generation_config.num_assistant_tokens = 2
        assistant.generation_config.num_assistant_tokens_schedule = "constant"
        assert torch.equal(
            generate(model, prompt, new=8, assistant_model=assistant).sequences, expected
        )
    lookup = generate(model, prompt, new=8, prompt_lookup_num_tokens=2).sequences
    assert torch.equal(lookup, expected)


@every_writer
def test_generation_in_half_precision(family):
    model, prompt = model_of(family, "ForConditionalGeneration").half(), prompt_of(family)
    assert generate(model, prompt, num_beams=2).sequences.shape == (ROWS, 7)
    assert generate(model, prompt, **METHODS["sample"]).sequences.shape == (2 * ROWS, 7)


@every_writer
def test_an_encoder_decoder_may_be_called_a_decoder(family):
    """transformers sets `is_decoder` on the whole model; its encoder stays an encoder."""
    prompt = prompt_of(family)
    expected = generate(model_of(family, "ForConditionalGeneration"), prompt)
    got = generate(model_of(family, "ForConditionalGeneration", is_decoder=True), prompt)
    assert torch.equal(got.sequences, expected.sequences)


@every_generator
def test_what_generation_is_given_reaches_the_model(family, name):
    model = model_of(family, name)
    given = {"output_attentions": True, "output_hidden_states": True, "another": 42}
    prepared = model.prepare_inputs_for_generation(input_ids=ids_of(n=3), **given)
    assert ("decoder_input_ids" if family in WRITERS else "input_ids") in prepared
    assert given.items() <= prepared.items()
    assert transformers.GenerationMixin in type(model).__bases__
