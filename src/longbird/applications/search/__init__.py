"""Embeddings of documents and of their parts, and finding them by meaning."""
