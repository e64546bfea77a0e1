"""A model small enough to be trained in a second, and files to train it on."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
import tokenizers
import torch
import transformers

WORDS = "the a of to in sun rain snow wind ship sail port deck iron gold coal salt".split()
ABOUT = {"sea": ["ship", "sail", "port", "deck"], "mine": ["iron", "gold", "coal", "salt"]}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of 64 positions with its tokenizer."""
    folder = tmp_path_factory.mktemp("tiny")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = {word: number for number, word in enumerate([*special, *WORDS])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_attention_heads=2, num_hidden_layers=2,
        intermediate_size=32, max_position_embeddings=64,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty documents of 5 to 150 words about two subjects."""
    drawn, file = random.Random(0), tmp_path_factory.mktemp("table") / "train.csv"
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(["text", "label"])
        for number in range(40):
            label = ["sea", "mine"][number % 2]
            words = drawn.choices(WORDS[:9] + 4 * ABOUT[label], k=drawn.randint(5, 150))
            writer.writerow([" ".join(words), label])
    return file
