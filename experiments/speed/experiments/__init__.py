"""Comparisons of times: each is a module with a function `experiment(scale)`."""
