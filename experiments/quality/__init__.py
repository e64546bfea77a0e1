"""Experiments on the quality of models: each is a module with a function `experiment(scale)`."""
