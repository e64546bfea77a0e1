"""Summaries of documents."""
