"""Forward passes say what they take and give; wrong inputs are answered in words."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from typing import Any

import pytest
import torch
import transformers
from transformers import DynamicCache, EncoderDecoderCache, StaticCache
from transformers.utils.generic import ModelOutput

import longbird as lb
from longbird.models.integration.tasks import TASKS

ENCODERS = [getattr(lb, task.encoder) for task in TASKS.values() if task.encoder]
SEQ2SEQ = [getattr(lb, task.seq2seq) for task in TASKS.values() if task.seq2seq]
EVERY = [*ENCODERS, *SEQ2SEQ]
SIZES: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    "graph": lb.Window(4),
}
IDS = torch.arange(5, 25).reshape(2, 10)


def tiny(model_class: Any, **changes: Any) -> Any:
    torch.manual_seed(0)
    return model_class(model_class.config_class(**{**SIZES, **changes})).eval()


# ---- what is written is what is called ----


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.__name__)
def test_the_annotation_of_forward_is_the_class_of_the_output(model):
    given = typing.get_type_hints(model.forward)["return"]
    assert dataclasses.is_dataclass(given)
    assert issubclass(given, ModelOutput)
    ids = torch.full_like(IDS, 14)
    ids = ids[None] if model is lb.LongbirdForMultipleChoice else ids
    assert type(tiny(model, eos_token_id=14)(ids)) is given


ENCODER_INPUTS = (
    "input_ids attention_mask token_type_ids position_ids inputs_embeds global_attention_mask "
    "segment_ids past_key_values use_cache output_hidden_states output_attentions"
).split()


@pytest.mark.parametrize("model", ENCODERS)
def test_all_encoders_take_the_same_inputs_first(model):
    names = list(inspect.signature(model.forward).parameters)[1:]
    assert names[: len(ENCODER_INPUTS)] == ENCODER_INPUTS


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.__name__)
def test_a_name_that_no_input_has(model):
    with pytest.raises(TypeError, match="unexpected keyword argument 'inputs_ids'"):
        tiny(model)(inputs_ids=IDS)
    with pytest.raises(TypeError, match="multiple values"):
        tiny(model)(IDS, input_ids=IDS)


def test_one_list_of_models():
    """The stub of the package and the table of tasks know the same models."""
    others = {"LongbirdConfig", "LongbirdSeq2SeqConfig", "LongbirdCollator"}
    public = {name for name in lb.__all__ if name.startswith("Longbird")} - others
    assert public == {model.__name__ for model in EVERY}


# ---- numbers that no table has ----


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"input_ids": torch.where(IDS == 12, 40, IDS)}, r"input_ids .* 0 to 39 .*received 40"),
        ({"input_ids": torch.where(IDS == 12, -1, IDS)}, r"input_ids .* 0 to 39 .*received -1"),
        ({"token_type_ids": torch.full_like(IDS, 2)}, r"token_type_ids .* 0 to 1 .*received 2"),
        ({"position_ids": torch.full_like(IDS, 64)}, r"position_ids .* 0 to 63 .*received 64"),
        ({"position_ids": -IDS}, "position_ids .*received -24"),
        ({"position_ids": IDS[:, :3]}, "position_ids must have the shape of the batch"),
        ({"position_ids": IDS.T}, r"position_ids must be of shape .*\[10, 2\]"),
        ({"token_type_ids": IDS[:1]}, "token_type_ids must have the shape of the batch"),
        ({"attention_mask": torch.ones(2, 9)}, r"attention_mask must have the shape .*\(2, 9\)"),
        ({"inputs_embeds": torch.ones(2, 10, 15), "input_ids": None}, "width 16; received"),
    ],
)
def test_numbers_beyond_a_table(inputs, said):
    with pytest.raises(ValueError, match=said):
        tiny(lb.LongbirdModel)(**{"input_ids": IDS, **inputs})


@pytest.mark.parametrize("name", ["input_ids", "token_type_ids", "position_ids", "segment_ids"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_numbers_that_are_no_integers(name, dtype):
    model = tiny(lb.LongbirdModel, num_global_tokens=3)
    given = {"input_ids": IDS, name: (IDS % 2).to(dtype)}
    with pytest.raises(TypeError, match=f"{name} must be integers .*received {dtype}"):
        model(**given)
    given[name] = (IDS % 2).int()  # 32 bits are enough
    model(**given)


def test_padding_may_hold_anything():
    ids, mask = IDS.clone(), torch.ones_like(IDS)
    ids[0, 7:], mask[0, 7:] = -5, 0
    tiny(lb.LongbirdModel)(ids, attention_mask=mask)


@pytest.mark.slow  # every model
def test_numbers_are_not_read_where_there_are_none():
    model = tiny(lb.LongbirdForMaskedLM, attention_impl="gather")
    torch.export.export(model, (IDS,), {"labels": IDS})
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(IDS, labels=IDS).loss, model(IDS, labels=IDS).loss)
    assert model.to("meta")(IDS.to("meta"), labels=IDS.to("meta")).loss.is_meta


# ---- labels ----


def labelled(model: Any, **labels: Any) -> Any:
    ids = IDS[None] if isinstance(model, lb.LongbirdForMultipleChoice) else IDS
    return model(ids, **labels).loss


ROW = torch.tensor([0, 1])
WRONG_LABELS: dict[str, tuple[Any, dict[str, Any], dict[str, Any], str]] = {
    "class": (
        lb.LongbirdForSequenceClassification, {"num_labels": 3}, {"labels": ROW + 2},
        r"labels must be from 0 to 2 .*received 3",
    ),
    "class below": (
        lb.LongbirdForSequenceClassification, {"num_labels": 3}, {"labels": ROW - 1},
        r"labels .*received -1",
    ),
    "classes of other documents": (
        lb.LongbirdForSequenceClassification, {"num_labels": 3}, {"labels": torch.tensor([0])},
        r"labels must be of shape \[2\], received \[1\]",
    ),
    "several classes": (
        lb.LongbirdForSequenceClassification, {"num_labels": 3}, {"labels": torch.ones(2, 2)},
        r"\[batch, num_labels\] = \[2, 3\], received \[2, 2\]",
    ),
    "numbers": (
        lb.LongbirdForSequenceClassification, {"num_labels": 1}, {"labels": torch.ones(3)},
        r"labels must be numbers of shape \[2, 1\], received \[3\]",
    ),
    "tokens": (
        lb.LongbirdForTokenClassification, {"num_labels": 3}, {"labels": IDS}, "labels .*received",
    ),
    "tokens of another shape": (
        lb.LongbirdForTokenClassification, {"num_labels": 3}, {"labels": IDS[:, :9]},
        "labels must have the shape of the batch",
    ),
    "masked": (
        lb.LongbirdForMaskedLM, {}, {"labels": IDS + 20}, "labels .*vocabulary.*received",
    ),
    "causal": (lb.LongbirdForCausalLM, {}, {"labels": IDS + 20}, "labels .*vocabulary.*received"),
    "shifted": (lb.LongbirdForCausalLM, {}, {"shift_labels": -IDS}, "labels .*received -"),
    "next sentence": (
        lb.LongbirdForPreTraining, {}, {"next_sentence_label": ROW + 1},
        "next_sentence_label must be from 0 to 1 .*received 2",
    ),
    "choice": (
        lb.LongbirdForMultipleChoice, {}, {"labels": torch.tensor([2])}, "labels .*received 2",
    ),
    "answer type": (
        lb.LongbirdForQuestionAnswering, {"num_answer_types": 3}, {"answer_types": ROW + 2},
        "answer_types .*received 3",
    ),
    "answers of other documents": (
        lb.LongbirdForQuestionAnswering, {},
        {"start_positions": ROW[:1], "end_positions": ROW[:1]},
        r"start_positions must be of shape \[batch\] = \[2\], received \[1\]",
    ),
    "sentence beyond": (
        lb.LongbirdForQuestionAnswering, {"supporting_sentences": True},
        {"sentence_positions": torch.tensor([[0, 10], [1, -1]])},
        "sentence_positions .*received 10",
    ),
    "sentence below": (
        lb.LongbirdForQuestionAnswering, {"supporting_sentences": True},
        {"sentence_positions": torch.tensor([[0, -2], [1, -1]])},
        "sentence_positions .*received -2",
    ),
    "sentence of padding": (
        lb.LongbirdForQuestionAnswering, {"supporting_sentences": True},
        {"sentence_positions": torch.tensor([[9], [9]]),
         "attention_mask": (torch.arange(10) < torch.tensor([[10], [9]])).long()},
        "columns of the batch with a token.*received 9",
    ),
    "support of other sentences": (
        lb.LongbirdForQuestionAnswering, {"supporting_sentences": True},
        {"sentence_positions": ROW[:, None], "sentence_support": torch.ones(2, 2)},
        r"sentence_support must be of the shape of the logits, \[2, 1\], received \[2, 2\]",
    ),
    "written": (
        lb.LongbirdForConditionalGeneration, {}, {"labels": IDS + 20},
        "labels .*vocabulary.*received",
    ),
    "written after": (
        lb.LongbirdForConditionalGeneration, {},
        {"labels": IDS + 20, "decoder_input_ids": IDS}, "labels .*vocabulary.*received",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_LABELS)
def test_labels_that_cannot_be(name):
    model, fields, labels, said = WRONG_LABELS[name]
    with pytest.raises(ValueError, match=said):
        labelled(tiny(model, **fields), **labels)


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (lb.LongbirdForTokenClassification, {"labels": IDS * 0.1}),
        (lb.LongbirdForMaskedLM, {"labels": IDS * 0.1}),
        (lb.LongbirdForMultipleChoice, {"labels": torch.tensor([0.0])}),
        (lb.LongbirdForQuestionAnswering, {"start_positions": ROW * 1.0, "end_positions": ROW}),
    ],
)
def test_labels_that_are_no_integers(model, labels):
    with pytest.raises(TypeError, match="must be integers"):
        labelled(tiny(model), **labels)


def test_labels_that_transformers_takes_too():
    """-100 counts nowhere; answers beyond the text do not either; integers are numbers too."""
    model = tiny(lb.LongbirdForSequenceClassification, num_labels=3)
    one = model(IDS[:1], labels=torch.tensor([2])).loss
    torch.testing.assert_close(model(IDS, labels=torch.tensor([2, -100])).loss, one)
    model = tiny(lb.LongbirdForQuestionAnswering)
    answers = {"start_positions": torch.tensor([3, 10]), "end_positions": torch.tensor([4, 99])}
    alone = {name: given[:1] for name, given in answers.items()}
    torch.testing.assert_close(model(IDS, **answers).loss, model(IDS[:1], **alone).loss)
    several = {"num_labels": 2, "problem_type": "multi_label_classification"}
    for fields, labels in (({"num_labels": 1}, ROW), (several, torch.eye(2).long())):
        model = tiny(lb.LongbirdForSequenceClassification, **fields)
        expected = model(IDS, labels=labels.float()).loss
        torch.testing.assert_close(model(IDS, labels=labels).loss, expected)


# ---- caches and masks of decoders ----


def test_the_cache_of_another_batch():
    model = tiny(lb.LongbirdForCausalLM)
    cache = model(IDS, use_cache=True).past_key_values
    with pytest.raises(ValueError, match="cache of 2 documents, and the batch has 1"):
        model(IDS[:1, :1], past_key_values=cache)
    writer = tiny(lb.LongbirdForConditionalGeneration)
    cache = writer(IDS, decoder_input_ids=IDS[:, :3], use_cache=True).past_key_values
    with pytest.raises(ValueError, match="cache of 2 documents, and the batch has 1"):
        writer(IDS[:1], decoder_input_ids=IDS[:1, :1], past_key_values=cache)


def test_gradient_checkpointing_and_a_cache():
    model = tiny(lb.LongbirdForCausalLM)
    cache = model(IDS, use_cache=True).past_key_values
    model.train()
    model.gradient_checkpointing_enable()
    with pytest.raises(ValueError, match="gradient_checkpointing_disable"):
        model(IDS[:, :1], past_key_values=cache)
    model.gradient_checkpointing_disable()
    model(IDS[:, :1], past_key_values=cache)


def test_caches_that_an_encoder_decoder_cannot_have():
    model = tiny(lb.LongbirdForConditionalGeneration)
    still = StaticCache(config=transformers.BartConfig(decoder_layers=1), max_cache_len=9)
    for cache in (DynamicCache(), still, EncoderDecoderCache(still, DynamicCache())):
        with pytest.raises(TypeError, match=r"must be EncoderDecoderCache\(DynamicCache"):
            model(IDS, decoder_input_ids=IDS, past_key_values=cache)
    with pytest.raises(TypeError, match="cache_implementation"):
        model.generate(IDS, max_new_tokens=3, cache_implementation="static")


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"decoder_attention_mask": torch.ones(2, 4)}, r"decoder_attention_mask .*\[2, 3\]"),
        ({"decoder_attention_mask": torch.full((2, 3), 2)}, "decoder_attention_mask must be 0"),
        ({"decoder_input_ids": IDS[:, :3] + 30}, r"decoder_input_ids .* 0 to 39 .*received"),
        ({"decoder_input_ids": IDS[0]}, r"decoder_input_ids must be \[batch, s\]"),
        ({"decoder_input_ids": IDS[:1, :3]}, "decoder_input_ids .* the input, 2, received 1"),
        (
            {"decoder_input_ids": None, "decoder_inputs_embeds": torch.ones(2, 3, 9)},
            "decoder_inputs_embeds .*width 16",
        ),
        (
            {"encoder_outputs": (torch.ones(2, 8, 16),), "attention_mask": torch.ones(2, 10)},
            r"its states, \[2, 8\], received \[2, 10\]",
        ),
        ({"encoder_outputs": (torch.ones(2, 8, 15),)}, "encoder_hidden_states .*width 16"),
    ],
)
def test_what_a_decoder_cannot_take(inputs, said):
    model = tiny(lb.LongbirdForConditionalGeneration)
    with pytest.raises(ValueError, match=said):
        model(IDS, **{"decoder_input_ids": IDS[:, :3], **inputs})


@pytest.mark.parametrize("name", ["input_ids", "attention_mask", "segment_ids", "labels"])
def test_lists_are_not_tensors(name):
    model = lb.LongbirdForTokenClassification(
        lb.LongbirdConfig(
            vocab_size=20, hidden_size=8, num_attention_heads=2, num_hidden_layers=1,
            intermediate_size=8, num_global_tokens=2,
        )
    )  # fmt: skip
    inputs = {"input_ids": torch.ones(1, 4, dtype=torch.int64), name: [[1, 1, 1, 1]]}
    with pytest.raises(TypeError, match="must be a tensor, received list"):
        model(**inputs)
