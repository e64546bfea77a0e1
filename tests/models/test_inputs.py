"""Inputs of other types, shapes and devices: each is named, with what was expected."""

import pytest
import torch
import transformers
from small_models import ROWS, WIDTH, N, assert_same, ids_of, inputs_of, model_of, run

import longbird as lb

IDS, STATES = ids_of(), torch.randn(ROWS, 7, WIDTH, generator=torch.Generator().manual_seed(0))
OUTPUT = ids_of(n=9)


def decoder():
    return model_of("window", "ForCausalLM", is_decoder=True, add_cross_attention=True)


def writer():
    return model_of("pegasus", "ForConditionalGeneration")


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16, torch.float16])
def test_states_of_another_precision(kind):
    """They are taken in the precision of the model."""
    for model, name, given, more in (
        (model_of("bigbird", "Model"), "inputs_embeds", torch.randn(ROWS, N, WIDTH), {}),
        (decoder(), "encoder_hidden_states", STATES, {"input_ids": IDS}),
        (writer(), "decoder_inputs_embeds", STATES, {"input_ids": IDS}),
    ):
        expected = run(model, **more, **{name: given.to(kind).float()})
        assert_same(run(model, **more, **{name: given.to(kind)}), expected, atol=0, rtol=0)
    given = {"decoder_input_ids": OUTPUT}
    expected = run(writer(), encoder_outputs=(STATES.to(kind).float(),), **given).logits
    assert torch.equal(run(writer(), encoder_outputs=(STATES.to(kind),), **given).logits, expected)


@pytest.mark.parametrize("kind", [torch.int64, torch.bool, torch.complex64])
def test_states_that_are_not_floats(kind):
    for model, name, more in (
        (model_of("bigbird", "Model"), "inputs_embeds", {}),
        (decoder(), "encoder_hidden_states", {"input_ids": IDS}),
        (writer(), "decoder_inputs_embeds", {"input_ids": IDS}),
    ):
        with pytest.raises(TypeError, match=f"{name} must be floating-point numbers .* {kind}"):
            model(**more, **{name: STATES.to(kind)})


@pytest.mark.parametrize(
    "name",
    ["attention_mask", "global_attention_mask", "token_type_ids", "position_ids", "segment_ids"],
)
def test_an_input_on_another_device(name):
    given = torch.zeros(IDS.shape, dtype=torch.long, device="meta")
    for family in ("bigbird", "longformer", "etc"):
        with pytest.raises(ValueError, match=f"{name} must be on the device of input_ids, cpu"):
            model_of(family, "Model")(IDS, **{name: given})


def test_what_a_decoder_reads_on_another_device():
    with pytest.raises(ValueError, match="encoder_hidden_states must be on the device"):
        decoder()(IDS, encoder_hidden_states=STATES.to("meta"))
    with pytest.raises(ValueError, match="encoder_attention_mask must be on the device"):
        decoder()(
            IDS, encoder_hidden_states=STATES, encoder_attention_mask=STATES[..., 0].to("meta")
        )
    with pytest.raises(ValueError, match="decoder_attention_mask must be on the device"):
        writer()(IDS, decoder_input_ids=OUTPUT, decoder_attention_mask=OUTPUT.to("meta"))
    for name in ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"):
        given = inputs_of("bigbird", name, labels=True)
        labels = {
            key: x.to("meta") for key, x in given.items() if key[:3] in ("lab", "sta", "end")
        }
        with pytest.raises(ValueError, match=r"must (have values|be on the device)"):
            model_of("bigbird", name)(**given | labels)


@pytest.mark.parametrize("given", [((1,),), (), [], 5, "cache"])
def test_a_cache_that_is_none(given):
    with pytest.raises(TypeError, match=r"past_key_values must be .* received"):
        decoder()(IDS, past_key_values=given)
    with pytest.raises(TypeError, match=r"past_key_values .* received"):
        writer()(IDS, decoder_input_ids=OUTPUT, past_key_values=given)


@pytest.mark.parametrize("given", [5, "states", (), [None], (5,), {}, STATES, (STATES.numpy(),)])
def test_encoder_outputs_that_are_none(given):
    with pytest.raises(TypeError, match=r"encoder_outputs must be the output .* without it"):
        writer()(decoder_input_ids=OUTPUT, encoder_outputs=given)


