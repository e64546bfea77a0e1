"""Where the shell enters: nothing is imported before Ctrl-C has a meaning."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command; an interruption at any moment ends it with one line."""
    try:
        from longbird.cli import app

        app.main()
    except KeyboardInterrupt:  # outside of a subcommand, while this or that is imported
        print("error: interrupted", file=sys.stderr)
        sys.exit(130)
