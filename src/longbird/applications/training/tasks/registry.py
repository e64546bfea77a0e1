"""The tasks that there are: those of the package, and those that were registered."""

from __future__ import annotations

from importlib.metadata import entry_points

from longbird.applications.training.tasks.ask.task import Ask
from longbird.applications.training.tasks.choose import Choose
from longbird.applications.training.tasks.classify import Classify
from longbird.applications.training.tasks.embed.task import Embed
from longbird.applications.training.tasks.language_modelling.task import CausalModelling, Masked
from longbird.applications.training.tasks.summarize.task import Summarize
from longbird.applications.training.tasks.tag.task import Tag
from longbird.applications.training.tasks.task import Task
from longbird.errors import InvalidValueError

ENTRY_POINTS = "longbird.tasks"
"""Entry points of packages that have tasks."""
_TASKS: dict[str, type[Task]] = {
    task.name: task
    for task in (Ask, Choose, Classify, Embed, Summarize, Tag, CausalModelling, Masked)
}


def register_task(task: type[Task]) -> type[Task]:
    """Make a task known by its name, so that `finetune`, `evaluate` and the command find it.

    It can be used as a decorator. A package can also name its task as an entry point in the group
    `longbird.tasks`; it is then found without an import.

    Args:
        task: The task class.

    Returns:
        The same class.
    """
    _TASKS[task.name] = task
    return task


def task_named(name: str) -> type[Task]:
    """Return the task class of that name."""
    if name not in _TASKS:
        for point in entry_points(group=ENTRY_POINTS, name=name):
            register_task(point.load())
    if name not in _TASKS:
        raise InvalidValueError(
            option="task", expected=f"one of {', '.join(_TASKS)}", received=name
        )
    return _TASKS[name]


def task_for_head(head: str) -> type[Task] | None:
    """Return the first task whose models have that head."""
    return next((task for task in _TASKS.values() if task.head == head), None)
