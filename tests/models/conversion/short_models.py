"""Small models of transformers to make longer, and how certificates are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers as hf

import longbird as lb
from longbird.models.conversion import Certificate

SIZES = {
    "vocab_size": 200,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
}
CONFIGS = {
    "Bert": lambda **more: hf.BertConfig(**SIZES, max_position_embeddings=64, **more),
    "Roberta": lambda **more: hf.RobertaConfig(**SIZES, max_position_embeddings=66, **more),
    "MPNet": lambda **more: hf.MPNetConfig(**SIZES, max_position_embeddings=66, **more),
}
GRAPH = lb.bigbird(block=8, random=1)


def make(folder: Path, name: str, **more: Any) -> Any:
    """A model of transformers with random weights, saved; its class begins with its family."""
    torch.manual_seed(0)
    family = next(family for family in CONFIGS if name.startswith(family))
    model = getattr(hf, name)(CONFIGS[family](**more)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms too, which would be 0 and 1
            parameter.normal_(std=0.1).add_(1.0 if parameter.ndim == 1 else 0.0)
    model.save_pretrained(folder)
    return model


def add_tokenizer(folder: Path) -> None:
    """A WordPiece tokenizer of letters that cuts at 64 tokens, twice over."""
    letters = [
        x for letter in "abcdefghijklmnopqrstuvwxyz.,0123456789" for x in (letter, f"##{letter}")
    ]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = hf.BertTokenizer.from_pretrained(folder, model_max_length=64)
    tokenizer("a", truncation=True, max_length=16)  # which tokenizer.json remembers
    tokenizer.save_pretrained(folder)
    assert json.loads((folder / "tokenizer.json").read_text())["truncation"]["max_length"] == 16


def records(certificate: Certificate, status: str) -> list[str]:
    found = [record for record in certificate.tensors if record.status == status]
    return [str(record.name or record.origin) for record in found]


def ids_of(*lengths: int) -> tuple[torch.Tensor, torch.Tensor]:
    kept = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.where(kept, torch.randint(4, 200, kept.shape), 1), kept
