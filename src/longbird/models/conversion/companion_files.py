"""Copy the files beside the weights: the tokenizer, and those of sentence-transformers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from longbird.models.checkpoints.files import read_json
from longbird.models.checkpoints.sentence_transformers import Pipeline

# "*.model" is what sentencepiece calls its files.
TOKENIZER_FILES = ("tokenizer*", "vocab.*", "merges.txt", "*_tokens*.json", "*.model")
PROMPTS = "config_sentence_transformers.json"
SETTINGS = "sentence_bert_config.json"


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the files of a tokenizer in a folder."""
    files = {file for pattern in TOKENIZER_FILES for file in folder.glob(pattern)}
    return sorted(file for file in files if file.is_file())


def copy_tokenizer(tokenizer: Any, files: list[Path], written: Path, length: int) -> list[str]:
    """Copy the files of a tokenizer, raise its limits to `length`, and return notes on it."""
    if not files:
        return ["The source has no tokenizer."]
    for file in files:
        shutil.copyfile(file, written / file.name)
    notes = [f"Copied {', '.join(file.name for file in files)}."]
    file = written / "tokenizer_config.json"
    settings = {"tokenizer_class": type(tokenizer).__name__, "model_max_length": "not set"}
    settings |= read_json(file) if file.is_file() else {}
    if settings["model_max_length"] != length:
        notes.append(
            f"tokenizer_config.json: model_max_length was {settings['model_max_length']}, where "
            f"long documents were cut, and is {length}."
        )
    settings = {**settings, "model_max_length": length}
    file.write_text(json.dumps(settings, indent=1, ensure_ascii=False), "utf-8")
    file = written / "tokenizer.json"
    rules = read_json(file) if file.is_file() else {}
    if rules.get("truncation"):
        cut = rules["truncation"].get("max_length")
        notes.append(f"tokenizer.json: cut all documents at {cut} tokens, and no longer does.")
        file.write_text(json.dumps({**rules, "truncation": None}, ensure_ascii=False), "utf-8")
    return notes


def copy_pipeline(pipeline: Pipeline, folder: Path, written: Path) -> list[str]:
    """Copy the prompts and the lowercasing of sentence-transformers, and return notes on it.

    The files about pooling are written with the model.
    """
    notes: list[str] = []
    if not pipeline.normalized:
        notes.append("Embeddings have length 1; those of the source do not.")
    if (folder / PROMPTS).is_file():
        shutil.copyfile(folder / PROMPTS, written / PROMPTS)
        notes.append(f"Copied {PROMPTS}, where sentence-transformers finds its prompts.")
    before = read_json(folder / SETTINGS) if (folder / SETTINGS).is_file() else {}
    if before.get("do_lower_case") and (written / SETTINGS).is_file():
        settings = {**read_json(written / SETTINGS), "do_lower_case": True}
        (written / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
        notes.append(
            "sentence-transformers lowercases texts before they are tokenized; the tokenizer "
            "alone does not."
        )
    return notes
