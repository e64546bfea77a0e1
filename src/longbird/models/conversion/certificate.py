"""The certificate of a conversion: its tensors, and the measured differences of its outputs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass
from math import inf, isnan
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.models.config import LongbirdConfig


@dataclass(frozen=True)
class TensorRecord:
    """What happened to one tensor."""

    status: str
    """One of copied, extended, cut, new and left out."""
    name: str | None
    """Its name in the new model."""
    origin: str | None
    """Its name in the source."""
    before: list[int] | None
    after: list[int] | None

    def texts(self) -> tuple[str, str, str]:
        """Return its status, name and shape for the report."""
        name = f"`{str(self.name or self.origin).removeprefix('longbird.')}`"
        if self.status == "copied":  # a global projection, from another place
            name += f" of `{str(self.origin).split('.')[-2]}`"
        shapes = dict.fromkeys("x".join(map(str, x)) for x in (self.before, self.after) if x)
        return self.status, name, " to ".join(shapes)


@dataclass(frozen=True)
class Difference:
    """The largest difference of outputs from those of the original, in one batch."""

    documents: list[int]
    """Number of tokens of each document; shorter ones are padded."""
    original_graph: float
    new_graph: float | str
    """For information; the reason if the graph does not exist at this length."""
    largest_output: float


@dataclass(frozen=True)
class Certificate:
    """What `longbird.convert_checkpoint` did and measured; pairs are before and after."""

    source: str
    sha256: dict[str, str]
    model: tuple[str, str]
    tokens: tuple[int, int]
    graph: tuple[str, str]
    tensors: list[TensorRecord]
    differences: list[Difference]
    tolerance: float
    tokenizer: list[str]
    versions: dict[str, str]

    @property
    def exact(self) -> bool:
        """Whether every difference with the graph of the original is within the tolerance."""
        return all(measured.original_graph <= self.tolerance for measured in self.differences)

    @property
    def worst(self) -> Difference:
        """The largest difference with the graph of the original; NaN counts as the largest."""
        return max(
            self.differences,
            key=lambda x: inf if isnan(x.original_graph) else x.original_graph,
        )

    def json(self) -> str:
        """Return the whole certificate as JSON."""
        return json.dumps(asdict(self), indent=1) + "\n"

    def markdown(self) -> str:
        """Return a report: tensors are counted, and named if they were not simply copied."""
        counts = Counter(record.status for record in self.tensors)
        special = Counter(  # one line for the same tensor of all layers
            tuple(re.sub(r"\.\d+\.", ".*.", text) for text in record.texts())
            for record in self.tensors
            if record.status != "copied" or "_global." in str(record.name)
        )
        measured = [
            (
                " + ".join(map(str, documents)),
                *(x if isinstance(x, str) else f"{x:.1e}" for x in xs),
            )
            for documents, *xs in map(astuple, self.differences)
        ]
        largest = max(measured.original_graph for measured in self.differences)
        files = [
            *self.tokenizer,
            *(
                f"{name} of the source has the sha256 {value}"
                for name, value in self.sha256.items()
            ),
            "Made with " + ", ".join(f"{name} {number}" for name, number in self.versions.items()),
        ]
        parts = [
            f"# Certificate: {self.source} made longer",
            _table(
                ("", "before", "after"),
                ((name, *getattr(self, name)) for name in ("model", "tokens", "graph")),
            ),
            "## Tensors: " + ", ".join(f"{count} {status}" for status, count in counts.items()),
            _table(("", "tensor", "shape", "times"), ((*k, v) for k, v in special.items())),
            f"## Largest difference from the outputs of the original: {largest:.1e}",
            f"In float32; {self.tolerance:.0e} is allowed with the graph of the original. With "
            "the new graph, tokens of all but short documents see fewer tokens, as intended.",
            _table(("tokens", "graph of the original", "new graph", "largest output"), measured),
            "## Files",
            "\n".join(f"- {line}" for line in files),
        ]
        return "\n\n".join(parts) + "\n"


def differences(
    original: Any,
    exact: Any,
    sparse: Any,
    longest: int,
    *,
    outputs: Iterable[str] | None = None,
    choices: bool = False,
) -> Iterator[Difference]:
    """Compare models at several lengths, some of them odd, and on a padded batch.

    Args:
        original: A model of transformers, or of Longbird.
        exact: The new model with the graph of the original.
        sparse: The new model.
        longest: Number of tokens that the original has positions for.
        outputs: Names of the outputs to compare; by default all that the models share, and the
            last hidden states.
        choices: Whether the models take documents as [batch, choices, n].
    """
    lengths = sorted({1, min(37, longest), max(longest // 2, 1) | 1, longest}, reverse=True)
    given: dict[str, Any] = {"choices": choices, "pooling": exact.config.pooling}
    for documents in [lengths, *([n] for n in lengths)]:
        inputs, kept = _batch(documents, exact.config)
        theirs = _outputs(original, inputs, kept, **given)
        names = set(theirs if outputs is None else outputs)

        size = max(theirs[name].abs().max().item() for name in names)
        same = _largest(theirs, _outputs(exact, inputs, kept, **given), names)
        try:
            new_graph = _largest(theirs, _outputs(sparse, inputs, kept, **given), names)
        except ValueError as error:  # such as a global token beyond the end of a short document
            new_graph = str(error)
        yield Difference(documents, same, new_graph, size)


def _largest(theirs: dict[str, Tensor], ours: dict[str, Tensor], names: set[str]) -> float:
    parts = [(theirs[name] - ours[name]).abs().max() for name in names & set(ours)]
    return torch.stack(parts).max().item()  # NaN if there is one


def _batch(documents: list[int], config: LongbirdConfig) -> tuple[dict[str, Tensor], Tensor]:
    """Random documents of these lengths as inputs, and the mask of their tokens."""
    n, pad = max(documents), config.pad_token_id or 0
    column = torch.arange(n).expand(len(documents), n)
    kept = column < torch.tensor(documents)[:, None]
    generator = torch.Generator().manual_seed(n)
    ids = torch.randint(config.vocab_size - 1, kept.shape, generator=generator)
    ids = torch.where(kept, ids + (ids >= pad), pad)  # no padding within documents
    inputs = {"input_ids": ids, "attention_mask": kept.long()}
    if config.type_vocab_size > 1:
        inputs["token_type_ids"] = (column >= n // 2).long()
    if config.global_projections:
        inputs["global_attention_mask"] = (column == 0).long()
    return inputs, kept


def _outputs(
    model: Any, inputs: Mapping[str, Tensor], kept: Tensor, *, choices: bool, pooling: str
) -> dict[str, Tensor]:
    """All outputs that are tensors, without padding."""
    if model.config.model_type != "longbird":
        inputs = {name: x for name, x in inputs.items() if name != "global_attention_mask"}
    if choices:
        inputs = {name: x[:, None] for name, x in inputs.items()}
    with torch.no_grad():
        given = model(**inputs, output_hidden_states=True)
    found = {name: x for name, x in given.items() if isinstance(x, Tensor)}
    last = found["last_hidden_state"] = given.hidden_states[-1]
    if "embeddings" not in found:  # as sentence-transformers computes them
        mean = (last * kept[..., None]).sum(1) / kept.sum(1, keepdim=True)
        found["embeddings"] = F.normalize(last[:, 0] if pooling == "first" else mean, dim=-1)
    return {name: x[kept] if x.shape[:2] == kept.shape else x for name, x in found.items()}


def _table(header: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(str(x).replace("|", r"\|") for x in line) + " |" for line in lines
    )
