"""Embeddings of documents and of their parts, and searching them by meaning.

Training a model for embeddings belongs to `longbird.applications.training`.
"""
