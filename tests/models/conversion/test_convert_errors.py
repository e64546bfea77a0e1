"""Errors of a conversion name the cause, and give advice that can be followed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import transformers as hf
from short_models import GRAPH, SIZES, add_tokenizer, make

import longbird as lb
from longbird.models.conversion import convert_checkpoint


def test_errors_name_the_cause(short: Path, tmp_path: Path) -> None:
    out = tmp_path / "long"
    for options, message in (
        ({"length": 63}, "at least the 64"),
        ({"task": "poetry"}, "task must be one of model, embedding.*received poetry"),
        ({"task": "pretraining"}, "lm_head"),
    ):
        with pytest.raises(ValueError, match=message):
            convert_checkpoint(short, out, **options)
    with pytest.raises(FileExistsError, match="exists already"):
        convert_checkpoint(short, short)
    with pytest.raises(FileNotFoundError):
        convert_checkpoint(tmp_path / "nothing", out)

    config = json.loads((short / "config.json").read_text())
    for change, message in (
        ({"model_type": "t5"}, "model types .*received 't5'"),
        ({"architectures": ["BertForNextSentencePrediction"]}, "NextSentencePrediction"),
        ({"max_position_embeddings": 32}, r"embeddings\.positions\.weight"),
    ):
        (short / "config.json").write_text(json.dumps({**config, **change}))
        with pytest.raises(ValueError, match=message):
            convert_checkpoint(short, out)
    (short / "config.json").write_text(json.dumps(config))
    weights = (short / "model.safetensors").read_bytes()
    (short / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ValueError, match="cannot be read as safetensors"):
        convert_checkpoint(short, out)
    (short / "model.safetensors").rename(short / "pytorch_model.bin")
    with pytest.raises(ValueError, match="pickle"):
        convert_checkpoint(short, out)
    assert {path.name for path in tmp_path.iterdir()} == {"short"}


@pytest.mark.parametrize(
    ("name", "options", "advice"),
    [
        ("BertForMaskedLM", {"task": "question-answering"}, {"new_head": True}),
        ("BertForSequenceClassification", {"task": "pretraining"}, {"new_head": True}),
        ("BertForMaskedLM", {"task": "sequence-classification"}, {"new_head": True}),
        ("BertForNextSentencePrediction", {}, {"task": "model"}),
        ("BertModel", {"length": 63}, {"length": 64}),
        ("BertModel", {"task": "model", "num_labels": 3}, {"task": "token-classification"}),
        ("BertModel", {"tolerance": 0.0}, {"tolerance": 1e-4}),
    ],
)
def test_advice_can_be_followed(
    name: str, options: dict[str, Any], advice: dict[str, Any], tmp_path: Path
) -> None:
    make(tmp_path / "short", name)
    given = {"length": 100, "graph": GRAPH, **options}
    with pytest.raises(ValueError) as caught:
        convert_checkpoint(tmp_path / "short", tmp_path / "long", **given)
    for option, value in advice.items():
        words = [f"{option}=", f"`{option}`", f"{option} must be"]
        assert any(word in str(caught.value) for word in words), str(caught.value)
        assert not isinstance(value, str) or value in str(caught.value)
    assert convert_checkpoint(tmp_path / "short", tmp_path / "long", **{**given, **advice}).exact


def test_advice_for_families_that_are_loaded_first(tmp_path: Path) -> None:
    longformer = hf.LongformerConfig(**SIZES, attention_window=8, max_position_embeddings=66)
    big_bird = hf.BigBirdConfig(**SIZES, block_size=4, max_position_embeddings=64)
    for model in (hf.LongformerModel(longformer), hf.BigBirdModel(big_bird)):
        folder = tmp_path / type(model).__name__
        model.save_pretrained(folder)
        with pytest.raises(
            ValueError, match=r"first: (.*)\.save_pretrained\(new_folder\)"
        ) as caught:
            convert_checkpoint(folder, tmp_path / "long", 100)
        # The code of the message, as it stands there.
        code = str(caught.value).split("first: ")[1].split(", or another")[0]
        names = {"longbird": lb, "new_folder": str(folder / "own")}
        exec(code, names)
        assert convert_checkpoint(folder / "own", folder / "long", 100).exact


def test_what_cannot_be_made_longer(tmp_path: Path) -> None:
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 60}
    hf.LEDModel(
        hf.LEDConfig(**sizes, encoder_attention_heads=2, decoder_attention_heads=2)
    ).save_pretrained(tmp_path / "led")
    with pytest.raises(ValueError, match="encoder-decoders are not made longer"):
        convert_checkpoint(tmp_path / "led", tmp_path / "long", 100)
    lb.LongbirdSeq2SeqModel.from_pretrained(tmp_path / "led").save_pretrained(tmp_path / "own")
    with pytest.raises(ValueError, match="encoder-decoders are not made longer"):
        convert_checkpoint(tmp_path / "own", tmp_path / "long", 100)


@pytest.mark.parametrize(("length", "size"), [(10**9, "128 GB"), (2 * 10**9, "256 GB")])
def test_a_length_that_does_not_fit(short: Path, tmp_path: Path, length: int, size: str) -> None:
    with pytest.raises(ValueError, match=rf"new model has {size}, and making it takes .* free; "):
        convert_checkpoint(short, tmp_path / "long", length)
    assert {path.name for path in tmp_path.iterdir()} == {"short"}


@pytest.mark.parametrize("length", [10**10, 10**30, 0, -5, 1.5, "100", True, None])
def test_lengths_that_are_none(short: Path, tmp_path: Path, length: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="length must be an integer from 1"):
        convert_checkpoint(short, tmp_path / "long", length)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ("PerHead([Full])", "one graph for each attention head"),
        ("Edges([(0, 5000)])", "position 5000 does not exist in a sequence of 100 tokens"),
        ("GlobalTokens([-700]) | Window(3)", "in a sequence of 100 tokens"),
    ],
)
def test_graphs_that_exist_at_no_length(
    graph: str, message: str, short: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        convert_checkpoint(short, tmp_path / "long", 100, graph=graph)
    assert not (tmp_path / "long").exists()


def test_a_graph_of_long_documents_alone(short: Path, tmp_path: Path) -> None:
    graph = "Edges([(0, 80)]) | Window(3)"
    assert convert_checkpoint(short, tmp_path / "long", 100, graph=graph).exact


@pytest.mark.parametrize(
    ("field", "value"),
    [("type_vocab_size", "2"), ("pad_token_id", "x"), ("initializer_range", "a")],
)
@pytest.mark.parametrize("with_tokenizer", [False, True])
def test_fields_of_another_type(
    field: str, value: str, with_tokenizer: bool, short: Path, tmp_path: Path
) -> None:
    if with_tokenizer:
        add_tokenizer(short)
    file = short / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
    with pytest.raises(ValueError, match=field) as caught:
        convert_checkpoint(short, tmp_path / "long", 100, graph=GRAPH)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [("tokenizer_config.json", "[]"), ("tokenizer.json", "{"), ("tokenizer.json", "{}")],
)
def test_tokenizers_that_cannot_be_read(
    name: str, content: str, short: Path, tmp_path: Path
) -> None:
    add_tokenizer(short)
    (short / name).write_text(content)
    with pytest.raises(ValueError, match=name if content != "{}" else "tokenizer in") as caught:
        convert_checkpoint(short, tmp_path / "long", 100, graph=GRAPH)
    assert str(short) in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(value: float, tmp_path: Path) -> None:
    model = make(tmp_path / "short", "BertModel")
    model.encoder.layer[1].output.dense.weight.data[3, 4] = value
    model.save_pretrained(tmp_path / "short")
    with pytest.raises(ValueError, match=r"NaN or infinite.*encoder\.layer\.1\.output\.dense"):
        convert_checkpoint(tmp_path / "short", tmp_path / "long", 100, graph=GRAPH)


def test_an_encoder_does_not_become_causal(tmp_path: Path) -> None:
    make(tmp_path / "short", "BertForMaskedLM")
    with pytest.raises(ValueError, match=r"is an encoder.*masked-lm") as caught:
        convert_checkpoint(tmp_path / "short", tmp_path / "long", 100, task="causal-lm")
    assert len(str(caught.value)) < 400
    convert_checkpoint(tmp_path / "short", tmp_path / "long", 100, task="masked-lm", graph=GRAPH)
