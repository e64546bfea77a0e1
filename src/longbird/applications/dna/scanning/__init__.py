"""Scans of whole genomes with a trained model, and the files and pictures that they write."""

from longbird.applications.dna.scanning.genome_scan import scan

__all__ = ["scan"]
