"""The command `longbird`: one file for each subcommand."""
