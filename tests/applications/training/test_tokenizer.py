"""Tokenizers learned from files: what AutoTokenizer loads is what was trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from longbird.applications.training.initialisation.tokenizer import KINDS, train_tokenizer

TEXT = "Der Fluß trägt schwere Kähne, und das Café am Ufer ist naß.\n" * 20


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lowercase", [False, True])
def test_auto_tokenizer_loads_it(kind: str, lowercase: bool, tmp_path: Path) -> None:
    file, out = tmp_path / "text.txt", tmp_path / "tokenizer"
    file.write_text(TEXT)
    train_tokenizer([file], out, vocabulary=320, kind=kind, lowercase=lowercase)
    tokenizer = AutoTokenizer.from_pretrained(out)
    assert [tokenizer.convert_ids_to_tokens(number) for number in range(5)] == [
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
    ]  # fmt: skip
    assert sorted(tokenizer.all_special_ids) == [0, 1, 2, 3, 4]
    assert (tokenizer.pad_token_id, tokenizer.mask_token_id) == (0, 4)
    ids = tokenizer("Das Café", "am Fluß")
    assert [ids["input_ids"][0], ids["input_ids"].count(3), ids["input_ids"][-1]] == [2, 2, 3]
    assert max(ids["token_type_ids"]) == 1
    line = TEXT.splitlines()[0]
    back = tokenizer.decode(tokenizer(line)["input_ids"], skip_special_tokens=True)
    assert back.replace(" ", "") == (line.lower() if lowercase else line).replace(" ", "")
    # Accents are letters of the language: they stay, in small letters too.
    assert "é" in back
    assert 1 not in tokenizer(line)["input_ids"]


def test_a_character_in_two_parts_is_one(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text(TEXT)
    tokenizer = train_tokenizer([file], tmp_path / "out", vocabulary=300)
    assert tokenizer("Café")["input_ids"] == tokenizer("Cafe\u0301")["input_ids"]


def test_columns(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps({"body": word, "by": "zzz"}) + "\n" for word in "ab"))
    lines: list[str] = []
    tokenizer = train_tokenizer([file], tmp_path / "out", say=lines.append)
    assert "body" in lines[0]
    assert 1 not in tokenizer("a b")["input_ids"]
    assert 1 in tokenizer("zzz")["input_ids"]


def test_what_cannot_be(tmp_path: Path) -> None:
    file, out = tmp_path / "text.txt", tmp_path / "out"
    file.write_text(" \n")
    with pytest.raises(ValueError, match=r"text.txt has no text"):
        train_tokenizer([file], out)
    assert not out.exists()
    with pytest.raises(ValueError, match="one of wordpiece, bpe, unigram, received word"):
        train_tokenizer([file], out, kind="word")
    with pytest.raises(ValueError, match="between 261 and"):
        train_tokenizer([file], out, kind="bpe", vocabulary=100)
    with pytest.raises(FileNotFoundError, match="no file"):
        train_tokenizer([tmp_path / "no.txt"], out)
    out.mkdir()
    (out / "other").touch()
    with pytest.raises(FileExistsError, match="name a new folder"):
        train_tokenizer([file], out)
