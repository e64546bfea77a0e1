"""Folders that tests load."""

from __future__ import annotations

from pathlib import Path

import pytest
import transformers
from folders import SMALL

import longbird


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    """A folder with a small BERT."""
    transformers.BertModel(transformers.BertConfig(**SMALL)).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a small model of ours."""
    config = longbird.LongbirdConfig(**SMALL, graph=longbird.Full())
    longbird.LongbirdModel(config).save_pretrained(tmp_path / "own")
    return tmp_path / "own"


@pytest.fixture(params=["bert", "own"])
def folder(request: pytest.FixtureRequest) -> Path:
    """A folder with a model, of transformers and of ours."""
    return request.getfixturevalue(request.param)
