"""A model saved with one head and loaded with another: one line, and the encoder is the same."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from theirs import configuration, large_weights, theirs_of

import longbird as lb
from longbird.models.checkpoints.folders import FAMILIES
from longbird.models.integration.tasks import TASKS

SIZES: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 80,
}
ENCODERS = [task.encoder for task in TASKS.values() if task.encoder]
WRITERS = [task.seq2seq for task in TASKS.values() if task.seq2seq]
PAIRS = [(a, b) for each in (ENCODERS, WRITERS) for a in each for b in each]


def made(name: str, **fields: Any) -> Any:
    """A model of ours with large weights."""
    cls = getattr(lb, name)
    model = cls(cls.config_class(**SIZES, graph=lb.Window(4), **fields)).eval()
    large_weights(model)
    return model


def body(model: Any) -> dict[str, torch.Tensor]:
    """The tensors without head and pooler, under the names that the model without a head has."""
    base = model.base_model
    return {k: v for k, v in base.state_dict().items() if not k.startswith("pooler.")}


def named(line: str, what: str, prefix: str) -> set[str]:
    """The names that the line has behind these words."""
    names = line.partition(what)[2].partition(";")[0].split(", ")
    return {name.removeprefix(prefix) for name in names if name}


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(("saved", "loaded"), PAIRS)
def test_any_head_to_any_head(
    saved: str, loaded: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = made(saved)
    model.save_pretrained(tmp_path)
    with caplog.at_level(logging.INFO):
        caplog.clear()
        again = getattr(lb, loaded).from_pretrained(tmp_path)
    expected, found = body(model), body(again)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)

    warned = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    before = {name for name, _ in model.named_parameters()}
    prefix = f"{model.base_model_prefix}."
    bare = {name.removeprefix(prefix) for name in before}
    shapes = {k.removeprefix(prefix): v.shape for k, v in model.state_dict().items()}
    new = {
        name
        for name, x in again.named_parameters()
        if name.removeprefix(prefix) not in bare or x.shape != shapes[name.removeprefix(prefix)]
    }
    used = {name.removeprefix(prefix) for name in again.state_dict()}
    stored = load_file(tmp_path / "model.safetensors")
    left = {name for name in stored if name.removeprefix(prefix) not in used}
    lost_pooler = loaded == "LongbirdModel" and not any("pooler" in name for name in stored)
    causal = loaded == "LongbirdForCausalLM", saved == "LongbirdForCausalLM"
    assert len(warned) == bool(new or left or lost_pooler or causal[0] != causal[1])
    for line in warned:
        assert loaded in line
        assert str(tmp_path) in line
        assert "\n" not in line
        assert named(line, "new, with random weights to be trained: ", prefix) == {
            name.removeprefix(prefix) for name in new
        }
        assert named(line, "in the file, but not used: ", prefix) == {
            name.removeprefix(prefix) for name in left
        }
        assert ("without a pooler" in line) is lost_pooler
        assert ("made causal" in line) is (causal == (True, False))
        assert ("still causal" in line) is (causal == (False, True))
    assert again.config.is_decoder is any(causal)


@pytest.mark.parametrize("task", [name for name, task in TASKS.items() if task.encoder])
def test_a_decoder_says_so_with_every_other_head(
    task: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also when it was saved with that head, and when an Auto class loads it."""
    made("LongbirdForCausalLM").save_pretrained(tmp_path / "0")
    names = TASKS[task]
    classes = [getattr(lb, str(names.encoder))]
    classes += [getattr(transformers, names.auto)] if names.auto else []
    for model_class in classes:
        for times in range(2):
            caplog.clear()
            model = model_class.from_pretrained(tmp_path / f"{times}")
            assert model.config.is_decoder
            assert ("still causal" in caplog.text) is (task != "causal-lm")
            model.save_pretrained(tmp_path / "1")
            caplog.clear()
            other = model_class.from_pretrained(tmp_path / f"{times}", is_decoder=False)
            assert "still causal" not in caplog.text
            assert other.config.is_decoder is (task == "causal-lm")


