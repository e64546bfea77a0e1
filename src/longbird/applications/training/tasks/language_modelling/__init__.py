"""Masked and causal language modelling on raw text."""
