"""The approximate index, against exact search."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from longbird.applications.search import nearest_vectors
from longbird.applications.search.nearest_vectors import nearest, nearest_by_index
from longbird.applications.search.vector_files import writing_vectors
from longbird.applications.search.vectors import Vectors

pytest.importorskip("usearch")


def vectors(count: int, seed: int) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal((count, 24)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_recall(tmp_path: Path) -> None:
    every, queries, file = vectors(3000, 0), vectors(50, 1), tmp_path / "x.usearch"
    exact, scores = nearest(queries, every, 10)
    for _ in range(2):  # built, then opened
        found, near = nearest_by_index(queries, every, 10, file, since=0, normalized=True)
        shared = [len({*a} & {*b}) for a, b in zip(found.tolist(), exact.tolist(), strict=True)]
        assert np.mean(shared) / 10 > 0.97
        products = np.einsum("qw,qtw->qt", queries, every[found])
        np.testing.assert_allclose(near, products, atol=1e-6)
        assert (np.diff(near, axis=1) <= 0).all()
        assert near.max() == pytest.approx(scores.max())


def test_every_vector_of_a_small_index_is_found(tmp_path: Path) -> None:
    """Threads that add to an empty graph at once would lose some."""
    for seed in range(20):
        every, file = vectors(300, seed), tmp_path / f"{seed}.usearch"
        found, _ = nearest_by_index(every, every, 1, file, since=0, normalized=True)
        assert found[:, 0].tolist() == list(range(300))


def test_an_old_or_broken_index(tmp_path: Path) -> None:
    every, file = vectors(300, 0), tmp_path / "x.usearch"
    nearest_by_index(every[:1], every, 1, file, since=0, normalized=True)
    other = vectors(300, 2)
    later = file.stat().st_mtime + 10
    found, _ = nearest_by_index(other[7:8], other, 1, file, since=later, normalized=True)
    assert found.tolist() == [[7]]
    os.utime(file, (later, later))  # of other vectors, and newer than these
    for _ in range(2):  # built again, then opened
        found, _ = nearest_by_index(every, every, 1, file, since=0, normalized=True)
        assert found[:, 0].tolist() == list(range(300))
    file.write_bytes(b"nothing")
    os.utime(file, (later, later))
    with pytest.raises(ValueError, match="delete it"):
        nearest_by_index(other[:1], other, 1, file, since=0, normalized=True)


def test_only_where_it_is_worth_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, every = tmp_path / "x.npy", vectors(400, 3)
    about = {
        "model": "none", "sha256": {}, "pooling": "mean", "normalized": True, "unit": "document",
        "context": "document", "width": 24,
    }  # fmt: skip
    row = {"file": "a", "page": None, "line": 1, "start": 0, "end": 1, "text": "a"}
    with writing_vectors(out, about) as writer:
        writer.add(every, [row] * 400)
    exact = Vectors.load(out).search(every[:3], 5, index=True)
    assert not out.with_suffix(".usearch").exists()
    monkeypatch.setattr(nearest_vectors, "WORTH", 100)
    found = Vectors.load(out).search(every[:3], 5, index=True)
    assert out.with_suffix(".usearch").exists()
    assert [hits[0].number for hits in found] == [hits[0].number for hits in exact] == [0, 1, 2]
