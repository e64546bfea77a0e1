"""Every field of a configuration has a rule: other types, sizes and words are refused."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import longbird as lb
from longbird.models.field_rules import RULES

CONFIGS = (lb.LongbirdConfig, lb.LongbirdSeq2SeqConfig)
FIELDS = sorted({field.name for cls in CONFIGS for field in dataclasses.fields(cls)})
BAD = [
    float("nan"), float("inf"), float("-inf"), -1, -0.5, 1.5, 2.0, 10**12, 10**400, True, False, 0,
    "", "evil", "16", "__import__('os')", [], [1], ["a"], {}, {"a": 1}, {"0": 3}, None, object(),
]  # fmt: skip
SMALL: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "max_position_embeddings": 16,
}
# What each field may be, written down once more and by hand: (types, a test of the value).
WHOLE, REAL = (int,), (int, float)
POSITIVE = "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size "
POSITIVE += "max_position_embeddings relative_max_distance max_decoder_positions"
NOT_NEGATIVE = "type_vocab_size num_global_tokens global_max_distance relative_buckets "
NOT_NEGATIVE += "num_answer_types chunk_size_feed_forward"
RATES = "hidden_dropout_prob attention_probs_dropout_prob activation_dropout classifier_dropout"
IDS = "pad_token_id bos_token_id sep_token_id decoder_start_token_id position_padding_id"
DECODER = "decoder_layers decoder_attention_heads decoder_intermediate_size"
OPTIONAL = {
    *DECODER.split(), *IDS.split(), "eos_token_id", "classifier_dropout", "lm_activation",
    "problem_type", "architectures", "transformers_version", "dtype", "id2label", "label2id",
    "output_hidden_states", "return_dict", "quantize",
}  # fmt: skip
FLAGS = (
    "tie_word_embeddings use_cache is_decoder is_encoder_decoder rescale_embeddings "
    "attention_bias attention_output_bias global_projections lm_transform qa_feed_forward "
    "qa_hides_question supporting_sentences sparse_prediction output_hidden_states return_dict "
    "add_cross_attention"
).split()


def may_be(name: str, value: Any) -> bool:
    """Could this value be meant? Of those in BAD."""
    if value is None:
        return name in OPTIONAL
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    whole = plain and isinstance(value, int) and value < 2**31
    if name in FLAGS:
        return isinstance(value, bool)
    if name in f"{POSITIVE} {DECODER}".split():
        return whole and value >= 1
    if name in f"{NOT_NEGATIVE} {IDS} eos_token_id".split():
        return (whole and value >= 0) or (name == "eos_token_id" and value in ([], [1]))
    if name in RATES.split():
        return plain and 0 <= value < 1
    match name:
        case "initializer_range":
            return plain and 0 <= value < 2**31
        case "layer_norm_eps":
            return plain and 0 < value <= 1
        case "transformers_version":
            return isinstance(value, str)
        case "architectures":
            return value in ([], ["a"])
        case "id2label":
            return value == {}
        case "label2id":
            return value in ({}, {"a": 1}, {"0": 3})
        case _:
            return False


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("cls", CONFIGS)
def test_every_field_with_every_odd_value(cls: Any, name: str, tmp_path: Path) -> None:
    if name not in {field.name for field in dataclasses.fields(cls)}:
        pytest.skip(f"{cls.__name__} has no such field")
    refused = 0
    for value in BAD:
        if may_be(name, value):
            continue
        refused += 1
        with pytest.raises((TypeError, ValueError), match=name if name != "graph" else "graph"):
            cls(**{**SMALL, name: value})
            pytest.fail(f"{name}={value!r} was taken")
        if (isinstance(value, int) and value > 10**300) or type(value) is object:
            continue  # JSON has no such number
        file = tmp_path / "config.json"
        file.write_text(json.dumps({**SMALL, "model_type": cls.model_type, name: value}))
        with pytest.raises((TypeError, ValueError), match=name):
            cls.from_pretrained(tmp_path)
            pytest.fail(f"{name}={value!r} of a file was taken")
        file.write_text(json.dumps({**SMALL, "model_type": cls.model_type}))
        with pytest.raises((TypeError, ValueError), match=name):
            cls.from_pretrained(tmp_path, **{name: value})
            pytest.fail(f"{name}={value!r} given beside a file was taken")
    assert refused >= 5


@pytest.mark.parametrize("cls", CONFIGS)
def test_every_field_has_a_rule_and_a_line_of_documentation(cls: Any) -> None:
    documentation = f"{lb.LongbirdConfig.__doc__} {cls.__doc__}"
    for field in dataclasses.fields(cls):
        assert field.name == "graph" or field.name in RULES, field.name
        assert re.search(rf"^ +{field.name}: \S", documentation, re.MULTILINE), field.name
        if field.name in RULES:
            RULES[field.name].check(field.name, field.default)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layer_norm_eps", float("inf")),
        ("pad_token_id", 1.5),
        ("attention_impl", {}),
        ("initializer_range", float("nan")),
        ("num_labels", 10**9),
        ("output_attentions", "yes"),
        ("id2label", {"0": "a", "00": "b"}),
        ("dtype", "nn"),
        ("dtype", "int8"),
    ],
)
def test_a_field_is_checked_when_it_is_set_later(name: str, value: Any) -> None:
    config = lb.LongbirdConfig(**SMALL)
    with pytest.raises((TypeError, ValueError), match=f"{name} must be .*received"):
        setattr(config, name, value)


def test_types_are_type_errors_and_values_value_errors() -> None:
    with pytest.raises(TypeError, match=r"hidden_size must be an integer .*received '8'"):
        lb.LongbirdConfig(hidden_size="8")
    with pytest.raises(TypeError, match="use_cache must be true or false, received 1"):
        lb.LongbirdConfig(use_cache=1)
    with pytest.raises(ValueError, match=r"hidden_dropout_prob must be .*received 1"):
        lb.LongbirdConfig(hidden_dropout_prob=1)


@pytest.mark.parametrize(
    "fields",
    [
        {"hidden_size": 9},
        {"pad_token_id": 40},
        {"eos_token_id": 40},
        {"eos_token_id": [1, 99]},
        {"bos_token_id": 4000},
        {"sep_token_id": 41},
        {"graph": [lb.Full(), lb.Full()]},
        {"positions": "padding-aware", "pad_token_id": 15},
        {"global_projections": True, "relative_buckets": 32},
    ],
)
@pytest.mark.parametrize("cls", CONFIGS)
def test_fields_that_do_not_go_together(cls: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="received"):
        cls(**{**SMALL, **fields})


def test_a_decoder_with_heads_that_do_not_divide_its_width() -> None:
    with pytest.raises(ValueError, match=r"decoder_attention_heads.*8 and 3"):
        lb.LongbirdSeq2SeqConfig(**SMALL, decoder_attention_heads=3)


def test_a_default_beyond_a_small_vocabulary_is_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """transformers warns of a token that is not in the vocabulary whenever it saves."""
    config = lb.LongbirdConfig(**SMALL)
    assert config.sep_token_id is None
    config.save_pretrained(tmp_path)
    assert "sep_token_id" not in caplog.text
    assert lb.LongbirdConfig.from_pretrained(tmp_path).sep_token_id is None
    assert lb.LongbirdConfig(**{**SMALL, "vocab_size": 67}).sep_token_id == 66


def test_fields_beside_a_file_are_put_in_before_they_are_checked(tmp_path: Path) -> None:
    lb.LongbirdConfig(**SMALL, num_labels=3).save_pretrained(tmp_path)
    config = lb.LongbirdConfig.from_pretrained(
        tmp_path, hidden_size=9, num_attention_heads=3, num_labels=5, graph="Window(3)"
    )
    assert (config.hidden_size, config.num_labels, config.graph) == (9, 5, lb.Window(3))
    assert len(config.label2id) == 5
    with pytest.raises(ValueError, match="multiple"):
        lb.LongbirdConfig.from_pretrained(tmp_path, num_attention_heads=3)


def test_configurations_survive_a_round_trip(tmp_path: Path) -> None:
    for cls in CONFIGS:
        config = cls(**SMALL, id2label={0: "a", 1: "b"}, eos_token_id=[1, 2], dtype=torch.float16)
        config.save_pretrained(tmp_path)
        again = cls.from_pretrained(tmp_path)
        assert again.to_dict() == config.to_dict()
        assert again.id2label == {0: "a", 1: "b"}


LABELS = {0: "no", 1: "yes"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id2label": {5: "a", 9: "b"}}, "id2label must be .* 0, 1, 2"),
        ({"id2label": {1: "a", 2: "b"}}, "id2label must be .* 0, 1, 2"),
        ({"label2id": {"a": 0, "b": 2}}, "label2id must have each of the numbers"),
        ({"label2id": {"a": 0, "b": 0}}, "label2id must have each of the numbers"),
        ({"id2label": LABELS, "num_labels": 3}, "num_labels must be 2"),
        ({"label2id": {"a": 0}, "num_labels": 3}, "num_labels must be 1"),
        ({"id2label": LABELS, "label2id": {"no": 1, "yes": 0}}, "the other way round"),
        ({"id2label": LABELS, "label2id": {"no": 0}}, "the other way round"),
    ],
)
def test_labels_that_contradict_each_other(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lb.LongbirdConfig(**SMALL, **fields)
    saved = lb.LongbirdConfig(**SMALL, num_labels=7).to_dict()
    with pytest.raises(ValueError, match=message):
        lb.LongbirdConfig.from_dict(saved, **fields)


@pytest.mark.parametrize(
    "fields", [{"id2label": LABELS}, {"label2id": {"yes": "1", "no": "0"}}, {"num_labels": None}]
)
def test_each_way_of_naming_labels_follows_from_the_other(fields: dict[str, Any]) -> None:
    saved = lb.LongbirdConfig(**SMALL, num_labels=7).to_dict()
    for config in (
        lb.LongbirdConfig(**SMALL, **fields),
        lb.LongbirdConfig.from_dict(saved, **fields),
    ):
        assert config.label2id == {name: i for i, name in config.id2label.items()}
        if "num_labels" not in fields:
            assert config.id2label == LABELS


def test_names_of_labels_may_be_changed_and_saved(tmp_path: Path) -> None:
    config = lb.LongbirdConfig(**SMALL)
    config.id2label = LABELS  # and label2id still has the old names
    config.save_pretrained(tmp_path)
    again = lb.LongbirdConfig.from_pretrained(tmp_path)
    assert again.id2label == LABELS
    assert again.label2id == {"no": 0, "yes": 1}


@pytest.mark.parametrize(
    ("cls", "config"),
    [
        (lb.LongbirdForSequenceClassification, lb.LongbirdConfig),
        (lb.LongbirdForTokenClassification, lb.LongbirdConfig),
        (lb.LongbirdSeq2SeqForSequenceClassification, lb.LongbirdSeq2SeqConfig),
    ],
)
def test_only_a_head_for_labels_needs_some(cls: Any, config: Any) -> None:
    none = config(**SMALL, num_labels=0)
    with pytest.raises(ValueError, match="at least one label, received num_labels=0"):
        cls(none)
    assert none.num_labels == 0


@pytest.mark.parametrize(
    "graph",
    [
        "PerHead([Full])",
        "PerHead([Full, Full, Full, Full, Full]) | Window(2)",
        "ByLength({8: PerHead([Full])}, Window(3))",
    ],
)
def test_graphs_of_another_number_of_heads(graph: str) -> None:
    with pytest.raises(ValueError, match="one graph for each attention head"):
        lb.LongbirdConfig(**SMALL, graph=graph)
    with pytest.raises(ValueError, match="one graph for each attention head"):
        lb.LongbirdConfig(**SMALL, graph=["Full"] * (SMALL["num_hidden_layers"] - 1) + [graph])
    heads = ", ".join(["Full"] * SMALL["num_attention_heads"])
    lb.LongbirdConfig(**SMALL, graph=f"Window(2) & PerHead([{heads}])")


@pytest.mark.parametrize(("value", "error"), [("Windo", ValueError), (3, TypeError)])
def test_a_graph_is_checked_when_it_is_set(value: Any, error: type[Exception]) -> None:
    config = lb.LongbirdConfig(**SMALL)
    before = config.graph
    with pytest.raises(error, match="graph"):
        config.graph = value
    assert config.graph == before
    config.graph = "Window(3)"
    assert config.graph == lb.Window(3)
