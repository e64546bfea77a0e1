"""Files and folders: finding models, atomic writing, the cache, and downloads.

Nothing here imports torch or transformers, so that the command can report wrong paths quickly.
"""
