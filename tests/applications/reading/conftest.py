"""A reader that looks for numbers, without any training: what it must answer is known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tokenizers
import torch
import transformers

import longbird as lb

LENGTH = 128


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """Splits at spaces and punctuation, and knows a few words."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    known = ["zero", "one", "yes", "no", ".", "?", "the", "mine", "ship"]
    words = {word: number for number, word in enumerate([*special, *known])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip


class Finder(torch.nn.Module):
    """Says what is written on it: the word `zero` is the answer, its sentence supports it."""

    def __init__(self, zero: int, **params: Any) -> None:
        super().__init__()
        self.zero, self.seen = zero, list[dict[str, torch.Tensor]]()
        self.config = SimpleNamespace(
            num_answer_types=4, supporting_sentences=True, longest_document=LENGTH,
            first_position=0, task_specific_params={"question-answering": params},
        )  # fmt: skip

    def forward(self, **batch: torch.Tensor) -> Any:
        """Logits as `LongbirdForQuestionAnswering` gives them."""
        self.seen.append(batch)
        ids, places = batch["input_ids"], batch["sentence_positions"]
        hit = (ids == self.zero).float() * 10
        there = hit.amax(1)
        following = places.clone()
        following[:, :-1] = places[:, 1:]
        sentences = torch.full(places.shape, -5.0)
        for row, column in zip(*torch.where(hit > 0), strict=True):
            before = [c for c in places[row].tolist() if 0 <= c <= int(column)]
            if before:
                sentences[row, places[row].tolist().index(max(before))] = 5.0
        return SimpleNamespace(
            start_logits=hit,
            end_logits=hit,
            answer_type_logits=torch.stack(
                [there, torch.zeros_like(there), torch.zeros_like(there), 5 - there], 1
            ),
            sentence_logits=sentences.masked_fill(places < 0, -1e6),
        )


@pytest.fixture
def finder(tokenizer: Any) -> lb.Reader:
    """A reader with that model."""
    zero = tokenizer.convert_tokens_to_ids("zero")
    return lb.Reader(Finder(zero, no_answer=0.0, positions="paragraph"), tokenizer)


@pytest.fixture(scope="session")
def small_reader(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a real model with random weights."""
    folder = tmp_path_factory.mktemp("reader")
    torch.manual_seed(3)
    config = lb.LongbirdConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_attention_heads=2, num_hidden_layers=2,
        intermediate_size=32, max_position_embeddings=LENGTH, num_answer_types=4,
        supporting_sentences=True, graph="bigbird(block=16)", type_vocab_size=2,
        initializer_range=0.5,
    )  # fmt: skip
    config.task_specific_params = {
        "question-answering": {
            "positions": "paragraph",
            "no_answer": 0.0,
            "support": 0.4,
            "confidence": {"weights": [0.1] * 10, "bias": 0.0, "least": 0.0},
        }
    }
    lb.LongbirdForQuestionAnswering(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
