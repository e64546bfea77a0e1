"""Certificates are true, and what is not exact is not written."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from short_models import GRAPH, records

import longbird as lb
from longbird.models.conversion import convert_checkpoint


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
    assert saved["graph"] == ["Full()", str(GRAPH)]
    assert saved["tokens"] == [64, 150]
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
    with pytest.raises(ValueError, match="not finite" if broken else "was not written"):
        convert_checkpoint(short, tmp_path / "out" / "long", tolerance=1.0 if broken else 1e-12)
    assert not (tmp_path / "out").exists()
