"""A few dozen words, and a tokenizer that knows only these."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import tokenizers
import transformers

WORDS = [f"{a}{b}" for a in ("sun", "rain", "ship", "port", "iron", "gold") for b in "abcdefgh"]
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def write_tokenizer(folder: Path, more: Iterable[str]) -> int:
    """Writes a tokenizer of WORDS and `more`, in small letters, and gives their number."""
    every = {word: number for number, word in enumerate([*SPECIAL, *WORDS, *more])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(every, unk_token="[UNK]"))
    words.normalizer = tokenizers.normalizers.Lowercase()
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )  # fmt: skip
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    ).save_pretrained(folder)  # fmt: skip
    return len(every)
