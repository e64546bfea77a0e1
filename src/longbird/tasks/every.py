"""Every task that there is: one place to add another."""

from __future__ import annotations

from longbird.tasks.classify import Classify
from longbird.tasks.pretrain import Causal, Masked
from longbird.tasks.task import Task

EVERY: tuple[type[Task], ...] = (Classify, Causal, Masked)
BY_NAME = {task.name: task for task in EVERY}
BY_HEAD = {task.head: task for task in EVERY}
