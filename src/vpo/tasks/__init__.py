"""Tasks: the domains whose answers are scored as vectors. `get` makes one by name or from a file."""

from vpo.tasks.forms import Example
from vpo.tasks.reading import Native, Reading
from vpo.tasks.registry import find, get, names, register, settings_of
from vpo.tasks.task import Message, Objective, Problem, Task, Vector
from vpo.tasks.validation import Flaw

__all__ = [
    "Example",
    "Flaw",
    "Message",
    "Native",
    "Objective",
    "Problem",
    "Reading",
    "Task",
    "Vector",
    "find",
    "get",
    "names",
    "register",
    "settings_of",
]
