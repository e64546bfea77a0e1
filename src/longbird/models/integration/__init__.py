"""Longbird inside transformers: its own models on a graph, and ours by their Auto classes."""
