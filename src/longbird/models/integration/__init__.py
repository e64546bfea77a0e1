"""Longbird inside transformers: its models run on a graph, and its Auto classes know ours."""
