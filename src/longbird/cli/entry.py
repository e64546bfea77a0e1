"""Entry point of the shell command; imports happen where Ctrl-C is handled."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; an interruption at any moment ends it with one line."""
    try:
        from longbird.cli import app

        app.main()
    except KeyboardInterrupt:  # outside a subcommand, during imports
        print("error: interrupted", file=sys.stderr)
        sys.exit(130)
