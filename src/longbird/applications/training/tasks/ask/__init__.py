"""Question answering about documents."""
