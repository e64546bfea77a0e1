"""Matching the names of sequences in a genome and in its labels, which often differ."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from longbird.errors import InvalidValueError

Alias: TypeAlias = "Mapping[str, str] | str | os.PathLike[str] | None"
"""{alias: name in the genome}, or the path of a file with both in each line."""

SHOWN = 5
"""Maximum number of names in a message."""
ROMAN = {"I": 1, "V": 5, "X": 10}


def read_alias(alias: Alias) -> dict[str, str]:
    r"""Return aliases as a dictionary, from a dictionary or a file with two names in each line.

    Raises:
        ValueError: A line of the file does not have two names, separated by a tab.

    Examples:
        >>> read_alias({"chr1": "NC_000001.11"})
        {'chr1': 'NC_000001.11'}
    """
    if alias is None:
        return {}
    if isinstance(alias, Mapping):
        return {str(other): str(name) for other, name in alias.items()}
    pairs: dict[str, str] = {}
    with open(alias, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            words = line.rstrip("\r\n").split("\t")
            if len(words) < 2 or not words[0] or not words[1]:
                raise InvalidValueError(
                    f"{os.fspath(alias)}, line {number}: expected an alias, a tab and the "
                    f"name in the genome; received {line.strip()!r:.80}"
                )
            pairs[words[0]] = words[1]
    return pairs


class Names:
    """Names and aliases of the sequences of a genome, whose lengths are known by name."""

    def __init__(self, file: str, lengths: Mapping[str, int], alias: Alias) -> None:
        self.file, self.lengths = file, lengths
        self.alias = self._checked(read_alias(alias))

    def find(self, name: str) -> str:
        """Return the name in the genome for a name or an alias, or raise an error."""
        if name in self.lengths:
            return name
        if name in self.alias:
            return self.alias[name]
        proposal = propose(name, self.lengths)
        hint = f". If it is {proposal}, use {_as_alias({name: proposal})}" if proposal else ""
        raise InvalidValueError(
            f"{self.file} has no sequence {name}; it has {_listed(self.lengths)}{hint}"
        )

    def match(
        self,
        file: str,
        names: Iterable[str],
        alias: Alias,
        tell: Callable[[str], None],
        lengths: Mapping[str, int] | None = None,
    ) -> dict[str, str]:
        """Return the name in the genome for each known name in a label file.

        Args:
            file: Name of the label file.
            names: Names in the labels.
            alias: Aliases in addition to those with which the genome was opened.
            tell: Function that is called with a line that lists unknown names.
            lengths: Lengths of sequences, as far as the labels give them.

        Raises:
            ValueError: No name is known, or an unknown name is very likely an alias of a sequence
                that has no labels otherwise. The message suggests the alias.
        """
        known = {**self.alias, **self._checked(read_alias(alias))}
        names = list(dict.fromkeys(names))
        matched = {
            name: name if name in self.lengths else known[name]
            for name in names
            if name in self.lengths or name in known
        }
        unknown = [name for name in names if name not in matched]
        free = {name: n for name, n in self.lengths.items() if name not in matched.values()}
        alone = len(names) == len(self.lengths) == 1
        likely = {
            name: other
            for name in unknown
            if (other := propose(name, free, (lengths or {}).get(name), alone=alone))
        }
        if (names and not matched) or likely:
            proposal = (
                f" If they are the same, use {_as_alias(likely)}; or give the alias as a file "
                "with both names in each line, separated by a tab."
                if likely
                else " Use the names of the genome, or give an alias: --alias "
                "LABELS=GENOME, with the name in the labels and that in the genome (in Python, "
                "alias={'LABELS': 'GENOME'})."
            )
            raise InvalidValueError(
                f"{file} has labels on {_listed(unknown)}, which {self.file} does not have: it "
                f"has {_listed(free or self.lengths)}.{proposal}"
            )
        if unknown:
            tell(f"{file}: skipped labels on {_listed(unknown)}, which {self.file} does not have")
        return matched

    def _checked(self, alias: dict[str, str]) -> dict[str, str]:
        if wrong := [name for name in alias.values() if name not in self.lengths]:
            raise InvalidValueError(
                f"the alias leads to {_listed(wrong)}, which {self.file} does not have; it has "
                f"{_listed(self.lengths)}. The alias comes first, and then the name in the genome"
            )
        return alias


def propose(
    name: str, lengths: Mapping[str, int], length: int | None = None, *, alone: bool = False
) -> str | None:
    """Return the sequence that is probably meant by a name, if there is exactly one.

    Args:
        name: Name in the labels.
        lengths: Lengths of the candidates by name.
        length: Length of the sequence, if the labels give it.
        alone: Whether there is only one name and only one sequence, which are then the same.

    Examples:
        >>> propose("JAGURL010000001", {"NZ_JAGURL010000001.1": 5, "NZ_JAGURL010000002.1": 5})
        'NZ_JAGURL010000001.1'
        >>> propose("chrIV", {"1": 5, "4": 5, "MT": 5}), propose("chrM", {"1": 5, "MT": 5})
        ('4', 'MT')
    """
    wanted = _forms(name)
    like = [other for other in lengths if wanted & _forms(other)]
    if len(like) != 1 and length is not None:
        like = [other for other, bases in lengths.items() if bases == length]
    if len(like) != 1 and alone:
        like = list(lengths)
    return like[0] if len(like) == 1 else None


def _forms(name: str) -> set[str]:
    """Return forms of a name without version, prefix and case, with Roman numbers converted."""
    short = name.rstrip("|").rsplit("|", 1)[-1]
    short = re.sub(r"\.\d+$", "", short).upper()
    short = re.sub(r"^(CHROMOSOME|CHR|NZ)[_ ]?", "", short) or short
    forms = {short, short.lstrip("0") or short}
    if short in ("M", "MT", "MITO", "MITOCHONDRION"):
        forms.add("MT")
    if re.fullmatch(r"X{0,3}(IX|IV|V?I{0,3})", short) and short:
        values = [ROMAN[letter] for letter in short]
        after = [*values[1:], 0]
        forms.add(str(sum(-a if a < b else a for a, b in zip(values, after, strict=True))))
    return forms


def _as_alias(pairs: Mapping[str, str]) -> str:
    """Format aliases for the command line and for Python.

    Examples:
        >>> _as_alias({"MT": "chrM"})
        "--alias MT=chrM (in Python, alias={'MT': 'chrM'})"
    """
    some = dict(list(pairs.items())[:SHOWN])
    typed = " ".join(f"--alias {other}={name}" for other, name in some.items())
    more = " and so on" if len(pairs) > SHOWN else ""
    return f"{typed}{more} (in Python, alias={some!r})"


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    if len(names) <= SHOWN + 1:  # naming one more takes no more room than counting it
        return ", ".join(names)
    return f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN:,} others"
