"""The real sentence-transformers loads, encodes, trains and saves our models."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from theirs import large_weights

import longbird as lb
from longbird.models.checkpoints.sentence_transformers import read_pipeline

TEXTS = ["a bird", "the quick brown fox jumps over it " * 5, "no", "", "sparse graphs are graphs"]
SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def sentence_transformer(folder: Path, **options: Any) -> Any:
    from sentence_transformers import SentenceTransformer  # takes seconds to import

    return SentenceTransformer(str(folder), device="cpu", **options)


def add_tokenizer(folder: Path, length: int) -> Any:
    """A WordPiece tokenizer of letters."""
    letters = [x for letter in "abcdefghijklmnopqrstuvwxyz" for x in (letter, f"##{letter}")]
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters]))
    tokenizer = hf.BertTokenizer.from_pretrained(folder, model_max_length=length)
    tokenizer.save_pretrained(folder)
    return tokenizer


def embedder(folder: Path, **fields: Any) -> Any:
    """A model for embeddings with large weights, saved with a tokenizer."""
    fields = {**SIZES, "max_position_embeddings": 200, "sep_token_id": 3, **fields}
    model = lb.LongbirdForEmbedding(
        lb.LongbirdConfig(**fields, graph=lb.bigbird(block=8, random=1))
    ).eval()
    large_weights(model)
    model.save_pretrained(folder)
    add_tokenizer(folder, 190)
    return model


def embeddings(folder: Path) -> torch.Tensor:
    """What `LongbirdForEmbedding` gives."""
    model = lb.LongbirdForEmbedding.from_pretrained(folder)
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return torch.cat(
            [
                model(**tokenizer(text, truncation=True, return_tensors="pt")).embeddings
                for text in TEXTS
            ]
        )


def check_same(folder: Path, found: Any) -> None:
    encoded = found.encode(TEXTS, convert_to_tensor=True, batch_size=3)
    torch.testing.assert_close(encoded, embeddings(folder), atol=1e-6, rtol=0)
    ours = torch.from_numpy(lb.Embedder.from_pretrained(folder).embed(TEXTS).vectors)
    torch.testing.assert_close(encoded, ours, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"pooling": "first"},
        {"positions": "padding-aware", "pad_token_id": 0},
        {"positions": "none", "relative_buckets": 32},
        {"num_global_tokens": 4},
    ],
)
def test_encodings_are_those_of_the_model_for_embeddings(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    model = embedder(tmp_path, **fields)
    found = sentence_transformer(tmp_path)
    check_same(tmp_path, found)
    expected = (
        min(model.config.longest_document, 200) if fields.get("positions") != "none" else 190
    )
    assert found.max_seq_length == expected
    assert found.get_embedding_dimension() == 32
    found.save(str(tmp_path / "again"))
    again = sentence_transformer(tmp_path / "again")
    check_same(tmp_path, again)


def test_a_folder_without_its_files(tmp_path: Path) -> None:
    """sentence-transformers then takes the mean, and looks at the annotation of `forward`."""
    config = lb.LongbirdConfig(**SIZES, max_position_embeddings=200, graph=lb.Full())
    model = lb.LongbirdModel(config).eval()
    large_weights(model)
    model.save_pretrained(tmp_path)
    tokenizer = add_tokenizer(tmp_path, 200)
    assert not (tmp_path / "modules.json").exists()
    with torch.no_grad():
        expected = model(**tokenizer(TEXTS[1], return_tensors="pt")).last_hidden_state.mean(1)
    found = sentence_transformer(tmp_path).encode(TEXTS[1], convert_to_tensor=True)
    torch.testing.assert_close(found, expected[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("fields", [{"pooling": "globals"}, {"pooling": "first"}])
def test_pooling_over_added_tokens_has_no_counterpart(
    fields: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        embedder(tmp_path, num_global_tokens=3, **fields)
    assert "no pooling over added global tokens" in caplog.text
    assert not (tmp_path / "modules.json").exists()


@pytest.mark.slow  # trains
# What sentence-transformers and datasets are told by others.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")
def test_training(tmp_path: Path) -> None:
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    embedder(tmp_path / "start")
    model = sentence_transformer(tmp_path / "start")
    before = {name: x.clone() for name, x in model.state_dict().items()}
    pairs = [(word, f"{word} {word}") for word in ("bird", "graph", "token", "block") * 4]
    data = Dataset.from_dict({"anchor": [a for a, _ in pairs], "positive": [b for _, b in pairs]})
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path / "run"),
        max_steps=4,
        per_device_train_batch_size=4,
        learning_rate=1e-3,
        report_to=[],
        use_cpu=True,
        save_steps=4,
        disable_tqdm=True,
        logging_steps=1,
    )
    loss = MultipleNegativesRankingLoss(model)
    trainer = SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=loss)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 4
    assert losses[-1] < losses[0]
    moved = [name for name, x in model.state_dict().items() if not torch.equal(x, before[name])]
    assert len(moved) > len(before) // 2
    model.save(str(tmp_path / "trained"))
    encoded = model.encode(TEXTS, convert_to_tensor=True)
    for folder in ("trained", "run/checkpoint-4"):
        again = sentence_transformer(tmp_path / folder).encode(TEXTS, convert_to_tensor=True)
        torch.testing.assert_close(again, encoded, atol=1e-6, rtol=0)
    # And back: what it saved is a model for embeddings, and any other.
    torch.testing.assert_close(embeddings(tmp_path / "trained"), encoded, atol=1e-6, rtol=0)


# ---- convert


def short(folder: Path, family: str = "Bert") -> Any:
    """A model of transformers with a tokenizer."""
    more = {"max_position_embeddings": 64 if family == "Bert" else 66, "pad_token_id": 0}
    config = getattr(hf, f"{family}Config")(**SIZES, **more)
    model = getattr(hf, f"{family}Model")(config).eval()
    large_weights(model)
    model.save_pretrained(folder)
    add_tokenizer(folder, 64)
    return model


def add_pipeline(folder: Path, *steps: str, **pooling: Any) -> None:
    """The files as sentence-transformers wrote them for years."""
    paths = [f"{number}_{step}" if number else "" for number, step in enumerate(steps)]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{step}"}
        for i, (path, step) in enumerate(zip(paths, steps, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    for path in paths[1:]:
        (folder / path).mkdir(exist_ok=True)
    (folder / paths[1] / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 32, **pooling})
    )
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 48, "do_lower_case": True})
    )
    prompts = {"prompts": {"query": "find a "}, "default_prompt_name": None}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))


CLS = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}


@pytest.mark.parametrize("family", ["Bert", "Roberta", "MPNet"])
def test_converted_models(family: str, tmp_path: Path) -> None:
    short(tmp_path / "short", family)
    lb.convert_checkpoint(
        tmp_path / "short", tmp_path / "long", 150, task="embedding", graph=lb.Window(8)
    )
    found = sentence_transformer(tmp_path / "long")
    assert found.max_seq_length == 150
    check_same(tmp_path / "long", found)


def test_a_converted_pipeline_pools_as_the_source_does(tmp_path: Path) -> None:
    short(tmp_path / "short")
    add_pipeline(tmp_path / "short", "Transformer", "Pooling", "Normalize", **CLS)
    certificate = lb.convert_checkpoint(
        tmp_path / "short", tmp_path / "long", 150, task="embedding", graph=lb.Full()
    )
    assert "prompts" in " ".join(certificate.tokenizer)
    source, found = (sentence_transformer(tmp_path / name) for name in ("short", "long"))
    assert (source.max_seq_length, found.max_seq_length) == (48, 150)
    texts = ["A Bird", "graphs"]
    for options in ({}, {"prompt_name": "query"}):
        expected = source.encode(texts, convert_to_tensor=True, **options)
        given = found.encode(texts, convert_to_tensor=True, **options)
        torch.testing.assert_close(given, expected, atol=2e-6, rtol=0)
        for name in ("short", "long"):
            embedder = lb.Embedder.from_pretrained(tmp_path / name)
            ours = embedder.embed_queries(texts) if options else embedder.embed(texts).vectors
            torch.testing.assert_close(torch.from_numpy(ours), expected, atol=2e-6, rtol=0)
    assert lb.LongbirdForEmbedding.from_pretrained(tmp_path / "long").config.pooling == "first"


def test_a_pipeline_without_normalisation_is_noted(tmp_path: Path) -> None:
    short(tmp_path / "short")
    add_pipeline(tmp_path / "short", "Transformer", "Pooling", pooling_mode_mean_tokens=True)
    certificate = lb.convert_checkpoint(
        tmp_path / "short", tmp_path / "long", 150, task="embedding"
    )
    assert "length 1" in " ".join(certificate.tokenizer)
    source = sentence_transformer(tmp_path / "short").encode(TEXTS[:1], convert_to_tensor=True)
    ours = lb.Embedder.from_pretrained(tmp_path / "short").embed(TEXTS[:1]).vectors
    assert abs(source.norm() - 1) > 0.01  # vectors of any length, and ours are the same
    torch.testing.assert_close(torch.from_numpy(ours), source, atol=1e-5, rtol=0)


def test_pipelines_that_have_no_counterpart(tmp_path: Path) -> None:
    folder, out = tmp_path / "short", tmp_path / "long"
    short(folder)
    convert: Any = lb.convert_checkpoint
    add_pipeline(folder, "Transformer", "Pooling", "Dense")
    with pytest.raises(ValueError, match=r"steps Transformer, Pooling, Dense.*`task=model`"):
        convert(folder, out, 150, task="embedding")
    convert(folder, tmp_path / "alone", 150, task="model")  # as the message says
    add_pipeline(folder, "Transformer", "Pooling", pooling_mode_max_tokens=True)
    with pytest.raises(ValueError, match=r"pooling max; .*`pooling` .mean, first"):
        convert(folder, out, 150, task="embedding")
    convert(folder, tmp_path / "mean", 150, task="embedding", pooling="mean")
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["path"] = "../elsewhere"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ValueError, match="expected one beside it"):
        convert(folder, out, 150, task="embedding")
    for text in ("{}", "[3]", '[{"type": 3}]'):
        (folder / "modules.json").write_text(text)
        with pytest.raises(ValueError, match=r"modules\.json"):
            convert(folder, out, 150, task="embedding")
    assert not out.exists()


def test_the_model_card_names_the_import(tmp_path: Path) -> None:
    model = embedder(tmp_path)
    card = tmp_path / "README.md"
    assert "import longbird" in card.read_text()
    card.write_text("mine")
    model.save_pretrained(tmp_path)
    assert card.read_text() == "mine"


def test_a_folder_that_sentence_transformers_saved_is_read(tmp_path: Path) -> None:
    embedder(tmp_path / "own", pooling="first")
    sentence_transformer(tmp_path / "own").save(str(tmp_path / "saved"))
    pipeline = read_pipeline(tmp_path / "saved")
    assert pipeline is not None
    assert (pipeline.pooling, pipeline.normalized) == ("first", True)
