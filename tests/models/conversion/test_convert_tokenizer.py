"""The tokenizer comes along, and cuts at the new length alone."""

from __future__ import annotations

from pathlib import Path

import transformers as hf
from short_models import make

import longbird as lb
from longbird.models.conversion import convert_checkpoint


def test_the_tokenizer_cuts_at_the_new_length_alone(short: Path, tmp_path: Path) -> None:
    before = {file.name: file.read_bytes() for file in short.iterdir()}
    certificate = convert_checkpoint(short, tmp_path / "long", 150)
    assert {file.name: file.read_bytes() for file in short.iterdir()} == before
    notes = " ".join(certificate.tokenizer)
    assert "model_max_length was 64" in notes
    assert "is 150" in notes
    assert "at 16 tokens" in notes
    tokenizer = hf.AutoTokenizer.from_pretrained(tmp_path / "long")
    assert type(tokenizer) is hf.BertTokenizer
    assert len(tokenizer("a " * 120).input_ids) == 122
    assert len(tokenizer("a " * 500, truncation=True).input_ids) == 150
    from tokenizers import Tokenizer

    assert (
        len(Tokenizer.from_file(str(tmp_path / "long" / "tokenizer.json")).encode("a " * 120))
        > 100
    )
    assert lb.LongbirdConfig.from_pretrained(tmp_path / "long").sep_token_id == 3


def test_a_tokenizer_that_does_not_say_its_class(short: Path, tmp_path: Path) -> None:
    (short / "tokenizer_config.json").unlink()
    convert_checkpoint(short, tmp_path / "long", 150)
    tokenizer = hf.AutoTokenizer.from_pretrained(tmp_path / "long")
    assert type(tokenizer) is hf.BertTokenizer
    assert tokenizer.model_max_length == 150


def test_a_source_without_a_tokenizer(tmp_path: Path) -> None:
    make(tmp_path / "short", "BertModel")
    certificate = convert_checkpoint(tmp_path / "short", tmp_path / "long", 150)
    assert certificate.tokenizer == ["The source has no tokenizer."]
