"""Tags for words, and labels for spans of characters."""
