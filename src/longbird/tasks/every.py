"""Every task that there is: one place to add another."""

from __future__ import annotations

from longbird.tasks.ask import Ask
from longbird.tasks.choose import Choose
from longbird.tasks.classify import Classify
from longbird.tasks.embed import Embed
from longbird.tasks.pretrain import Causal, Masked
from longbird.tasks.summarize import Summarize
from longbird.tasks.tag import Tag
from longbird.tasks.task import Task

EVERY: tuple[type[Task], ...] = (Ask, Choose, Classify, Embed, Summarize, Tag, Causal, Masked)
BY_NAME = {task.name: task for task in EVERY}
BY_HEAD = {task.head: task for task in EVERY}
