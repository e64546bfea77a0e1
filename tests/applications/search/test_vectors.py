"""Vectors in files, searching in them, and files that are something else."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embedding_models import make
from typer.testing import CliRunner

import longbird as lb
from longbird.applications.documents import UnreadableError
from longbird.applications.documents import file_reader as reading
from longbird.applications.search import nearest_vectors
from longbird.applications.search.nearest_vectors import nearest
from longbird.applications.search.vector_files import writing_vectors
from longbird.applications.search.vectors import Vectors
from longbird.cli.app import app

TEXTS = {
    "mill.txt": "The mill was built. It closed.\n\nToday it is é museum 😀. It is open.",
    "birds.md": "# Birds\n\nA bird sings. Birds fly.",
    "one.txt": "word",
}


@pytest.mark.parametrize("top", [1, 7, 1000])
@pytest.mark.parametrize("normalized", [True, False])
def test_nearest_against_brute_force(
    top: int, normalized: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In quarters, so that products are exact and many are equal."""
    monkeypatch.setattr(nearest_vectors, "PIECE", 64)
    numbers = np.random.default_rng(0)
    vectors = numbers.integers(-2, 3, (300, 4)).astype(np.float32) / 4
    queries = numbers.integers(-2, 3, (5, 4)).astype(np.float32)
    exact = queries.astype(np.float64) @ vectors.T.astype(np.float64)
    if not normalized:
        exact /= np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)
    found, scores = nearest(queries, vectors, top, normalized=normalized)
    np.testing.assert_allclose(scores, -np.sort(-exact, axis=1)[:, :top], atol=1e-6)
    for row in range(5):
        assert len(set(found[row].tolist())) == min(top, 300)
        np.testing.assert_allclose(exact[row, found[row]], scores[row], atol=1e-6)
        if normalized:  # the first of equal ones comes first
            assert found[row].tolist() == np.argsort(-exact[row], kind="stable")[:top].tolist()


