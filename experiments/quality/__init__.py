"""How good models are: each experiment is a module with a function `experiment(scale)`."""
