"""Makes all-MiniLM-L6-v2 (512 tokens) a model for long documents, and embeds one whole.

    python examples/convert_minilm.py long-minilm
    python examples/convert_minilm.py long-minilm --length 16384 --document report.txt

Without --document it reads the licence of this repository.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from transformers import AutoTokenizer

import longbird as lb
from longbird.files.sources import minilm

LICENCE = Path(__file__).parents[1] / "LICENSE"
QUESTIONS = (
    "Under which terms may this software be copied and changed?",
    "Who is liable for damages, and is there a warranty?",
    "How is sourdough bread baked?",
)


def main(arguments: list[str] | None = None) -> None:
    """Converts, then compares a document with three questions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--length", type=int, default=4096, help="tokens of the longest document")
    parser.add_argument("--document", type=Path, default=LICENCE, help="a text file")
    parser.add_argument("--source", type=Path, help="a BERT other than MiniLM")
    options = parser.parse_args(arguments)

    certificate = lb.convert_checkpoint(
        options.source or minilm.path(), options.out, options.length, task="embedding"
    )
    print(certificate.markdown())

    tokenizer = AutoTokenizer.from_pretrained(options.out)
    model = lb.LongbirdForEmbedding.from_pretrained(options.out)

    def embed(texts: list[str], length: int) -> torch.Tensor:
        batch = tokenizer(
            texts, truncation=True, max_length=length, padding=True, return_tensors="pt"
        )
        with torch.no_grad():
            return model(**batch).embeddings

    text = options.document.read_text(encoding="utf-8")
    whole = tokenizer(text, truncation=True).input_ids
    short, long = certificate.tokens
    first, every = embed([text], short)[0], embed([text], long)[0]
    print(f"{options.document.name}: {len(whole)} tokens\n")
    print(f"its first {short}  all {len(whole)}  (cosine)")
    for question, vector in zip(QUESTIONS, embed(list(QUESTIONS), long), strict=True):
        print(f"{first @ vector:13.3f}{every @ vector:9.3f}  {question}")


if __name__ == "__main__":
    main()
