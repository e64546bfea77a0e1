"""The parts of the models: packed documents, embeddings, attention over a graph, layers."""
