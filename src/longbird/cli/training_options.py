"""Command-line options derived from the settings classes of training."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from longbird.applications.training.settings.definition import Option

Out = Annotated[Path, typer.Option(help="Folder of the run.")]
Config = Annotated[
    Path | None,
    typer.Option(
        help="File of options, such as the run.toml of another run; options that are given "
        "override it.",
        exists=True,
        dir_okay=False,
    ),
]
Extend = Annotated[
    bool,
    typer.Option(
        "--extend", help="Continue a run with more epochs or steps than it was started with."
    ),
]


def with_options(command: Callable[..., Any], options: Iterable[Option], default: str = "") -> Any:
    """Replace the parameter `**options` of a command by one parameter for each option.

    This is the only place where a signature is changed. An option that is not given is None, so
    that a file of settings can give it.

    Args:
        command: The command; its last parameter is `**options`.
        options: The options.
        default: What the help says of the defaults, instead of naming each.
    """
    hints = get_type_hints(command, include_extras=True)
    own = list(inspect.signature(command).parameters.values())[:-1]
    parameters = [each.replace(annotation=hints[each.name]) for each in own]
    given = {each.name for each in parameters}
    for each in options:
        if each.name not in given:
            annotation = _annotation(each, default)
            parameters.append(
                inspect.Parameter(
                    each.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
                )
            )
    positional = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]

    def derived(**values: Any) -> Any:
        return command(**values)

    derived.__name__, derived.__doc__ = command.__name__, command.__doc__
    derived.__signature__ = inspect.Signature(positional)  # type: ignore[attr-defined]
    derived.__annotations__ = {each.name: each.annotation for each in positional}
    return derived


def _annotation(option: Option, default: str = "") -> Any:
    """Return the annotation that typer makes an option of."""
    shown = option.default_text
    text = option.help + (f" {default}" if default else f" Default: {shown}." if shown else "")
    declaration = typer.Option(
        option.flag,
        # Brackets would be read as markup.
        help=text.replace("[", r"\["),
        rich_help_panel=option.group or None,
        show_default=False,
    )
    if option.several:
        return Annotated[list[str] | None, declaration]
    return Annotated[option.kind | None, declaration]
