"""How a name table works: patterns of module names, ours and theirs, and the tensors under them.

A table maps our module names to theirs; `*` stands for the number of a layer. A tensor has the
name of its module and ".weight" or ".bias" behind it (a table may also name a tensor itself).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from longbird.errors import InvalidValueError
from longbird.models.pretrained import LongbirdPreTrainedModel

Table = Mapping[str, str]
ModelClass = type[LongbirdPreTrainedModel]
Value = TypeVar("Value")


@dataclass(frozen=True)
class NameMap:
    """Which tensor is which."""

    origins: dict[str, str]
    """By the new name: the name before."""
    unknown: list[str]
    """Names that no pattern of the table matches."""


def map_names(names: Iterable[str], table: Table) -> NameMap:
    """What a table of patterns (old: new) makes of names.

    Raises:
        ValueError: Two of the names would be one.
    """
    rules = [(_pattern(old), new) for old, new in table.items()]
    origins: dict[str, str] = {}
    unknown: list[str] = []
    for name in names:
        new = next((x for x in (_replaced(name, *rule) for rule in rules) if x is not None), None)
        if new is None:
            unknown.append(name)
        elif new in origins:
            raise InvalidValueError(f"{name} and {origins[new]} would both become {new}")
        else:
            origins[new] = name
    return NameMap(origins, unknown)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Does the name match one of the patterns?"""
    return any(_pattern(pattern).fullmatch(name) for pattern in patterns)


def _replaced(name: str, pattern: re.Pattern[str], new: str) -> str | None:
    match = pattern.fullmatch(name)
    if match is None:
        return None
    *numbers, tail = match.groups()
    first, *rest = new.split("*")
    # "*" stands as often in the one name as in the other.
    return first + "".join(n + part for n, part in zip(numbers, rest, strict=True)) + tail


def _pattern(name: str) -> re.Pattern[str]:
    number = re.escape(name).replace(r"\*", r"(\d+)")
    return re.compile(number + r"((?:\.weight|\.bias)?)")


def for_class(values: Mapping[ModelClass, Value], model_class: ModelClass) -> Value | None:
    """What stands for a class, or for the nearest class that it inherits from."""
    return next((values[each] for each in model_class.__mro__ if each in values), None)


@dataclass(frozen=True)
class Family:
    """A foreign model type: its names and its configuration."""

    model_type: str
    """As `config.json` says it."""
    prefix: str
    """Of the names of the body (the model without a head) in models with a head."""
    base: ModelClass
    """Our model without a head."""
    body: Table
    """Our names in the model without a head, and theirs."""
    heads: Mapping[ModelClass, Table]
    """By our class: names outside of the body. A name of the body may be given again, where a
    head keeps it elsewhere."""
    architectures: Mapping[ModelClass, str]
    """By our class: the name of theirs."""
    read: Callable[[Any, str], dict[str, Any]]
    """(their configuration, random_blocks) to the fields of ours."""
    write: Callable[[Any], dict[str, Any]]
    """Our configuration to the fields of theirs."""
    copies: Table = field(default_factory=dict)
    """Tensors of theirs that are stored twice: a name, and the name of what it is a copy of."""
    unused: tuple[str, ...] = ()
    """Patterns of tensors of theirs that have no use in ours, such as buffers."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Our tensors of which theirs may have more rows than their code ever looks at."""

    def table(self, model_class: ModelClass) -> dict[str, str]:
        """All names of a model: ours to theirs, with prefixes."""
        if model_class.config_class.model_type != self.base.config_class.model_type:
            raise self.no_counterpart(model_class)
        whole = issubclass(model_class, self.base)
        ours, theirs = ("", "") if whole else (f"{self.base.base_model_prefix}.", self.prefix)
        body = {ours + name: theirs + other for name, other in self.body.items()}
        return {**body, **(for_class(self.heads, model_class) or {})}

    def no_counterpart(self, model_class: ModelClass) -> ValueError:
        """The error for a class that the family does not have."""
        known = sorted(each.__name__ for each in self.architectures)
        return ValueError(
            f"{self.model_type} has no counterpart of {model_class.__name__}; it has those of "
            f"{', '.join(known)}"
        )

    def ours(self, names: Collection[str], model_class: ModelClass) -> NameMap:
        """The tensors of a file under our names; copies and what is of no use are left out."""
        origins = self._originals(names)
        table = {theirs: ours for ours, theirs in self.table(model_class).items()}
        # A model without a head is stored without the prefix, and may be loaded into one with a
        # head; and the other way round.
        for theirs, ours in list(table.items()):
            if theirs.startswith(self.prefix):
                table.setdefault(theirs.removeprefix(self.prefix), ours)
        if issubclass(model_class, self.base):
            table.update({self.prefix + theirs: ours for theirs, ours in table.items()})
        mapped = map_names(origins, table)
        return NameMap(
            {ours: origins[name] for ours, name in mapped.origins.items()},
            [origins[name] for name in mapped.unknown],
        )

    def is_head(self, name: str, prefixed: bool) -> bool:
        """Does a tensor belong to a head, or is it a pooler?

        Args:
            name: Its name.
            prefixed: Do the names of the body have their prefix in this file?
        """
        bare = name.removeprefix(self.prefix)
        if "pooler" in self.body and matches(bare, [self.body["pooler"]]):
            return True
        if prefixed:
            return not name.startswith(self.prefix)
        return any(matches(name, table.values()) for table in self.heads.values())

    def _originals(self, names: Collection[str]) -> dict[str, str]:
        """The names of today, and what the file has for each."""
        origins: dict[str, str] = {}
        for name in names:
            # What was once converted from TensorFlow names the parts of a norm as TensorFlow does.
            modern = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
            modern = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", modern)
            if modern in origins:
                raise InvalidValueError(
                    f"the file has a tensor under two names: {name} and {modern}"
                )
            origins[modern] = name
        for copy, original in self.copies.items():
            if copy in origins:
                copied = origins.pop(copy)
                origins.setdefault(original, copied)  # what is stored under its own name counts
        return {k: v for k, v in origins.items() if not matches(k, self.unused)}


def with_originals(model: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    """What a file has by name, and each tied tensor also under the name that it is tied to.

    A file holds a tensor with several names once, under any of them.
    """
    ties = model.all_tied_weights_keys
    return {**{ties[name]: x for name, x in found.items() if name in ties}, **found}
