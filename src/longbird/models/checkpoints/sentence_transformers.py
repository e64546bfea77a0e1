"""The files that sentence-transformers reads beside a model, which state how it pools.

With them, `SentenceTransformer(folder)` computes the embeddings of `LongbirdForEmbedding`. Nothing
of sentence-transformers is imported.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers.utils import logging

from longbird.errors import InvalidValueError
from longbird.models import LongbirdForEmbedding
from longbird.models.checkpoints.files import read_json

MODULES = (
    ("", "sentence_transformers.base.modules.transformer.Transformer"),
    ("1_Pooling", "sentence_transformers.sentence_transformer.modules.pooling.Pooling"),
    ("2_Normalize", "sentence_transformers.base.modules.normalize.Normalize"),
)
"""Folder and class of each step, as version 6 writes them."""

POOLING = {"mean": "mean", "first": "cls"}
"""The names of pooling in Longbird and in sentence-transformers, which has no global tokens."""

CARD = """---
library_name: sentence-transformers
pipeline_tag: feature-extraction
tags: [longbird]
---

This model was saved by Longbird (`pip install longbird`). Import Longbird before you load it, so
that transformers knows the model type `longbird`:

```python
import longbird
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
```

Without `import longbird`, transformers does not recognize the model type and advises to upgrade
transformers, which does not help.
"""
"""The model card. transformers cannot find Longbird by itself: see docs/adr/0018-models.md."""

logger = logging.get_logger(__name__)


@dataclass(frozen=True)
class Pipeline:
    """The pipeline of sentence-transformers that the files in a folder describe."""

    folder: Path
    """The folder of the pooling step."""
    modes: list[str]
    """The kinds of pooling, in the words of sentence-transformers."""
    normalized: bool
    """Whether embeddings have length 1, as those of `LongbirdForEmbedding` always have."""

    @property
    def pooling(self) -> str:
        """The kind of pooling, in Longbird's words.

        Raises:
            ValueError: `LongbirdForEmbedding` does not have this kind of pooling.
        """
        ours = {theirs: ours for ours, theirs in POOLING.items()}
        if len(self.modes) != 1 or self.modes[0] not in ours:
            raise InvalidValueError(
                f"{self.folder} has the pooling {', '.join(self.modes)}; LongbirdForEmbedding has "
                f"{', '.join(ours)}: choose one with `pooling` ({', '.join(POOLING)}), "
                "or `task=model`"
            )
        return ours[self.modes[0]]


def write_sentence_transformers(model: Any, folder: Path, *, card: bool) -> None:
    """Write the files for a model for embeddings, with a model card if `card` is true.

    A line is logged if sentence-transformers does not have the kind of pooling.
    """
    if not isinstance(model, LongbirdForEmbedding):
        return
    config = model.config
    of_text = config.pooling == "mean" or not config.num_global_tokens
    if config.pooling not in POOLING or not of_text:
        logger.warning(
            "sentence-transformers has no pooling over added global tokens, so that "
            "SentenceTransformer(...) takes this folder for a model with mean pooling"
        )
        return
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": kind}
        for number, (path, kind) in enumerate(MODULES)
    ]
    _write(folder / "modules.json", modules)
    settings: dict[str, Any] = {
        "transformer_task": "feature-extraction",
        "modality_config": {
            "text": {"method": "forward", "method_output_name": "last_hidden_state"}
        },
        "module_output_name": "token_embeddings",
    }
    if config.positions != "none":
        settings["max_seq_length"] = config.longest_document
    _write(folder / "sentence_bert_config.json", settings)
    pooling = {"embedding_dimension": config.hidden_size, "pooling_mode": POOLING[config.pooling]}
    _write(folder / "1_Pooling" / "config.json", {**pooling, "include_prompt": True})
    _write(folder / "2_Normalize" / "config.json", {})
    if card:
        (folder / "README.md").write_text(CARD, "utf-8")


def read_pipeline(folder: Path) -> Pipeline | None:
    """Read the files in a folder; None if there are none.

    Raises:
        ValueError: There is a step that `LongbirdForEmbedding` does not have.
    """
    file = folder / "modules.json"
    if not file.is_file():
        return None
    try:
        steps = [
            (str(x["type"]).rpartition(".")[2], str(x["path"])) for x in read_json(file, list)
        ]
    except (KeyError, TypeError):
        raise InvalidValueError(
            f"{file} must be a list of modules with a type and a path"
        ) from None
    kinds = [kind for kind, _ in steps]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise InvalidValueError(
            f"{file} has the steps {', '.join(kinds)}; LongbirdForEmbedding has a transformer, "
            "pooling and normalisation. `task=model` takes the first alone"
        )
    place = Path(steps[1][1])
    if len(place.parts) != 1 or place.name in ("..", "."):  # it could lead anywhere
        raise InvalidValueError(f"{file} names the folder {place}; expected one beside it")
    modes = _modes(read_json(folder / place / "config.json"))
    return Pipeline(folder / place, modes, "Normalize" in kinds)


def _modes(settings: dict[str, Any]) -> list[str]:
    """The kinds of pooling, as versions from 6 on or earlier versions write them."""
    if "pooling_mode" in settings:
        modes = settings["pooling_mode"]
        return [str(x) for x in modes] if isinstance(modes, list) else [str(modes)]
    prefix = "pooling_mode_"
    names = [k.removeprefix(prefix) for k, x in settings.items() if k.startswith(prefix) and x]
    return [name.removesuffix("_tokens").removesuffix("_token") for name in names] or ["mean"]


def _write(file: Path, content: Any) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