def test_encoder_outputs_as_a_tuple_of_all_that_an_encoder_gives():
    model = model_of("led", "ForConditionalGeneration")
    inputs = inputs_of("led", "ForConditionalGeneration")
    asked = {"output_attentions": True, "output_hidden_states": True}
    output = inputs.pop("decoder_input_ids")
    encoded = run(model.model.encoder, **inputs, **asked, return_dict=False)
    assert len(encoded) == 4
    expected = run(model, **inputs, **asked, decoder_input_ids=output)
    mask = {"attention_mask": inputs["attention_mask"]}
    got = run(model, **mask, **asked, decoder_input_ids=output, encoder_outputs=encoded)
    assert_same(got, expected)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"labels": OUTPUT[:2]}, "labels, .* as many rows as the input, 3, received 2"),
        ({"decoder_input_ids": OUTPUT[:2]}, "decoder_input_ids .* the input, 3, received 2"),
        ({"labels": OUTPUT[0]}, r"labels must be \[batch, s\], received \[9\]"),
        ({"decoder_input_ids": OUTPUT.tolist()}, "decoder_input_ids must be a tensor"),
        (
            {"decoder_input_ids": OUTPUT, "decoder_attention_mask": [[1]]},
            "decoder_attention_mask must be a tensor",
        ),
        ({"decoder_inputs_embeds": [1.0]}, "decoder_inputs_embeds must be a tensor"),
        ({"decoder_input_ids": OUTPUT, "logits_to_keep": -1}, "logits_to_keep must be 0"),
        ({"decoder_input_ids": OUTPUT, "logits_to_keep": "1"}, "logits_to_keep must be an int"),
    ],
)
def test_outputs_of_another_kind(inputs, said):
    with pytest.raises((TypeError, ValueError), match=said):
        writer()(IDS, **inputs)


@pytest.mark.parametrize(
    ("name", "labels", "said"),
    [
        ("ForSequenceClassification", {"labels": [0, 1, 1]}, "labels must be a tensor"),
        ("ForMultipleChoice", {"labels": [0, 1, 1]}, "labels must be a tensor"),
        (
            "ForQuestionAnswering",
            {"start_positions": IDS[:, 0], "end_positions": IDS[:1, :3]},
            r"end_positions must be of shape \[batch\] = \[3\], received \[1, 3\]",
        ),
    ],
)
def test_labels_of_another_kind(name, labels, said):
    with pytest.raises((TypeError, ValueError), match=said):
        model_of("bigbird", name)(**inputs_of("bigbird", name), **labels)


def test_the_mask_of_a_cache_is_of_the_new_tokens_or_of_all():
    model = model_of("window", "ForCausalLM")
    mask = torch.ones_like(IDS)
    for given, expected in ((mask[:, :5], "same"), (mask, "same"), (mask[:, :8], "error")):
        cache = run(model, input_ids=IDS[:, :38], use_cache=True).past_key_values
        if expected == "error":
            with pytest.raises(ValueError, match=r"\[batch, 5\] .* \[batch, 43\] .*\[3, 8\]"):
                run(model, input_ids=IDS[:, 38:], attention_mask=given, past_key_values=cache)
        else:
            run(model, input_ids=IDS[:, 38:], attention_mask=given, past_key_values=cache)


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        (5, "edges must be a tensor .* received int"),
        ("abc", "edges must be a tensor .* received str"),
        ([[[0, 1], [2]], None, None], r"document 0 must be pairs .* received \[\[0, 1\], \[2\]\]"),
        (torch.zeros(3, 1, 2, dtype=torch.long, device="meta"), "edges must have values"),
        ([lb.Window(3)] * 3, "document 0 must be pairs"),
    ],
)
def test_edges_of_another_kind(edges, said):
    with pytest.raises((TypeError, ValueError), match=said):
        model_of("bigbird", "Model")(IDS, edges=edges)


def test_edges_of_choices():
    """A list for each choice of each row is the tensor, and so is one list after the other."""
    model, two = model_of("etc", "ForMultipleChoice"), torch.stack([IDS, IDS.flip(0)], 1)
    pairs = torch.tensor([(0, 30), (5, 20)]).expand(ROWS, 2, 2, 2).clone()
    pairs[1, 0] = -1
    pairs[2] = -1
    expected = run(model, input_ids=two, edges=pairs).logits
    assert not torch.equal(expected, run(model, input_ids=two).logits)
    each = [(0, 30), (5, 20)]
    for given in (
        [[each, each], [None, each], None],
        [each, each, None, each, [], None],
        pairs.numpy(),
    ):
        assert torch.equal(run(model, input_ids=two, edges=given).logits, expected)
    for wrong, said in (
        ([[each]] * 3, "row 0 must be given for each of its 2 choices, received 1"),
        ([[each, each]] * 4, "each of 3 rows, received 4"),
        ([[each, [[0]]]] * 3, r"must be pairs \(query, key\)"),
        (pairs[:, 0], r"edges must have 4 axes and start with the shape \[batch, choices\]"),
    ):
        with pytest.raises(ValueError, match=said):
            model(two, edges=wrong)


def test_choices_of_another_shape():
    model, two = model_of("bigbird", "ForMultipleChoice"), torch.stack([IDS, IDS], 1)
    for wrong in (torch.ones(3, N), torch.ones(3), torch.ones(2, 2, N)):
        with pytest.raises(ValueError, match=r"attention_mask must .* start with .* \[3, 2\]"):
            model(two, attention_mask=wrong)
    for given in (IDS, two[None]):
        with pytest.raises(ValueError, match=r"multiple choice takes input_ids \[batch, choices"):
            model(given)


def test_an_empty_cache_of_transformers_is_none_at_all():
    expected = run(decoder(), input_ids=IDS, use_cache=False).logits
    cache = transformers.DynamicCache()
    assert torch.equal(run(decoder(), input_ids=IDS, past_key_values=cache).logits, expected)