def test_nearest_refuses_what_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="not finite"):
        nearest(np.ones((1, 2), np.float32), np.full((3, 2), np.nan, np.float32), 2)
    found = nearest(np.ones((1, 2), np.float32), np.zeros((0, 2), np.float32), 2)
    assert found[0].shape == (1, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    make(folder / "model")
    (folder / "texts").mkdir()
    for name, text in TEXTS.items():
        (folder / "texts" / name).write_text(text, "utf-8")
    return folder


@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_files_to_vectors_and_back(folder: Path, tmp_path: Path, ending: str) -> None:
    out, embedder = tmp_path / f"out.{ending}", lb.Embedder.from_pretrained(folder / "model")
    vectors = lb.embed_files([folder / "texts"], out, embedder, unit="sentence")
    expected = embedder.embed([TEXTS[name] for name in sorted(TEXTS)], "sentence")
    np.testing.assert_allclose(vectors.array, expected.vectors, atol=2e-6)
    for number in range(len(vectors)):
        row = vectors.row(number)
        text = TEXTS[Path(row["file"]).name]
        assert row["text"] == text[row["start"] : row["end"]]
        assert row["line"] == text[: row["start"]].count("\n") + 1
        assert row["page"] is None
    queries = embedder.embed_queries(["it closed", "birds"])
    with pytest.raises(ValueError, match=r"a whole number of at least 1, received 1\.5"):
        Vectors.load(out).search(["birds"], top=1.5)  # type: ignore[arg-type]
    found = Vectors.load(out).search(["it closed", "birds"], top=4)
    for query, hits in zip(queries, found, strict=True):
        scores = expected.vectors @ query
        assert [hit.number for hit in hits] == np.argsort(-scores, kind="stable")[:4].tolist()
        np.testing.assert_allclose(
            [hit.score for hit in hits], np.sort(scores)[::-1][:4], atol=2e-6
        )
    closed = next(
        hit for hit in Vectors.load(out).search(queries, 9)[0] if hit.text == "It closed."
    )
    assert closed.before == "The mill was built."
    assert closed.after == "Today it is é museum 😀."
    if ending == "npy":
        np.testing.assert_array_equal(np.load(out), vectors.array)  # anyone can read it
        assert sorted(each.name for each in tmp_path.iterdir()) == [
            "out.json", "out.jsonl", "out.npy",
        ]  # fmt: skip


def test_a_file_that_is_given_twice_has_no_neighbours_in_its_copy(
    folder: Path, tmp_path: Path
) -> None:
    embedder, file = lb.Embedder.from_pretrained(folder / "model"), folder / "texts" / "one.txt"
    vectors = lb.embed_files([file, file], tmp_path / "out.npy", embedder, unit="sentence")
    assert [(hit.before, hit.after) for hit in vectors.search(["word"], 2)[0]] == [("", "")] * 2


def test_nothing_is_overwritten_unasked(folder: Path, tmp_path: Path) -> None:
    out, model = tmp_path / "out.npy", folder / "model"
    lb.embed_files([folder / "texts" / "one.txt"], out, model)
    with pytest.raises(FileExistsError, match="`force=True`"):
        lb.embed_files([folder / "texts"], out, model)
    assert len(Vectors.load(out)) == 1
    assert len(lb.embed_files([folder / "texts"], out, model, force=True)) == 3


def test_what_fails_leaves_what_was_there(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, about = tmp_path / "out.npy", {"width": 2}
    with pytest.raises(KeyboardInterrupt), writing_vectors(out, about) as writer:
        writer.add(np.zeros((1, 2), np.float32), [{"file": "a"}])
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    lb.embed_files([folder / "texts"], out, folder / "model")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(KeyboardInterrupt), writing_vectors(out, about) as writer:
        raise KeyboardInterrupt
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before

    # A kill while files move: what is half there is not taken for vectors.
    real = os.replace

    def killed(source: Any, target: Any) -> None:
        real(source, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt), writing_vectors(out, about) as writer:
        writer.add(np.zeros((1, 2), np.float32), [{"file": "a"}])
    with pytest.raises(FileNotFoundError, match=r"no out\.json beside"):
        Vectors.load(out)


def test_another_model_cannot_search(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    lb.embed_files([folder / "texts"], out, folder / "model")
    make(tmp_path / "other", initializer_range=0.5, hidden_size=16)
    model = lb.LongbirdForEmbedding.from_pretrained(tmp_path / "other")
    model.longbird.embeddings.tokens.weight.data += 1
    model.save_pretrained(tmp_path / "other")
    with pytest.raises(ValueError, match="other weights or another tokenizer"):
        Vectors.load(out).checked(lb.Embedder.from_pretrained(tmp_path / "other"))
    shutil.copytree(folder / "model", tmp_path / "moved")  # the same model elsewhere
    Vectors.load(out).checked(lb.Embedder.from_pretrained(tmp_path / "moved"))


def test_files_that_are_something_else(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    vectors = np.array(lb.embed_files([folder / "texts"], out, folder / "model").array)
    for wrong, message in [
        (vectors.astype(np.float64), "float32"),
        (vectors[:2], "do not belong together"),
        (vectors[0], "float32"),
        (np.array([{"a": 1}], dtype=object), "cannot be read as an array"),
    ]:
        out.unlink()
        np.save(out, wrong, allow_pickle=True)
        with pytest.raises(ValueError, match=message):
            Vectors.load(out)
    out.unlink()
    np.save(out, vectors)
    whole = out.read_bytes()
    for cut in (whole[:-5], whole[:20], b"", b"text"):
        out.write_bytes(cut)
        with pytest.raises(ValueError, match="cannot be read as an array"):
            Vectors.load(out)
    out.write_bytes(whole)
    beside, rows = out.with_suffix(".json"), out.with_suffix(".jsonl")
    kept, about = rows.read_text(), json.loads(beside.read_text())
    del about["checksums"]  # written by an earlier version
    beside.write_text(json.dumps(about))
    for before, after in (('"start": 0', '"start": "0"'), ('"text": "', '"text": null, "was": "')):
        rows.write_text(kept.replace(before, after, 1))
        with pytest.raises(ValueError, match=r"out\.jsonl, line 1, is not a row"):
            Vectors.load(out, tell=lambda _: None).row(0)
    rows.write_text(kept)
    wrong = (json.dumps({**about, "width": str(about["width"])}).encode(), b"{}", b"\xff{}")
    for written in wrong:
        beside.write_bytes(written)
        with pytest.raises(ValueError, match="which model"):
            Vectors.load(out)
    with pytest.raises(ValueError, match=r"expected \.npy or \.parquet"):
        Vectors.load(tmp_path / "out.txt")
    with pytest.raises(FileNotFoundError):
        Vectors.load(tmp_path / "none.npy")


def test_vectors_and_rows_of_different_runs(folder: Path, tmp_path: Path) -> None:
    """Their numbers are the same, so that only checksums tell them apart."""
    file, out, other = tmp_path / "a.txt", tmp_path / "out.npy", tmp_path / "other.npy"
    for text, path in (("A bird sings. It is open.", out), ("Birds fly. It closed.", other)):
        file.write_text(text)
        lb.embed_files([file], path, folder / "model", unit="sentence")
    for ending in (".npy", ".jsonl"):
        kept = out.with_suffix(ending).read_bytes()
        shutil.copy(other.with_suffix(ending), out.with_suffix(ending))
        with pytest.raises(ValueError, match="written by different runs"):
            Vectors.load(out)
        out.with_suffix(ending).write_bytes(kept)
    about = json.loads(out.with_suffix(".json").read_text())
    del about["checksums"]  # written by an earlier version
    out.with_suffix(".json").write_text(json.dumps(about))
    with pytest.warns(UserWarning, match="earlier version of Longbird, without checksums"):
        assert len(Vectors.load(out).search(["bird"])[0]) == 2
    done = CliRunner().invoke(app, ["search", str(out), "bird"])
    assert done.exit_code == 0
    assert "without checksums" in done.stderr


def test_parquet_of_others(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "table.parquet"
    pq.write_table(pa.table({"file": ["a"], "vector": [[1.0]]}), file)
    with pytest.raises(ValueError, match="has no column page, line"):
        Vectors.load(file)
    file.write_bytes(b"PAR1 not really")
    with pytest.raises(ValueError, match="cannot be read as parquet"):
        Vectors.load(file)


@pytest.mark.slow  # embeds
def test_one_bad_file_among_many(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.touch()
    said: list[str] = []
    files = [empty, folder / "texts" / "one.txt"]
    vectors = lb.embed_files(files, tmp_path / "out.npy", folder / "model", say=said.append)
    assert len(vectors) == 1
    assert "empty.txt" in said[0]
    with pytest.raises(ValueError, match="is empty"):
        lb.embed_files([empty], tmp_path / "none.npy", folder / "model")
    assert not list(tmp_path.glob("*none*"))


def test_files_that_may_not_be_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, out = str(folder / "texts" / "one.txt"), tmp_path / "out.npy"
    opened = reading._open  # pyright: ignore[reportPrivateUsage]

    def refusing(name: str, limits: Any) -> Any:
        if name == locked:
            raise PermissionError(13, "Permission denied", name)
        return opened(name, limits)

    monkeypatch.setattr(reading, "_open", refusing)
    with pytest.raises(UnreadableError, match=r"Permission denied: .*one\.txt"):
        lb.embed_files([locked], out, folder / "model")
    said: list[str] = []
    files = [locked, folder / "texts" / "birds.md"]
    assert len(lb.embed_files(files, out, folder / "model", say=said.append)) == 1
    assert said == [f"skipped: Permission denied: {locked}"]
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt"):
        lb.embed_files([tmp_path / "nowhere.txt"], out, folder / "model", force=True)


def test_a_name_that_is_no_text(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"caf\xe9.txt")
    file.write_text("A bird sings.")
    vectors = lb.embed_files([file], tmp_path / "out.npy", folder / "model")
    assert vectors.row(0)["file"] == str(file)
    vectors = lb.embed_files([file], tmp_path / "out.parquet", folder / "model")
    assert vectors.row(0)["file"].endswith("caf\\udce9.txt")


def test_a_model_that_has_moved(folder: Path, tmp_path: Path) -> None:
    make(tmp_path / "model")
    out = tmp_path / "out.npy"
    lb.embed_files([folder / "texts" / "one.txt"], out, tmp_path / "model")
    (tmp_path / "model").rename(tmp_path / "moved")
    with pytest.raises(FileNotFoundError, match=r"not where it was.*`model`"):
        Vectors.load(out).search(["a bird"])
    done = CliRunner().invoke(
        app, ["search", str(out), "a bird", "--model", str(tmp_path / "moved")]
    )
    assert done.exit_code == 0, done.output


def test_many_units(folder: Path, tmp_path: Path) -> None:
    """In one document that is far longer than the model reads at once."""
    embedder = lb.Embedder.from_pretrained(folder / "model")
    found = embedder.embed(["It is. " * 2000], "sentence")
    assert len(found) == 2000
    assert found.ends[-1] == 13999
    assert np.isfinite(found.vectors).all()


@pytest.mark.slow  # embeds
def test_the_command(folder: Path, tmp_path: Path) -> None:
    run = CliRunner().invoke
    out, model = str(tmp_path / "out.npy"), str(folder / "model")
    texts = str(folder / "texts")
    done = run(app, ["embed", texts, "--out", out, "--unit", "sentence", "--model", model])
    assert done.exit_code == 0, done.output
    assert "8 vectors of 16 numbers" in done.stdout
    done = run(app, ["search", out, "It closed.", "bird", "--top", "3", "--json"])
    found = json.loads(done.stdout)
    assert [each["query"] for each in found] == ["It closed.", "bird"]
    assert [len(each["results"]) for each in found] == [3, 3]
    first = found[0]["results"][0]
    assert set(first) >= {"file", "page", "line", "start", "end", "text", "score"}
    done = run(app, ["search", out, "It closed."])
    assert "mill.txt, line 1" in done.stdout
    assert "**It closed.**" in done.stdout
    for line, message in [
        (["embed", texts, "--out", out, "--model", model], "`force=True`"),
        (["embed", "nowhere.txt", "--out", out], "there is no file"),
        (["embed", texts, "--out", "x.csv"], r"expected .npy"),
        (["search", out, " "], "at least one word"),
        (["search", str(tmp_path / "no.npy"), "a"], "there is no file"),
    ]:
        assert message in str(run(app, line).exception), line
