"""Experiments about models of DNA: each is a module with a function `experiment(scale, model)`."""
