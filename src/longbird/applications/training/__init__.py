"""Training, evaluating and using models on the user's own files.

- `settings`: the options of training; it needs no torch.
- `data`: from files to batches of tokens on the disk.
- `initialisation`: the model and the tokenizer that a run starts from.
- `tasks`: what a task is, and one module or package for each.
- `metrics`: functions that compute metrics from arrays.
- `engine`: the course of a run, and using and measuring its model.
"""
