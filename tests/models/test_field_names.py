"""Names that are not fields: an error in a call, one line for a file, kept where others use them.

transformers itself takes any name, and says nothing.
"""

from __future__ import annotations

import copy
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import longbird as lb

SMALL: dict[str, Any] = {
    "vocab_size": 80,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "max_position_embeddings": 16,
}
BY_OTHERS: dict[str, Any] = {
    "task_specific_params": {"summarization": {"num_beams": 4}},
    "auto_map": {"AutoModel": "modeling_own.Model"},
    "_name_or_path": "somewhere",
    "transformers_version": "4.30.0",
    "architectures": ["LongbirdForMaskedLM"],
    "torch_dtype": "float32",
    "num_beams": 4,
    "max_length": 20,
    "max_new_tokens": 7,
    "pruned_heads": {},
    "tokenizer_class": "BertTokenizer",
    "sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of ours, saved."""
    lb.LongbirdForMaskedLM(lb.LongbirdConfig(**SMALL)).save_pretrained(tmp_path)
    return tmp_path


def say(folder: Path, **fields: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("foo", None),
        ("graf", "graph"),
        ("grpah", "graph"),
        ("hiden_size", "hidden_size"),
        ("d_model", "hidden_size"),
        ("block_size", "graph=bigbird"),
        ("window", "graph=longformer"),
        ("attention_window", "graph=longformer"),
        ("causal", None),  # a property
        ("to_dict", None),  # a method
        ("_private", None),
    ],
)
@pytest.mark.parametrize("cls", [lb.LongbirdConfig, lb.LongbirdSeq2SeqConfig])
def test_a_name_in_a_call_that_nobody_knows(
    cls: Any, name: str, meant: str | None, folder: Path
) -> None:
    expected = f"{cls.__name__} has no field {name}" + (f".*did you mean {meant}" if meant else "")
    with pytest.raises(TypeError, match=expected):
        cls(**SMALL, **{name: 3})
    with pytest.raises(TypeError, match=expected):
        transformers.AutoConfig.for_model(cls.model_type, **SMALL, **{name: 3})
    if cls is lb.LongbirdConfig:
        with pytest.raises(TypeError, match=expected):
            cls.from_pretrained(folder, **{name: 3})
        with pytest.raises(TypeError, match=name):
            lb.LongbirdForMaskedLM.from_pretrained(folder, **{name: 3})


def test_fields_of_the_other_configuration() -> None:
    with pytest.raises(TypeError, match="LongbirdConfig has no field decoder_layers"):
        lb.LongbirdConfig(**SMALL, decoder_layers=2)


