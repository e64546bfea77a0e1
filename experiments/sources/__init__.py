"""Public data sets that experiments download by name, one module for each source."""
