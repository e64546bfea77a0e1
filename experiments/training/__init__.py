"""What `python -m experiments train` measures: whole training steps, data loading included."""
