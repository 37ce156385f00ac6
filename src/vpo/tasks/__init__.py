"""Tasks: the domains whose answers are scored as vectors. `get` makes one by name or from a file."""

from vpo.tasks.registry import find, get, names, register, settings_of
from vpo.tasks.task import Message, Objective, Problem, Task, Vector
from vpo.tasks.validation import Flaw

__all__ = [
    "Flaw",
    "Message",
    "Objective",
    "Problem",
    "Task",
    "Vector",
    "find",
    "get",
    "names",
    "register",
    "settings_of",
]
