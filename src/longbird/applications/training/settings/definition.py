"""What an option is, and how options are checked, read from TOML files and written to them."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as _type_hints

from longbird.applications.training.settings.names import unknown_option
from longbird.errors import InvalidFileError, InvalidTypeError, InvalidValueError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

KINDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
"""What the type of an option is called in messages."""


def option(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    most: float | None = None,
    shown: str | None = None,
    reading: bool = False,
) -> Any:
    """Declare a field of a settings class as an option.

    Args:
        default: The value if the option is not given.
        help: One line for `--help`, the docstrings and the reference page.
        least: Smallest value that is accepted.
        most: Largest value that is accepted.
        shown: Description of the default where the value does not tell it.
        reading: Whether the option says how files are read, so that `evaluate` has it as well.
    """
    metadata = {"help": help, "least": least, "most": most, "shown": shown, "reading": reading}
    return field(default=default, metadata=metadata, kw_only=True)


def redefined(group: type, name: str, default: Any) -> Any:
    """Declare an option of a group again, with another default for one task."""
    return field(default=default, metadata=_field(group, name).metadata, kw_only=True)


def _field(cls: Any, name: str) -> Any:
    return cls.__dataclass_fields__[name]


class Option(NamedTuple):
    """An option of a task, as the command line and the documentation show it."""

    name: str
    kind: type
    """The type of one value: str, int, float or bool."""
    several: bool
    """Whether the option can be repeated."""
    choices: tuple[str, ...]
    """The accepted values, if there are few."""
    default: Any
    help: str
    shown: str | None
    reading: bool
    group: str
    """Title of the group that declares the option; empty if only its task has it."""

    @property
    def flag(self) -> str:
        """What the command line calls it."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def default_text(self) -> str | None:
        """Its default in words; None if there is nothing worth telling."""
        if self.shown is not None:
            return self.shown
        if self.kind is bool or self.default is None or self.default == ():
            return None
        return str(self.default)


T = TypeVar("T", bound="Definition")


