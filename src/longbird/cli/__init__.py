"""The command `longbird`: one file for each subcommand, named in `app.COMMANDS`.

These files are read before the command answers anything, `--help` and completion included. So they
import nothing that takes long: what a subcommand needs, it imports when it runs.

`options` has the options that several subcommands share, `graph_argument` how a graph is typed,
`flags` what `--help` shows of flags, `terminal` what is shown while something runs, and `errors`
what a failure looks like.
"""
