"""The framework of all experiments: contestants, seeds, confidence intervals and reports.

- `registry` finds experiments by name, and defines what the command passes to them.
- `experiment` defines an experiment: contestants that are measured on the same held-out documents.
- `run` runs the attempts that are missing, and `ledger` stores each one that is done.
- `intervals` computes confidence intervals by a bootstrap over documents and seeds.
- `page`, `report`, `picture` and `predictors` write the result.
- `environment` describes the machine.

Experiments in `experiments/speed` compare times of calls instead, measured in turns. They share
the command, the description of the machine and the format of pages.
"""
