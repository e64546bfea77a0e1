"""A folder to make longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from short_models import add_tokenizer, make


@pytest.fixture
def short(tmp_path: Path) -> Path:
    make(tmp_path / "short", "BertModel")
    add_tokenizer(tmp_path / "short")
    return tmp_path / "short"
