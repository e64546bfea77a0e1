"""Training, evaluating and using models on one's own files."""