@pytest.mark.parametrize(
    "load",
    [
        lb.LongbirdConfig.from_pretrained,
        transformers.AutoConfig.from_pretrained,
        lb.LongbirdForMaskedLM.from_pretrained,
        transformers.AutoModelForMaskedLM.from_pretrained,
        lambda folder: lb.LongbirdConfig.from_json_file(folder / "config.json"),
    ],
    ids=["config", "AutoConfig", "model", "AutoModel", "json"],
)
def test_a_file_of_a_newer_version_gives_one_line(
    load: Any, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    say(folder, rotary=True, graf=7, to_dict=3, _auto_class="x", **BY_OTHERS)
    for _ in range(2):  # each time that it is loaded
        caplog.clear()
        loaded = load(folder)
        (line,) = lines(caplog)
        assert "does not know" in line
        assert line.endswith(": rotary, graf, to_dict, _auto_class")
    config = getattr(loaded, "config", loaded)
    assert config.rotary is True
    assert config._auto_class is None
    assert config.to_dict()["rotary"] is True  # kept for those who know what it means


def test_what_other_libraries_keep_in_a_configuration(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    say(folder, **BY_OTHERS)
    caplog.clear()
    config = transformers.AutoConfig.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3)
    assert len(lines(caplog)) == 1
    assert "classifier" in lines(caplog)[0]
    assert config.task_specific_params == BY_OTHERS["task_specific_params"]
    assert config.auto_map == BY_OTHERS["auto_map"]
    assert config.sentence_transformers == BY_OTHERS["sentence_transformers"]
    assert (model.config.num_labels, config.dtype) == (3, torch.float32)
    model.save_pretrained(folder / "again")
    again = json.loads((folder / "again" / "config.json").read_text())
    assert again["tokenizer_class"] == "BertTokenizer"


def test_notes_of_the_user_survive(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = lb.LongbirdConfig.from_pretrained(folder)
    config.my_note = "kept"
    for copied in (copy.deepcopy(config), type(config)(**config.to_dict())):
        assert copied.my_note == "kept"
    config.save_pretrained(folder)
    caplog.clear()
    assert lb.LongbirdConfig.from_pretrained(folder).my_note == "kept"
    assert ["my_note" in line for line in lines(caplog)] == [True]


@pytest.mark.skipif(
    tuple(map(int, transformers.__version__.split(".")[:2])) < (5, 22),
    reason="older versions read the configurations of a pair as if they were calls",
)
def test_a_pair_of_encoder_and_decoder_of_a_newer_version(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reader = lb.LongbirdModel(lb.LongbirdConfig(**SMALL))
    writer = lb.LongbirdForCausalLM(
        lb.LongbirdConfig(**SMALL, is_decoder=True, add_cross_attention=True)
    )
    transformers.EncoderDecoderModel(encoder=reader, decoder=writer).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    pair = json.loads(file.read_text())
    pair["encoder"]["rotary"] = True
    file.write_text(json.dumps(pair))
    caplog.clear()
    transformers.EncoderDecoderModel.from_pretrained(tmp_path)
    assert any("does not use: rotary" in line for line in lines(caplog))


@pytest.mark.parametrize("value", ["bert", "longbird-seq2seq", 3, None])
def test_the_configuration_of_another_model(value: Any, folder: Path) -> None:
    say(folder, model_type=value)
    with pytest.raises(ValueError, match="model type longbird; received"):
        lb.LongbirdConfig.from_pretrained(folder)
    with pytest.raises(ValueError, match=str(folder)):
        lb.LongbirdForMaskedLM.from_pretrained(folder)


def test_options_of_a_tokenizer_are_not_fields(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """AutoTokenizer hands its options over to the configuration."""
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na")
    settings = {"tokenizer_class": "BertTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    caplog.clear()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, model_max_length=9)
    assert tokenizer.model_max_length == 9
    assert not lines(caplog)
    transformers.AutoConfig.from_pretrained(folder, hiden_size=9)
    assert "hiden_size (did you mean hidden_size?)" in lines(caplog)[0]


def test_no_graph_is_the_default_and_null_is_an_error(folder: Path) -> None:
    assert lb.LongbirdConfig(**SMALL).graph == lb.bigbird()
    for null in (None, [None]):
        say(folder, graph=null)
        for load in (lb.LongbirdConfig.from_pretrained, lb.LongbirdForMaskedLM.from_pretrained):
            with pytest.raises((TypeError, ValueError), match="graph must be a graph"):
                load(folder)
        with pytest.raises(TypeError, match="graph must be a graph"):
            lb.LongbirdConfig(**SMALL, graph=null)


def test_adapters_of_peft(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    peft = pytest.importorskip("peft")
    base = lb.LongbirdForSequenceClassification.from_pretrained(folder, num_labels=3).eval()
    settings = peft.LoraConfig(
        task_type="SEQ_CLS", target_modules=["query", "value"], r=2, init_lora_weights=False
    )
    adapted = peft.get_peft_model(copy.deepcopy(base), settings).eval()
    adapted.save_pretrained(folder / "adapter")
    caplog.clear()
    again = peft.PeftModel.from_pretrained(base, folder / "adapter").eval()
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        assert torch.equal(adapted(ids).logits, again(ids).logits)
    assert not [line for line in lines(caplog) if "field" in line]
