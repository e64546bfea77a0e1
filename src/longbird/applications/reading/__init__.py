"""Answering questions about documents with a trained reader.

A document is read whole, or in overlapping windows; the passages that matter most are read a
second time, each alone. Training such a reader belongs to `longbird.applications.training`.
"""
