"""The operator, attention over a graph, and its four implementations."""
