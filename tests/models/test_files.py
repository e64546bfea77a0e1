"""Saving and loading: nothing is lost, added or changed on the way."""

import copy
import re

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from small_models import (
    ENCODER_CLASSES,
    ENCODERS,
    ROWS,
    VOCABULARY,
    WIDTH,
    WRITER_CLASSES,
    WRITERS,
    assert_same,
    class_of,
    config_of,
    every_model,
    first_of,
    inputs_of,
    model_of,
    run,
)

import longbird as lb


@every_model
def test_save_and_load(family, name, tmp_path):
    model, inputs = model_of(family, name), inputs_of(family, name)
    model.save_pretrained(tmp_path)
    assert (tmp_path / "config.json").is_file()
    assert (tmp_path / "model.safetensors").is_file()
    assert (tmp_path / "generation_config.json").is_file() is model.can_generate()
    loaded, info = class_of(name).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert not loaded.training
    assert_same(run(loaded, **inputs), run(model, **inputs))
    assert loaded.config.layer_graphs == model.config.layer_graphs
    loaded.save_pretrained(tmp_path / "again")
    again = class_of(name).from_pretrained(tmp_path / "again")
    assert_same(again.state_dict(), model.state_dict(), atol=0, rtol=0)
    assert all(parameter.is_contiguous() for parameter in again.parameters())


AUTO = {
    "Model": "AutoModel",
    "ForPreTraining": "AutoModelForPreTraining",
    "ForMaskedLM": "AutoModelForMaskedLM",
    "ForMultipleChoice": "AutoModelForMultipleChoice",
    "ForQuestionAnswering": "AutoModelForQuestionAnswering",
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForTokenClassification": "AutoModelForTokenClassification",
    "ForCausalLM": "AutoModelForCausalLM",
    "Seq2SeqModel": "AutoModel",
    "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
    "Seq2SeqForQuestionAnswering": "AutoModelForQuestionAnswering",
    "Seq2SeqForSequenceClassification": "AutoModelForSequenceClassification",
}


@pytest.mark.parametrize(
    ("family", "name"),
    [("bigbird", name) for name in ENCODER_CLASSES if name in AUTO]
    + [("window", "ForCausalLM")]
    + [("led", name) for name in WRITER_CLASSES],
)
def test_auto_classes(family, name, tmp_path):
    model_of(family, name).save_pretrained(tmp_path)
    auto = getattr(transformers, AUTO[name])
    loaded = auto.from_pretrained(tmp_path)
    assert type(loaded) is class_of(name)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    assert type(config) is class_of(name).config_class
    assert type(auto.from_config(config)) is class_of(name)


@pytest.mark.parametrize("family", [*ENCODERS, *WRITERS])
def test_configuration(family, tmp_path):
    config = config_of(family, num_labels=5, id2label=None, problem_type="regression")
    config.save_pretrained(tmp_path)
    loaded = type(config).from_pretrained(tmp_path)
    assert loaded.to_dict() == config.to_dict()
    assert loaded.layer_graphs == config.layer_graphs
    assert copy.deepcopy(config).to_dict() == config.to_dict()
    assert len(loaded.id2label) == len(loaded.label2id) == 5
    loaded.num_labels = 3
    assert len(loaded.id2label) == 3
    assert type(config)(**config.to_diff_dict()).to_dict() == config.to_dict()
    assert type(config).from_pretrained(tmp_path, hidden_act="relu").hidden_act == "relu"
    assert type(config)().num_attention_heads > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bigbird", "ForMaskedLM"),
        ("bigbird", "ForQuestionAnswering"),
        ("longformer", "Model"),
        ("etc", "ForEmbedding"),
        ("led", "ForConditionalGeneration"),
    ],
)
def test_half_precision(dtype, family, name, tmp_path):
    model, inputs = model_of(family, name, initializer_range=0.05), inputs_of(family, name)
    model.save_pretrained(tmp_path)
    half = class_of(name).from_pretrained(tmp_path, dtype=dtype)
    assert {parameter.dtype for parameter in half.parameters()} == {dtype}
    got, expected = first_of(run(half, **inputs)), first_of(run(model, **inputs))
    assert got.dtype in (dtype, torch.float32)
    shown = expected > -1e4  # in half precision, what cannot be an answer is as low as it goes
    assert torch.equal(got > -1e4, shown)
    torch.testing.assert_close(got.float()[shown], expected[shown], atol=0.1, rtol=0.1)


