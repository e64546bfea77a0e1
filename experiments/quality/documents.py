"""Documents of experiments: reading them from files, counting tokens, and cutting chunks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from longbird.applications.documents.windows import windows

Row = Mapping[str, Any]


def read_rows(file: Path) -> list[Row]:
    """Return the objects of a JSON lines file."""
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_rows(file: Path, rows: Iterable[Row]) -> Path:
    """Write a JSON lines file, and return its path."""
    with file.open("w", encoding="utf-8") as lines:
        for row in rows:
            lines.write(json.dumps(row) + "\n")
    return file


def tokens_of(texts: Sequence[str], tokenizer: Any) -> list[int]:
    """Return the number of tokens of each text, including special tokens."""
    return [len(ids) for ids in tokenizer(list(texts), verbose=False)["input_ids"]]


def chunks(text: str, tokenizer: Any, size: int) -> list[str]:
    """Cut a text into chunks of `size` tokens, special tokens included, that overlap by a quarter.

    Examples:
        >>> from longbird.files.sources import minilm
        >>> from transformers import AutoTokenizer
        >>> tokenizer = AutoTokenizer.from_pretrained(minilm.path())
        >>> chunks("one two three four five six", tokenizer, size=6)
        ['one two three four', 'three four five six']
    """
    special = tokenizer.num_special_tokens_to_add()
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    places = encoded["offset_mapping"]
    if not places:
        return [text]
    return [
        text[places[begin][0] : places[end - 1][1]]
        for begin, end in windows(0, len(places), size - special)
    ]
