"""The command `longbird`: one file per subcommand, listed in `app.COMMANDS`.

All of these files are imported before the command answers anything, `--help` and shell completion
included. They therefore import nothing slow at the top; a subcommand imports what it needs when
it runs.

- `entry`: the entry point of the shell command.
- `app`: the application, assembled from the subcommands.
- `command`: the class of all commands.
- `options`, `graph_argument`: options and arguments that several subcommands share.
- `early`: checks that run before the slow imports.
- `terminal`: output on standard output and standard error.
- `errors`: how failures are reported.

Code that computes something belongs into the other packages.
"""
