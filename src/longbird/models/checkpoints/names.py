"""Tables that map our names of modules to those of other libraries, and back.

In a table, `*` stands for the number of a layer. The name of a tensor is that of its module,
followed by ".weight" or ".bias"; a table may also name a tensor itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from longbird.errors import InvalidValueError
from longbird.models.config import LongbirdConfig
from longbird.models.pretrained import LongbirdPreTrainedModel

Table = Mapping[str, str]


class ForeignConfig(Protocol):
    """A configuration of another library, whose fields differ between model types."""

    def __getattr__(self, name: str) -> Any:
        """Return the value of a field."""
        ...


ModelClass = type[LongbirdPreTrainedModel]
Value = TypeVar("Value")


@dataclass(frozen=True)
class NameMap:
    """The result of mapping names."""

    origins: dict[str, str]
    """The old names, by the new ones."""
    unknown: list[str]
    """Old names that no pattern of the table matches."""


def map_names(names: Iterable[str], table: Table) -> NameMap:
    """Map names by a table of patterns (old: new).

    Raises:
        ValueError: Two of the names map to one.
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
    """Return whether a name matches one of the patterns."""
    return any(_pattern(pattern).fullmatch(name) for pattern in patterns)


def _replaced(name: str, pattern: re.Pattern[str], new: str) -> str | None:
    match = pattern.fullmatch(name)
    if match is None:
        return None
    *numbers, tail = match.groups()
    first, *rest = new.split("*")
    # Both names have "*" the same number of times.
    return first + "".join(n + part for n, part in zip(numbers, rest, strict=True)) + tail


def _pattern(name: str) -> re.Pattern[str]:
    number = re.escape(name).replace(r"\*", r"(\d+)")
    return re.compile(number + r"((?:\.weight|\.bias)?)")


def for_class(values: Mapping[ModelClass, Value], model_class: ModelClass) -> Value | None:
    """Return the value for a class, or for the nearest class that it inherits from."""
    return next((values[each] for each in model_class.__mro__ if each in values), None)


@dataclass(frozen=True)
class Family:
    """A model type of another library: its names and its configuration."""

    model_type: str
    """The model type in `config.json`."""
    prefix: str
    """The prefix of the body (the model without a head) in models with a head."""
    base: ModelClass
    """Our model without a head."""
    body: Table
    """Our names in the model without a head, and those of the library."""
    heads: Mapping[ModelClass, Table]
    """The names outside of the body, by our class. They may replace a name of the body."""
    architectures: Mapping[ModelClass, str]
    """The names of the classes of the library, by our class."""
    fields: Table
    """Our fields of the configuration, and those of the library with the same meaning."""
    read_others: Callable[[ForeignConfig, str], dict[str, Any]]
    """Return our other fields, such as the graph, for a configuration and random_blocks."""
    write_others: Callable[[LongbirdConfig], dict[str, Any]]
    """Return other fields of the library, and raise if the model does not exist there."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Our fields that have the same value in all models of the family."""
    copies: Table = field(default_factory=dict)
    """Tensors that the library stores twice: the name of a copy, and that of the original."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Number of rows of tensors that may have more rows in a file than the library uses."""

    def read(self, theirs: ForeignConfig, random_blocks: str) -> dict[str, Any]:
        """Translate a configuration of the library into fields of ours."""
        shared = {ours: getattr(theirs, name) for ours, name in self.fields.items()}
        return {**shared, **self.constants, **self.read_others(theirs, random_blocks)}

    def write(self, ours: LongbirdConfig) -> dict[str, Any]:
        """Translate a configuration of ours into fields of the library."""
        others = self.write_others(ours)
        return {**{name: getattr(ours, mine) for mine, name in self.fields.items()}, **others}

    def table(self, model_class: ModelClass) -> dict[str, str]:
        """Return all names of a model, ours to those of the library, with prefixes."""
        if model_class.config_class.model_type != self.base.config_class.model_type:
            raise self.no_counterpart(model_class)
        whole = issubclass(model_class, self.base)
        ours, theirs = ("", "") if whole else (f"{self.base.base_model_prefix}.", self.prefix)
        body = {ours + name: theirs + other for name, other in self.body.items()}
        return {**body, **(for_class(self.heads, model_class) or {})}

    def no_counterpart(self, model_class: ModelClass) -> InvalidValueError:
        """Return the error for a class that the family does not have."""
        known = sorted(each.__name__ for each in self.architectures)
        return InvalidValueError(
            f"{self.model_type} has no counterpart of {model_class.__name__}; it has those of "
            f"{', '.join(known)}"
        )

    def ours(self, names: Collection[str], model_class: ModelClass) -> NameMap:
        """Return our names for the tensors of a file, without copies and unused tensors."""
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
        """Return whether a tensor belongs to a head or a pooler.

        Args:
            name: The name of the tensor.
            prefixed: Whether the names of the body have their prefix in this file.
        """
        bare = name.removeprefix(self.prefix)
        if "pooler" in self.body and matches(bare, [self.body["pooler"]]):
            return True
        if prefixed:
            return not name.startswith(self.prefix)
        return any(matches(name, table.values()) for table in self.heads.values())

    def _originals(self, names: Collection[str]) -> dict[str, str]:
        """The current names, and the names in the file."""
        origins: dict[str, str] = {}
        for name in names:
            # Checkpoints converted from TensorFlow name the parts of a norm as TensorFlow does.
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
                origins.setdefault(original, copied)  # a tensor under its own name counts
        buffers = (f"{self.prefix}embeddings.position_ids", "embeddings.position_ids")
        return {k: v for k, v in origins.items() if k not in buffers}


def with_originals(model: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file has by name, with tied tensors also under the names they are tied to.

    A file may store a tied tensor under any of its names.
    """
    ties = model.all_tied_weights_keys
    return {**{ties[name]: x for name, x in found.items() if name in ties}, **found}