def test_loading_from_given_tensors():
    """Without a file: `from_pretrained(None, config=..., state_dict=...)`."""
    for family, name in (("bigbird", "ForMaskedLM"), ("led", "ForConditionalGeneration")):
        model = model_of(family, name)
        loaded = class_of(name).from_pretrained(
            None, config=model.config, state_dict=model.state_dict()
        )
        assert_same(loaded.state_dict(), model.state_dict(), atol=0, rtol=0)


def test_a_head_from_a_base_model_and_back(tmp_path, caplog):
    """What is not in the file is listed, never taken silently."""
    base = model_of("bigbird", "Model")
    base.save_pretrained(tmp_path / "base")
    head = lb.LongbirdForSequenceClassification.from_pretrained(tmp_path / "base")
    assert "classifier.out.weight" in caplog.text
    for key, value in head.longbird.state_dict().items():
        assert torch.equal(value, base.state_dict()[key])
    head.save_pretrained(tmp_path / "head")
    caplog.clear()
    back = lb.LongbirdModel.from_pretrained(tmp_path / "head")
    assert "in the file, but not used: classifier.dense.bias" in caplog.text
    for key, value in head.longbird.state_dict().items():
        assert torch.equal(value, back.state_dict()[key])


@pytest.mark.parametrize(
    ("family", "base", "name"),
    [
        ("bigbird", "Model", "ForMaskedLM"),
        ("window", "Model", "ForCausalLM"),
        ("led", "Seq2SeqModel", "ForConditionalGeneration"),
    ],
)
def test_who_asks_for_the_list_gets_it(family, base, name, tmp_path):
    """`output_loading_info` is for callers that look at the missing names themselves."""
    model = model_of(family, base)
    model.save_pretrained(tmp_path)
    loaded, info = class_of(name).from_pretrained(tmp_path, output_loading_info=True)
    prefix = loaded.base_model_prefix
    heads = {key for key, _ in loaded.named_parameters() if not key.startswith(f"{prefix}.")}
    # The bias of a decoder's logits is zero where a file has none.
    assert set(info["missing_keys"]) == heads
    for key, value in loaded.base_model.state_dict().items():
        assert torch.equal(value, model.state_dict()[key])


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bigbird", "ForMaskedLM"),
        *((family, name) for family in WRITERS for name in WRITER_CLASSES),
    ],
)
def test_lost_embeddings_are_missed(family, name, tmp_path):
    """Tied weights are in the file once: without it, all of them are missing."""
    model_of(family, name).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    lost = [key for key in tensors if tensors[key].shape == (VOCABULARY, WIDTH)]
    assert len(lost) == 1
    save_file({key: x for key, x in tensors.items() if key not in lost}, file, {"format": "pt"})
    with pytest.raises(ValueError, match=re.escape(lost[0])):
        class_of(name).from_pretrained(tmp_path)


@pytest.mark.parametrize("family", ["bigbird", "longformer", "etc"])
def test_another_number_of_labels(family, tmp_path):
    model = model_of(family, "ForSequenceClassification", num_labels=3)
    model.save_pretrained(tmp_path)
    load = lb.LongbirdForSequenceClassification.from_pretrained
    other = load(tmp_path, num_labels=7)
    inputs = inputs_of(family, "ForSequenceClassification")
    assert run(other, **inputs).logits.shape == (ROWS, 7)
    assert_same(other.longbird.state_dict(), model.longbird.state_dict(), atol=0, rtol=0)
