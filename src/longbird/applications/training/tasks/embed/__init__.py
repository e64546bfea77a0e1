"""Embeddings, by which a query finds its documents."""
