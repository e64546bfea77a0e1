"""Converted models equal those of transformers up to their length."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file
from short_models import CONFIGS, GRAPH, ids_of, make, records

import longbird as lb
from longbird.models.conversion import convert_checkpoint


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
    assert certificate.model == (name, ours)
    assert certificate.tokens == (64, 150)
    assert certificate.exact
    assert not records(certificate, "new")

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
    assert len(converted.config.layer_graphs) == 2
    assert converted.config.graph != lb.Full()
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
    assert len(copied) == 2 * 3 * 2
    assert {r.status for r in copied} == {"copied"}
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
