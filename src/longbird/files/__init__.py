"""Folders of models: how they are named and found, and written all at once or not at all.

Nothing here imports torch or transformers, so that the command can answer wrong paths at once.
"""