def test_auto_classes_from_another_head(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = made("LongbirdForMaskedLM")
    model.save_pretrained(tmp_path)
    base = transformers.AutoModel.from_pretrained(tmp_path)
    assert type(base) is lb.LongbirdModel
    assert base.pooler is None
    auto = transformers.AutoModelForSequenceClassification
    caplog.clear()
    sorter = auto.from_pretrained(tmp_path, num_labels=6)
    assert sorter.config.num_labels == len(sorter.config.id2label) == 6
    assert sorter(torch.tensor([[5, 6, 7]])).logits.shape == (1, 6)
    (line,) = lines(caplog)
    assert "classifier.out.weight" in line
    assert "lm_transform.dense.bias" in line
    for weight in (sorter.classifier.dense.weight, sorter.classifier.out.weight):
        assert 0.005 < float(weight.detach().std()) < 0.05  # initializer_range is 0.02
    sorter.save_pretrained(tmp_path / "sorter")
    caplog.clear()
    other = auto.from_pretrained(tmp_path / "sorter", num_labels=3)
    (line,) = lines(caplog)
    assert "classifier.out.bias, classifier.out.weight" in line
    assert "left out" not in line
    assert torch.equal(other.classifier.dense.weight, sorter.classifier.dense.weight)
    assert other.config.num_labels == 3


@pytest.mark.slow  # models of transformers
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("family", FAMILIES)
def test_foreign_heads(family: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    form = FAMILIES[family]
    classes = [
        getattr(lb, name)
        for name in (ENCODERS if form.base is lb.LongbirdModel else WRITERS)
        if not (family == "longformer" and name == "LongbirdForCausalLM")  # it is not causal
    ]
    for saved in form.architectures:
        folder = tmp_path / saved.__name__
        theirs_of(family, saved.__name__, configuration(family)).save_pretrained(folder)
        same = body(saved.from_pretrained(folder))
        for loaded in classes:
            caplog.clear()
            ours = loaded.from_pretrained(folder)
            found = body(ours)
            assert all(torch.equal(same[name], found[name]) for name in same)
            assert len(lines(caplog)) <= 1
            assert "LOAD REPORT" not in caplog.text


def test_a_head_of_their_own_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    theirs = transformers.BertForMaskedLM(transformers.BertConfig(**SIZES))
    theirs.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    save_file({**load_file(file), "my_head.linear.weight": torch.ones(3)}, file, {"format": "pt"})
    lb.LongbirdForMaskedLM.from_pretrained(tmp_path)
    (line,) = lines(caplog)
    assert line.endswith("in the file, but not used: my_head.linear.weight")
    save_file(
        {**load_file(file), "bert.encoder.layer.0.adapter.weight": torch.ones(3)},
        file, {"format": "pt"},
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"left over: bert\.encoder\.layer\.0\.adapter\.weight"):
        lb.LongbirdForMaskedLM.from_pretrained(tmp_path)


@pytest.mark.parametrize("loaded", ["LongbirdForMaskedLM", "LongbirdForQuestionAnswering"])
@pytest.mark.parametrize("change", ["missing", "unexpected", "reshaped"])
def test_the_encoder_must_fit_whatever_the_head(loaded: str, change: str, tmp_path: Path) -> None:
    made("LongbirdForMaskedLM").save_pretrained(tmp_path)
    file, name = tmp_path / "model.safetensors", "longbird.layers.1.attention.key.weight"
    tensors = load_file(file)
    match change:
        case "missing":
            del tensors[name]
        case "unexpected":
            name = "longbird.layers.7.attention.key.weight"
            tensors[name] = torch.ones(2)
        case _:
            tensors[name] = torch.ones(2)
    save_file(tensors, file, {"format": "pt"})
    for options in ({}, {"output_loading_info": True}):
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            getattr(lb, loaded).from_pretrained(tmp_path, **options)
    auto = transformers.AutoModelForMaskedLM
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        auto.from_pretrained(tmp_path)


def test_there_is_one_report(tmp_path: Path) -> None:
    """Ours for a model of ours; transformers' own models still have theirs."""
    made("LongbirdForMaskedLM").save_pretrained(tmp_path / "ours")
    transformers.BertModel(transformers.BertConfig(**SIZES)).save_pretrained(tmp_path / "theirs")
    said: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = said.append  # type: ignore[method-assign]
    loggers = [logging.getLogger(name) for name in ("transformers", "longbird")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        auto = transformers.AutoModelForTokenClassification
        auto.from_pretrained(tmp_path / "ours")
        (record,) = [x for x in said if x.levelno >= logging.WARNING]
        assert "classifier.weight" in record.getMessage()
        said.clear()
        auto.from_pretrained(tmp_path / "theirs")
        assert any("LOAD REPORT" in x.getMessage() for x in said)
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


# ---- sizes that are in the configuration alone


def edit(folder: Path, **fields: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


LABELS = {str(number): f"label {number}" for number in range(20_000)}


@pytest.mark.parametrize(
    "fields",
    [
        {"vocab_size": 2**31 - 1},
        {"max_position_embeddings": 2**31 - 1},
        {"hidden_size": 2**20},
        {"intermediate_size": 2**31 - 1},
        {"type_vocab_size": 2**31 - 1},
        {"id2label": LABELS, "label2id": None},
        {"num_labels": 20_000, "id2label": None, "label2id": None},
        {"num_labels": 10**15, "id2label": None, "label2id": None},
        {"num_global_tokens": 2**20},
        {"relative_buckets": 2**20, "relative_max_distance": 2**20},
    ],
)
@pytest.mark.parametrize("loaded", ["TokenClassification", "SequenceClassification"])
def test_sizes_are_refused_before_anything_is_allocated(
    fields: dict[str, Any], loaded: str, tmp_path: Path
) -> None:
    import resource

    made("LongbirdForTokenClassification").save_pretrained(tmp_path)
    edit(tmp_path, **fields)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError):
        getattr(lb, f"LongbirdFor{loaded}").from_pretrained(tmp_path)
    with pytest.raises((ValueError, TypeError)):
        getattr(transformers, f"AutoModelFor{loaded}").from_pretrained(tmp_path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 600_000, f"{grown} kB"  # labels are words, in a dictionary


def test_labels_that_the_caller_asks_for_may_be_many(tmp_path: Path) -> None:
    made("LongbirdForMaskedLM").save_pretrained(tmp_path)
    load = lb.LongbirdForTokenClassification.from_pretrained
    assert load(tmp_path, num_labels=20_000).classifier.out_features == 20_000


def test_a_head_that_does_not_fit_the_configuration_beside_it(tmp_path: Path) -> None:
    made("LongbirdForTokenClassification").save_pretrained(tmp_path)
    edit(tmp_path, id2label={"0": "a", "1": "b", "2": "c"}, label2id=None)
    with pytest.raises(
        ValueError, match=r"do not fit its configuration:\n.*\[2\] in the file, \[3\]"
    ):
        lb.LongbirdForTokenClassification.from_pretrained(tmp_path)
    assert lb.LongbirdForSequenceClassification.from_pretrained(tmp_path).config.num_labels == 3


# ---- settings of generate


@pytest.mark.parametrize("text", ["{", "[]", "\0", '{"a": 1, "a": 2}'])
@pytest.mark.parametrize("name", ["LongbirdForCausalLM", "LongbirdForConditionalGeneration"])
def test_settings_of_generate_that_cannot_be_read(name: str, text: str, tmp_path: Path) -> None:
    made(name).save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text(text)
    with pytest.raises(ValueError, match=r"generation_config\.json"):
        getattr(lb, name).from_pretrained(tmp_path)


def test_settings_of_generate_are_kept(tmp_path: Path) -> None:
    model = made("LongbirdForCausalLM")
    model.generation_config.max_new_tokens = 7
    model.save_pretrained(tmp_path)
    assert lb.LongbirdForCausalLM.from_pretrained(tmp_path).generation_config.max_new_tokens == 7


# ---- MPNet's buckets


@pytest.mark.parametrize("buckets", [33, 64])
def test_more_buckets_than_mpnet_looks_at(buckets: int, tmp_path: Path) -> None:
    config = configuration("mpnet", relative_attention_num_buckets=buckets)
    theirs = theirs_of("mpnet", "LongbirdForMaskedLM", config)
    theirs.save_pretrained(tmp_path / "mpnet")
    ids = torch.arange(10, 90)[None] % 60 + 10
    with torch.no_grad():
        expected = theirs(ids).logits
        ours = lb.LongbirdForMaskedLM.from_pretrained(tmp_path / "mpnet")
        torch.testing.assert_close(ours(ids).logits, expected, atol=2e-5, rtol=0)
    certificate = lb.convert_checkpoint(tmp_path / "mpnet", tmp_path / "long", 600)
    (cut,) = (record for record in certificate.tensors if record.status == "cut")
    assert (cut.before, cut.after) == ([buckets, 2], [32, 2])


def test_fewer_buckets_than_mpnet_looks_at(tmp_path: Path) -> None:
    config = configuration("mpnet", relative_attention_num_buckets=16)
    theirs_of("mpnet", "LongbirdModel", config).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"looks up 32 buckets.*=16.*expected 32 or more"):
        lb.LongbirdModel.from_pretrained(tmp_path)


@pytest.mark.parametrize("source", ["bert", "roberta", "longformer", "longbird"])
@pytest.mark.parametrize("stored", [{}, {"num_labels": 3}, {"id2label": {0: "x", 1: "y"}}])
def test_names_of_labels_are_those_of_the_caller(
    source: str, stored: dict[str, Any], tmp_path: Path
) -> None:
    """As transformers has it, which people fine-tune with: num_labels beside id2label."""
    head = "LongbirdForSequenceClassification"
    ours = source == "longbird"
    model = (
        made(head, **stored) if ours else theirs_of(source, head, configuration(source, **stored))
    )
    model.save_pretrained(tmp_path)
    named = {"id2label": {0: "a", 1: "b", 2: "c", 3: "d"}}
    named["label2id"] = {"a": 0, "b": 1, "c": 2, "d": 3}  # type: ignore[assignment]
    for given in (named, {"num_labels": 4, **named}):
        model = lb.LongbirdForSequenceClassification.from_pretrained(tmp_path, **given)
        assert model.config.id2label == named["id2label"]
        assert model.config.label2id == named["label2id"]
        assert model.config.num_labels == 4


@pytest.mark.parametrize("options", [{"strict": False}, {"ignore_mismatched_sizes": True}])
@pytest.mark.parametrize("width", [64, 1024])
def test_another_width_goes_on_where_that_is_allowed(
    options: dict[str, Any], width: int, tmp_path: Path
) -> None:
    sizes = {"vocab_size": 40, "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
    lb.LongbirdModel(lb.LongbirdConfig(**sizes, intermediate_size=8)).save_pretrained(tmp_path)
    model = lb.LongbirdModel.from_pretrained(tmp_path, hidden_size=width, **options)
    assert model.pooler.weight.shape == (width, width)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"random_blocks": "x"}, ValueError, "random_blocks must be one of seeded"),
        ({"random_blocks": ["x"]}, ValueError, "random_blocks must be one of seeded"),
        ({"config": 3}, TypeError, "config must be a LongbirdConfig, received 3"),
        ({"output_loading_info": True}, TypeError, "output_loading_info"),
    ],
)
def test_options_are_checked_for_every_family(
    options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    sizes = {"vocab_size": 40, "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
    transformers.BertModel(transformers.BertConfig(**sizes, intermediate_size=8)).save_pretrained(
        tmp_path
    )
    for load in (lb.load_checkpoint, lambda path, cls, **more: cls.from_pretrained(path, **more)):
        with pytest.raises(error, match=message):
            load(tmp_path, lb.LongbirdModel, **options)
