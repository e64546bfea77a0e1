"""How a name table works: patterns of module names, ours and theirs, and the tensors under them.

A table maps our module names to theirs; `*` stands for the number of a layer. A tensor has the
name of its module and ".weight" or ".bias" behind it (a table may also name a tensor itself).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

Table = Mapping[str, str]


@dataclass(frozen=True)
class Family:
    """A foreign model type: its names and its configuration."""

    model_type: str
    """As `config.json` says it."""
    prefix: str
    """Of the names of the encoder in models with a head."""
    body: Table
    """Our names in the model without a head, and theirs."""
    heads: Mapping[str, Table]
    """By our class: names outside of the body. A name of the body may be given again, where a
    head keeps it elsewhere."""
    architectures: Mapping[str, str]
    """By our class: theirs."""
    read: Callable[[Any, str], dict[str, Any]]
    """(their configuration, random_blocks) to the fields of ours."""
    write: Callable[[Any], dict[str, Any]]
    """Our configuration to the fields of theirs."""
    copies: Table = field(default_factory=dict)
    """Tensors of theirs that are stored twice: a name, and the name of what it is a copy of."""
    unused: tuple[str, ...] = ()
    """Patterns of tensors of theirs that have no use in ours, such as buffers."""
    base: str = "longbird."
    """Of the names of our body in models with a head."""

    def table(self, model_class: str) -> dict[str, str]:
        """All names of a model: ours to theirs, with prefixes."""
        if model_class not in self.architectures:
            raise ValueError(
                f"{self.model_type} has no counterpart of {model_class}; it has those of "
                f"{', '.join(sorted(self.architectures))}"
            )
        base = model_class in ("LongbirdModel", "LongbirdSeq2SeqModel")
        ours, theirs = ("", "") if base else (self.base, self.prefix)
        body = {ours + name: theirs + other for name, other in self.body.items()}
        return {**body, **self.heads.get(model_class, {})}


def renamed(tensors: Mapping[str, Tensor], table: Table) -> dict[str, Tensor]:
    """The tensors under their new names; those without one keep a name in angle brackets."""
    rules = [(_pattern(old), new) for old, new in table.items()]
    out: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        for pattern, new in rules:
            if (match := pattern.fullmatch(name)) is not None:
                *numbers, tail = match.groups()
                parts = new.split("*")
                # "*" stands as often in the one name as in the other.
                mixed = parts[0] + "".join(n + p for n, p in zip(numbers, parts[1:], strict=True))
                if mixed + tail in out:
                    raise ValueError(f"{name} and another tensor of the file are both {mixed}")
                out[mixed + tail] = tensor
                break
        else:
            out[f"<{name}>"] = tensor
    return out


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Does the name match one of the patterns?"""
    return any(_pattern(pattern).fullmatch(name) for pattern in patterns)


def _pattern(name: str) -> re.Pattern[str]:
    number = re.escape(name).replace(r"\*", r"(\d+)")
    return re.compile(number + r"((?:\.weight|\.bias)?)")
