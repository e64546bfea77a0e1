"""Models of DNA: pretraining, promoters, profiles and coding sequence, and scans of genomes.

The tasks of this room train as all others do (`run` of
`longbird.applications.training.engine.finetune`); their examples are
windows of a genome instead of rows of a file.
"""