@dataclass(frozen=True)
class Definition:
    """Base class of settings: the options of a run, checked, and readable from a file.

    Attributes:
        task: Name of the task.
        train: Files or folders to learn from.
    """

    title: ClassVar[str] = ""
    """What the help calls the options that a class declares."""

    task: str
    train: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check everything that can be checked without files."""
        hints = _hints(type(self))
        for each in fields(self):
            value = getattr(self, each.name)
            _check_type(each.name, value, hints[each.name])
            if value is not None:
                _check_range(each.name, value, each.metadata)
        self.check()

    def check(self) -> None:
        """Raise an error if options contradict each other."""

    def files(self) -> dict[str, tuple[str, ...]]:
        """Return the files that were given, by part: train, validation, test."""
        return {"train": self.train}

    def overridden(self: T, given: Mapping[str, Any]) -> T:
        """Return these settings with the given options, except those that are None."""
        given = {name: value for name, value in given.items() if value is not None}
        check_names(type(self), given, self.task)
        return replace(self, **given)

    def toml(self) -> str:
        """Return the content of `run.toml`; options that are None are left out."""
        import tomli_w

        values = {name: value for name, value in asdict(self).items() if value is not None}
        return tomli_w.dumps({"longbird": values})


S = TypeVar("S", bound=Definition)


@functools.cache
def options_of(kind: type[Definition]) -> dict[str, Option]:
    """Return the options of a settings class by name, those of the task itself first.

    Examples:
        >>> from longbird.applications.training.settings.tasks import ClassifySettings
        >>> options_of(ClassifySettings)["learning_rate"].default
        5e-05
    """
    hints, found = _hints(kind), list[Option]()
    for each in fields(kind):
        if "help" not in each.metadata:
            continue
        hint = _required(hints[each.name])
        several, choices = get_origin(hint) is tuple, ()
        if several:
            hint = get_args(hint)[0]
        if get_origin(hint) is Literal:
            choices, hint = get_args(hint), str
        owner = next(cls for cls in reversed(kind.__mro__) if each.name in _own(cls))
        metadata = each.metadata
        found.append(
            Option(
                each.name, hint, several, choices, each.default, metadata["help"],
                metadata["shown"], metadata["reading"], owner.__dict__.get("title", ""),
            )
        )  # fmt: skip
    found.sort(key=lambda option: option.group != "")
    return {each.name: each for each in found}


def make_settings(kind: type[S], task: str, train: Any, given: Mapping[str, Any]) -> S:
    """Return the settings of a call: defaults, then a file of settings, then the given options.

    Args:
        kind: The settings class of the task.
        task: Name of the task.
        train: One file or folder, or several.
        given: Options by name; None stands for an option that was not given. `config` is a
            file of settings.
    """
    given = {name: value for name, value in given.items() if value is not None}
    file = given.pop("config", None)
    check_names(kind, given, task)
    values: dict[str, Any] = {} if file is None else read_settings(file, kind)
    if given.keys() >= {"steps", "epochs"}:
        raise InvalidValueError(
            "`steps` and `epochs` both say how long to train: give one of them"
        )
    if "epochs" in given:
        values.pop("steps", None)
    several = {name for name, each in options_of(kind).items() if each.several} | {"train"}
    values |= {"train": train} if train else {}
    for name, value in (values | given).items():
        if name in several and value is not None:
            value = [value] if isinstance(value, (str, os.PathLike)) else value
            value = tuple(str(each) for each in value)
        values[name] = str(value) if isinstance(value, os.PathLike) else value
    if not values.get("train"):
        raise InvalidValueError("give at least one file to learn from")
    values["task"] = task
    return kind(**values)


def read_settings(file: str | Path, kind: type[Definition]) -> dict[str, Any]:
    """Return the options in a TOML file.

    Options of other tasks are ignored: version 0.2 wrote all of them into every `run.toml`.

    Raises:
        ValueError: The file is not TOML, or has something that is not an option.
    """
    file = Path(file)
    try:
        values = tomllib.loads(file.read_text("utf-8"))["longbird"]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidFileError(f"{file} is not TOML: {error}") from error
    except KeyError:
        raise InvalidFileError(f"{file} has no table [longbird]") from None
    options, found = options_of(kind), dict[str, Any]()
    for name, value in values.items():
        if name not in options and name not in ("task", "train"):
            if name not in known_options():
                raise InvalidFileError(f"{file}: {unknown_option(name, options)}")
            continue
        if name == "train" or (name in options and options[name].several):
            value = [value] if isinstance(value, str) else value
        found[name] = tuple(value) if isinstance(value, list) else value
    return found


def task_in(file: str | Path) -> str | None:
    """Return the name of the task in a file of settings."""
    table = tomllib.loads(Path(file).read_text("utf-8")).get("longbird", {})
    return table.get("task")


def differences(old: Mapping[str, Any], new: Definition) -> dict[str, str]:
    """Return what differs, in words by option: "seed was 0 and is 1"."""
    now = asdict(new)
    # An option that is None is not in the file, and one that was added later had its default.
    before = {**{each.name: each.default for each in fields(new)}, **old}
    return {
        name: f"`{name}` was {before[name]} and is {now[name]}"
        for name in now
        if before[name] != now[name]
    }


def check_names(kind: type[Definition], given: Mapping[str, Any], task: str) -> None:
    """Raise an error for the first name that is not an option of the task."""
    options = options_of(kind)
    for name in given:
        if name not in options:
            raise InvalidTypeError(unknown_option(name, options, known_options(), task))


@functools.cache
def known_options() -> dict[str, list[str]]:
    """Return the names of all options of tasks on files, each with the tasks that have it."""
    from longbird.applications.training.settings.tasks import SETTINGS

    found: dict[str, list[str]] = {}
    for task, kind in SETTINGS.items():
        for name in options_of(kind):
            found.setdefault(name, []).append(task)
    return found


def _own(cls: type) -> Mapping[str, Any]:
    return inspect.get_annotations(cls)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return _type_hints(kind)


def _required(hint: Any) -> Any:
    """Return a type without `| None`."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(each for each in get_args(hint) if each is not type(None))
    return hint


def _check_type(name: str, value: Any, hint: Any) -> None:
    """Raise an error for a value of the wrong type, as a file of settings may have it."""
    kind = _required(hint)
    if value is None and kind is not hint:
        return
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if value not in choices:
            raise InvalidValueError(
                option=name, expected=f"one of {', '.join(choices)}", received=value
            )
    elif get_origin(kind) is tuple:
        if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
            raise InvalidTypeError(option=name, expected="a list of texts", received=value)
    elif not isinstance(value, (int, float) if kind is float else kind) or (
        isinstance(value, bool) and kind is not bool
    ):
        raise InvalidTypeError(option=name, expected=KINDS[kind], received=value)


def _check_range(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    least, most = metadata.get("least"), metadata.get("most")
    low, high = least is None or value >= least, most is None or value <= most
    if low and high:
        return
    expected = f"at least {least:,}" if most is None else f"between {least:,} and {most:,}"
    raise InvalidValueError(option=name, expected=expected, received=value)


def described(kind: type[Definition]) -> Iterator[str]:
    """Yield a line for each option of a task, for docstrings.

    Examples:
        >>> from longbird.applications.training.settings.tasks import ClassifySettings
        >>> next(described(ClassifySettings))
        'text: Column of the text.'
    """
    for each in options_of(kind).values():
        default = f" Default: {each.default_text}." if each.default_text else ""
        yield f"{each.name}: {each.help}{default}"
