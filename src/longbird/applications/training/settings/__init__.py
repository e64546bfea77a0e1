"""The options of training: each is defined once, as a field of a dataclass.

The command line with its help, the checks of the Python functions, `run.toml` and the page of
options in the documentation are derived from these fields. Nothing here imports torch or
transformers, so that `--help` answers at once.

- `definition`: what an option is, and how options are checked, read and written.
- `groups`: options that several tasks share.
- `tasks`: the options of each task.
- `names`: what to tell a caller who uses a name that is not an option.
"""
