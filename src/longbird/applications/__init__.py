"""What people do with the models: reading documents, asking, searching, training, genomes.

From bottom to top, each importing only those before it:

- `documents`: the text of the files that users have, extracted in separate processes;
- `reading`: the reader, which answers questions about documents;
- `search`: embeddings of documents, and finding them by meaning;
- `training`: fine-tuning and pretraining on users' files, evaluation and prediction;
- `dna`: genomes, from reading them to models that annotate them.
"""
