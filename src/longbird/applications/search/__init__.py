"""Embeddings of documents and of their parts, and searching them by meaning."""
