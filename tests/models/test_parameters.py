"""Weights of a model: how they start, which are tied, and what replaces them."""

import pytest
import torch
from small_models import (
    VOCABULARY,
    WIDTH,
    assert_same,
    class_of,
    config_of,
    every_lm,
    every_model,
    first_of,
    inputs_of,
    model_of,
    run,
)
from torch import nn


@every_model
def test_initialisation(family, name):
    """Weights around 0 as wide as the configuration says, norms 1, biases 0; as from `meta`."""
    model = class_of(name)(config_of(family, initializer_range=1e-10))
    for key, parameter in model.named_parameters():
        is_norm = "norm" in key and key.endswith("weight")
        torch.testing.assert_close(
            parameter, torch.full_like(parameter, float(is_norm)), atol=1e-8, rtol=0
        )
    with torch.device("meta"):
        empty = class_of(name)(config_of(family, initializer_range=1e-10))
    empty.to_empty(device="cpu").init_weights()
    assert_same(empty.state_dict(), model.state_dict(), atol=1e-8, rtol=0)
    assert_same(dict(empty.named_buffers()), dict(model.named_buffers()), atol=0, rtol=0)
    run(empty.eval(), **inputs_of(family, name))


@every_lm
def test_tied_weights(family, name, tmp_path):
    model = model_of(family, name)
    given, taken = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    assert given is taken
    model.save_pretrained(tmp_path)
    loaded = class_of(name).from_pretrained(tmp_path)
    assert loaded.get_input_embeddings().weight is loaded.get_output_embeddings().weight
    untied = model_of(family, name, tie_word_embeddings=False)
    assert not torch.equal(
        untied.get_input_embeddings().weight, untied.get_output_embeddings().weight
    )
    untied.save_pretrained(tmp_path)
    loaded = class_of(name).from_pretrained(tmp_path)
    assert_same(loaded.state_dict(), untied.state_dict(), atol=0, rtol=0)


@every_lm
@pytest.mark.parametrize("tied", [True, False])
def test_resized_vocabulary(family, name, tied):
    model = model_of(family, name, tie_word_embeddings=tied)
    inputs = inputs_of(family, name)
    kind = type(model.get_input_embeddings())
    before = model.get_input_embeddings().weight.clone()
    expected = first_of(run(model, **inputs))
    for size in (VOCABULARY + 10, VOCABULARY):
        embeddings = model.resize_token_embeddings(size)
        assert embeddings is model.get_input_embeddings()
        assert type(embeddings) is kind
        assert model.config.vocab_size == size == embeddings.num_embeddings
        assert torch.equal(embeddings.weight[:VOCABULARY], before)
        output = model.get_output_embeddings()
        assert output.weight.shape == (size, WIDTH)
        assert output.out_features == size
        assert (output.weight is embeddings.weight) is tied
        changed = inputs | {"input_ids": inputs["input_ids"].clone()}
        if size > VOCABULARY:
            changed["input_ids"][:, 5] = size - 1
        logits = first_of(run(model, **changed))
        assert logits.shape[-1] == size
    torch.testing.assert_close(logits, expected)
    assert model.resize_token_embeddings(pad_to_multiple_of=16).num_embeddings == 64


@every_model
def test_embeddings_can_be_replaced(family, name):
    model = model_of(family, name)
    assert isinstance(model.get_input_embeddings(), nn.Embedding)
    other = nn.Embedding(VOCABULARY, WIDTH)
    model.set_input_embeddings(other)
    assert model.get_input_embeddings() is other
    assert (model.base_model is model) == name.endswith("Model")
    assert model.main_input_name == "input_ids"
