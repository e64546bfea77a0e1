"""Small models for embeddings, saved with a tokenizer of letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers as hf
from theirs import large_weights

import longbird as lb

LENGTH = 40


def make(folder: Path, **fields: Any) -> Any:
    """One of Longbird, which reads 40 tokens at once."""
    config = lb.LongbirdConfig(
        **{
            "vocab_size": 60, "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2,
            "intermediate_size": 24, "max_position_embeddings": LENGTH, "sep_token_id": 3,
            "graph": lb.Window(5), **fields,
        }
    )  # fmt: skip
    model = lb.LongbirdForEmbedding(config).eval()
    large_weights(model)
    model.save_pretrained(folder)
    add_tokenizer(folder)
    return model


def add_tokenizer(folder: Path) -> None:
    letters = [x for letter in "abcdefghijklmnopqrstuvwxyz" for x in (letter, f"##{letter}")]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, "."]
    (folder / "vocab.txt").write_text("\n".join(words))
    hf.BertTokenizer.from_pretrained(folder, model_max_length=LENGTH).save_pretrained(folder)
