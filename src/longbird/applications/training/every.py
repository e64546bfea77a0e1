"""Every task that there is: one place to add another."""

from __future__ import annotations

from longbird.applications.training.ask import Ask
from longbird.applications.training.choose import Choose
from longbird.applications.training.classify import Classify
from longbird.applications.training.embed import Embed
from longbird.applications.training.pretrain import CausalModelling, Masked
from longbird.applications.training.summarize import Summarize
from longbird.applications.training.tag import Tag
from longbird.applications.training.task import Task

EVERY: tuple[type[Task], ...] = (
    Ask,
    Choose,
    Classify,
    Embed,
    Summarize,
    Tag,
    CausalModelling,
    Masked,
)
BY_NAME = {task.name: task for task in EVERY}
BY_HEAD = {task.head: task for task in EVERY}
