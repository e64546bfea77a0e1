"""How good models are: experiments with seeds, budgets, baselines and intervals.

An experiment is a module of its own here, with a function `experiment(scale)`; `experiment.py`
says what one is. `run` runs what is missing, `ledger` keeps what was found, `intervals` says how
sure it is, `predictors` which measure goes with it, and `report` and `picture` write it down.
"""

EXPERIMENTS = {
    "articles": "questions about whole articles of SQuAD, beside retrieving a paragraph",
    "blocks": "BigBird's building blocks on masked language modelling, with one budget",
    "classification": "licences and reviews, over and up to 512 tokens, beside TF-IDF",
    "hotpotqa": "questions about ten paragraphs, whole, cut off, in chunks, and dense",
    "listops": "nested lists of operators, as in Long Range Arena, from scratch",
    "recall": "values found by their keys over 1,024 tokens, with each pattern of attention",
    "retrieval": "paragraphs and articles found by questions, with late and plain chunks",
    "summarisation": "manual pages to the line of their section NAME",
}
"""What `python -m experiments quality` runs, each a module of that name, and what it is about."""

SCALES = ("default", "tiny")
"""The scale of recorded results, and one that shows in seconds that everything runs."""
