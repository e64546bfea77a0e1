"""The class of all commands: how `--help` shows flags, and how failures are reported."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from longbird.applications.training.settings.names import familiar
from longbird.cli.flags import current_flags, flags_of, is_option


class Command(TyperCommand):
    """A command; errors that it raises are reported with the names of its options."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments; flags show no type, since they take no value."""
        return _hide_type_of_flags(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; an unknown option that other libraries have is answered by ours."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # The class is click's, or that of the copy in typer.
            if type(error).__name__ == "NoSuchOption":
                name = str(getattr(error, "option_name", "")).lstrip("-").replace("-", "_")
                flags = flags_of(self.params)
                if found := familiar(name, flags):
                    error.possibilities = [flags[found]]  # type: ignore[attr-defined]
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command; messages of the library name options as the command line does."""
        # Not reset: a process runs one command, and its failure is reported after this.
        current_flags.set(flags_of(self.params))
        return super().invoke(ctx)


class Group(TyperGroup):
    """A command with subcommands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments, as `Command` does."""
        return _hide_type_of_flags(super().get_params(ctx))


def _hide_type_of_flags(params: list[Any]) -> list[Any]:
    for param in params:
        if is_option(param) and param.is_flag and param.metavar is None:
            param.metavar = ""
    return params
