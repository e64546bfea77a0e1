"""Vectors of documents and of their parts, against plain loops over what the model says."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from embedding_models import LENGTH, add_tokenizer, make
from theirs import large_weights

import longbird as lb
from longbird.applications.documents.windows import owned, windows
from longbird.applications.search import text_tokens
from longbird.applications.search.embedder import Embedder
from longbird.applications.search.text_tokens import tokenized
from longbird.files import sources as data

SHORT = ["a bird", "no", "Sparse graphs.", "", "wordß 😀 é abc"]
LONG = "one two three. four five six.\n\nseven eight. " * 12
ODD = "Ünder. 😀😀 bird. \u4e2d\u6587 graph.\n\n \n\nlast one"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    make(folder)
    return folder


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Embedder:
    return Embedder.from_pretrained(folder)


def by_hand(folder: Path, text: str) -> tuple[Any, list[tuple[int, int]]]:
    """What the model says of each token, [n, w], where each stands, and [CLS] and [SEP]."""
    model = lb.LongbirdModel.from_pretrained(folder)
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    found = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
    ids, offsets = found["input_ids"], found["offset_mapping"]
    states = torch.zeros(len(ids), 16)
    edges = torch.zeros(2, 16)
    places = windows(0, len(ids), LENGTH - 2)
    for (a, b), (first, last) in zip(places, owned(places), strict=True):
        with torch.no_grad():
            said = model(torch.tensor([[2, *ids[a:b], 3]])).last_hidden_state[0]
        states[first:last] = said[1 + first - a : 1 + last - a]
        edges = torch.stack([said[0] if a == 0 else edges[0], said[-1]])
    return torch.cat([states, edges]), offsets


def unit_length(x: Any) -> Any:
    return (x / x.norm()).numpy()


@pytest.mark.parametrize("texts", [SHORT, [LONG, *SHORT, LONG[:90]]], ids=["short", "mixed"])
def test_documents_are_means_over_all_tokens(
    folder: Path, embedder: Embedder, texts: list[str]
) -> None:
    found = embedder.embed(texts)
    assert found.documents.tolist() == list(range(len(texts)))
    assert found.vectors.dtype == np.float32
    assert found.vectors.shape == (len(texts), 16)
    for number, text in enumerate(texts):
        states, _ = by_hand(folder, text)
        np.testing.assert_allclose(found.vectors[number], unit_length(states.mean(0)), atol=2e-6)
        assert (found.starts[number], found.ends[number]) == (0, len(text))
    assert (found.passages > 1).tolist() == [text is LONG or len(text) > 80 for text in texts]


def test_short_documents_are_those_of_the_model(folder: Path, embedder: Embedder) -> None:
    model = lb.LongbirdForEmbedding.from_pretrained(folder)
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    found = embedder.embed(SHORT).vectors
    with torch.no_grad():
        expected = model(**tokenizer(SHORT, padding=True, return_tensors="pt")).embeddings
    np.testing.assert_allclose(found, expected.numpy(), atol=2e-6)


@pytest.mark.parametrize("unit", ["sentence", "paragraph"])
@pytest.mark.parametrize("text", [LONG, ODD, "word", "x" * 300], ids=["long", "odd", "one", "x"])
def test_parts_are_means_over_their_own_tokens(
    folder: Path, embedder: Embedder, unit: str, text: str
) -> None:
    found = embedder.embed(["before", text], unit)
    states, offsets = by_hand(folder, text)
    mine = found.documents == 1
    assert mine.sum() > 0
    for vector, start, end in zip(
        found.vectors[mine], found.starts[mine], found.ends[mine], strict=True
    ):
        inside = [n for n, (a, b) in enumerate(offsets) if a < end and b > start]
        np.testing.assert_allclose(vector, unit_length(states[inside].mean(0)), atol=2e-6)
        assert text[start:end].strip() == text[start:end] != ""


def test_parts_of_ones_own_in_any_order(folder: Path, embedder: Embedder) -> None:
    text = LONG[:200]
    parts = [(50, 120), (0, 200), (3, 3), (60, 61), (0, 7)]
    found = embedder.embed([text], units=[parts])
    kept = [parts[0], parts[1], *([parts[3]] if text[60:61].strip() else []), parts[4]]
    assert list(zip(found.starts.tolist(), found.ends.tolist(), strict=True)) == kept
    states, offsets = by_hand(folder, text)
    for vector, (start, end) in zip(found.vectors, kept, strict=True):
        inside = [n for n, (a, b) in enumerate(offsets) if a < end and b > start]
        np.testing.assert_allclose(vector, unit_length(states[inside].mean(0)), atol=2e-6)
    for wrong in ([(0, 201)], [(5, 4)], [(-1, 4)]):
        with pytest.raises(ValueError, match="units of text 0"):
            embedder.embed([text], units=[wrong])
    with pytest.raises(ValueError, match="one list of pairs for each"):
        embedder.embed([text, text], units=[parts])


def test_alone_is_as_if_there_were_no_other_part(embedder: Embedder) -> None:
    found = embedder.embed([LONG, ODD], "sentence", context="alone")
    parts = [
        (LONG, ODD)[number][start:end]
        for number, start, end in zip(found.documents, found.starts, found.ends, strict=True)
    ]
    np.testing.assert_allclose(found.vectors, embedder.embed(parts).vectors, atol=2e-6)
    together = embedder.embed([LONG, ODD], "sentence")
    assert together.starts.tolist() == found.starts.tolist()
    assert np.abs(together.vectors - found.vectors).max() > 0.01


@pytest.mark.parametrize("unit", ["document", "sentence", "paragraph"])
def test_nothing_to_embed(embedder: Embedder, unit: str) -> None:
    assert embedder.embed([], unit).vectors.shape == (0, 16)
    found = embedder.embed(["", "  \n\n ", "\u200b"], unit)
    assert len(found) == (3 if unit == "document" else 0)
    assert np.isfinite(found.vectors).all()
    assert found.tokens.tolist() == [0, 0, 0]


def test_half_of_a_surrogate_pair_is_read_as_a_character(embedder: Embedder) -> None:
    found = embedder.embed(["a \udce9 bird", "a ? bird"])
    np.testing.assert_allclose(*found.vectors, atol=2e-6)


def test_how_many_at_once_changes_nothing(embedder: Embedder) -> None:
    texts = [LONG, *SHORT, ODD, LONG[:150]]
    expected = embedder.embed(texts, "sentence", tokens_at_once=1)
    for most in (50, 10000):
        found = embedder.embed(texts, "sentence", tokens_at_once=most)
        assert found.documents.tolist() == expected.documents.tolist()
        np.testing.assert_allclose(found.vectors, expected.vectors, atol=2e-6)


def test_a_prompt_is_read_and_is_in_no_part(folder: Path, embedder: Embedder) -> None:
    with_prompt = embedder.embed(["bird graph"], prompt="find: ").vectors
    np.testing.assert_allclose(
        with_prompt, embedder.embed(["find: bird graph"]).vectors, atol=2e-6
    )
    states, _ = by_hand(folder, "find: bird graph")
    parts = embedder.embed(["bird graph"], units=[[(0, 4)]], prompt="find: ")
    inside = states[5:9].mean(0)  # f i n d : b i r d
    np.testing.assert_allclose(parts.vectors[0], unit_length(inside), atol=2e-6)
    with pytest.raises(ValueError, match="more than half"):
        embedder.embed(["bird"], prompt="x" * 60)


def test_a_model_that_takes_its_first_token(tmp_path: Path) -> None:
    make(tmp_path, pooling="first")
    embedder = Embedder.from_pretrained(tmp_path)
    model = lb.LongbirdForEmbedding.from_pretrained(tmp_path)
    tokenizer = hf.AutoTokenizer.from_pretrained(tmp_path)
    with torch.no_grad():
        expected = model(**tokenizer(SHORT, padding=True, return_tensors="pt")).embeddings
    np.testing.assert_allclose(embedder.embed(SHORT).vectors, expected.numpy(), atol=2e-6)
    with pytest.raises(ValueError, match="`context=alone`"):
        embedder.embed(SHORT, "sentence")
    assert len(embedder.embed(["One. Two."], "sentence", context="alone")) == 2
    assert np.isfinite(embedder.embed([LONG]).vectors).all()


def test_a_short_bert_is_made_longer_in_memory(tmp_path: Path) -> None:
    config = hf.BertConfig(
        vocab_size=60, hidden_size=16, num_attention_heads=2, num_hidden_layers=2,
        intermediate_size=24, max_position_embeddings=LENGTH,
    )  # fmt: skip
    theirs = hf.BertModel(config).eval()
    large_weights(theirs)
    theirs.save_pretrained(tmp_path)
    add_tokenizer(tmp_path)
    before = sorted(tmp_path.iterdir())
    embedder = Embedder.from_pretrained(tmp_path)
    assert embedder.length == 4096
    assert sorted(tmp_path.iterdir()) == before
    tokenizer = hf.AutoTokenizer.from_pretrained(tmp_path)
    with torch.no_grad():
        states = theirs(**tokenizer(SHORT[0], return_tensors="pt")).last_hidden_state[0]
    found = embedder.embed([SHORT[0], LONG])
    np.testing.assert_allclose(found.vectors[0], unit_length(states.mean(0)), atol=2e-6)
    assert found.passages.tolist() == [1, 1]
    assert Embedder.from_pretrained(tmp_path, length=LENGTH).embed([LONG]).passages[0] > 1


def test_a_model_by_name_is_one_for_embeddings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = hf.MPNetConfig(
        vocab_size=60, hidden_size=16, num_attention_heads=2, num_hidden_layers=2,
        intermediate_size=24, max_position_embeddings=LENGTH, pad_token_id=1,
    )  # fmt: skip
    theirs = hf.MPNetModel(config).eval()
    theirs.save_pretrained(tmp_path)
    add_tokenizer(tmp_path)
    said = json.loads((tmp_path / "config.json").read_text())
    said["architectures"] = ["MPNetForMaskedLM"]  # as all-mpnet-base-v2 has it
    (tmp_path / "config.json").write_text(json.dumps(said))
    with pytest.raises(ValueError, match="not trained for embeddings"):
        Embedder.from_pretrained(tmp_path)
    named: Any = data.NAMED
    monkeypatch.setitem(named, "mpnet", SimpleNamespace(path=lambda: tmp_path))
    assert Embedder.from_pretrained("mpnet").embed(["a bird"]).vectors.shape == (1, 16)


def test_runs_and_models_for_something_else(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make(run / "model")
    (run / "run.toml").write_text("")
    with pytest.raises(FileNotFoundError, match="not finished"):
        Embedder.from_pretrained(run)
    (run / "result.json").write_text("{}")
    assert Embedder.from_pretrained(run).width == 16
    settings = json.loads((run / "model" / "sentence_bert_config.json").read_text())
    settings["max_seq_length"] = 20  # as a run with --length 20 writes it
    (run / "model" / "sentence_bert_config.json").write_text(json.dumps(settings))
    assert Embedder.from_pretrained(run).length == 20

    other = tmp_path / "other"
    model = lb.LongbirdForTokenClassification(
        lb.LongbirdForEmbedding.from_pretrained(run / "model").config
    )
    model.save_pretrained(other)
    add_tokenizer(other)
    with pytest.raises(ValueError, match="not trained for embeddings"):
        Embedder.from_pretrained(other)
    with pytest.raises(FileNotFoundError, match=r"no config\.json"):
        Embedder.from_pretrained(tmp_path)


def test_wrong_arguments(embedder: Embedder) -> None:
    given: Any = embedder
    with pytest.raises(TypeError, match="put it into a list"):
        given.embed("text")
    with pytest.raises(TypeError, match="texts must be text"):
        given.embed([3])
    with pytest.raises(ValueError, match="unit must be one of document, paragraph, sentence"):
        given.embed(["a"], unit="page")
    with pytest.raises(ValueError, match="context must be one of"):
        given.embed(["a"], context="none")


def test_long_texts_become_tokens_piece_by_piece(
    embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (LONG + ODD) * 30
    tokenizer = embedder.about.tokenizer
    whole = tokenized(text, tokenizer)
    monkeypatch.setattr(text_tokens, "AT_ONCE", 5000)
    pieces = tokenized(text, tokenizer)
    for name in ("ids", "starts", "ends"):
        assert np.array_equal(getattr(whole, name), getattr(pieces, name)), name
    assert len(tokenized("x" * 20000, tokenizer)) > 0
