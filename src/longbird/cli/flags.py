"""What `--help` shows of flags: their names, and no type, since they take no value."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


def _without_type(params: list[Any]) -> list[Any]:
    for each in params:
        if getattr(each, "is_flag", False) and each.metavar is None:
            each.metavar = ""
    return params


class Command(TyperCommand):
    """A command, with `--help` among its flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options and arguments."""
        return _without_type(super().get_params(ctx))


class Group(TyperGroup):
    """A command with subcommands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options and arguments."""
        return _without_type(super().get_params(ctx))
