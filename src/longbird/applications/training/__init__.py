"""Training, evaluating and using models on one's own files.

- `settings`: the options of training; they need no torch.
"""
