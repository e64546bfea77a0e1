"""The layers of the models: packed documents, embeddings, attention over a graph, and blocks."""
