"""Tasks by name: built in, registered, from other packages' entry points, or from a Python file."""

import importlib
import inspect
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.checks import check_weights
from vpo.tasks.forms import find_form
from vpo.tasks.task import Objective, Task
from vpo.util.errors import InputError, nearest
from vpo.util.files import load_module

GROUP = "vpo.tasks"
FORMAT = "format"  # the setting that every task has
REQUIRED = "required"  # stands for the default of a setting that has none

# Module and class of each built-in task. They are strings, imported on use: tasks take time to import, and chat is in
# vpo.rewards, a package above this one, which an import here would make a cycle with.
BUILT_IN = {
    "maze": ("vpo.tasks.maze", "MazeTask"),
    "musique": ("vpo.tasks.musique", "MusiqueTask"),
    "eureqa": ("vpo.tasks.eureqa", "EureqaTask"),
    "toolrl": ("vpo.tasks.toolrl", "ToolrlTask"),
    "code": ("vpo.tasks.code", "CodeTask"),
    "code_quality": ("vpo.tasks.code", "CodeQualityTask"),
    "gsm8k": ("vpo.tasks.math.gsm8k", "Gsm8kTask"),
    "math": ("vpo.tasks.math.competition", "CompetitionTask"),
    "countdown": ("vpo.tasks.math.countdown", "CountdownTask"),
    "evaluator": ("vpo.tasks.evaluator", "EvaluatorTask"),
    "chat": ("vpo.rewards.chat", "ChatTask"),
}

_REGISTERED: dict[str, type[Task[Any]]] = {}


def register(task: type[Task[Any]] | str | Path) -> None:
    """Register a task under its name: a class, or the path of a Python file that defines one."""
    task = from_file(task) if isinstance(task, str | Path) else _checked(task, task.__qualname__)
    if task.name in BUILT_IN:
        raise InputError(f"task {task.name!r} is built in: give yours another name")
    _REGISTERED[task.name] = task


def names() -> list[str]:
    """All tasks: built in, registered, and entry points of other packages in the group `vpo.tasks`."""
    return list(dict.fromkeys([*BUILT_IN, *_REGISTERED, *sorted(entry_points(group=GROUP).names)]))


def find(name: str) -> type[Task[Any]]:
    """The class of a task, by name or by the path of a Python file that defines one."""
    if name.endswith(".py"):
        return from_file(name)
    if name in BUILT_IN:
        module, attribute = BUILT_IN[name]
        task: type[Task[Any]] = getattr(importlib.import_module(module), attribute)
        return task
    if name in _REGISTERED:
        return _REGISTERED[name]
    for point in entry_points(group=GROUP, name=name):
        return _from_entry_point(point)
    raise InputError(f"task {name!r} is not known: {nearest(name, names())}")


def get(name: str, **settings: Any) -> Task[Any]:
    """A task by name, or from a .py file, with settings such as ``size=13`` or ``data="folder"``.

    Every task has the setting `format`, the form of several answers: see `vpo.tasks.forms`.
    """
    task = find(name)
    known = settings_of(task)
    form = find_form(settings.pop(FORMAT)) if FORMAT in settings and FORMAT not in known else None
    for setting, value in settings.items():
        if setting not in known:
            listed = f"there are {', '.join(known)}" if known else "it has none"
            raise InputError(f"task {task.name} has no setting {setting!r}: {listed}")
        kind = str if known[setting] is None else type(known[setting])
        kinds = (float, int) if kind is float else (kind,)
        if known[setting] is not REQUIRED and type(value) not in kinds:
            raise InputError(f"setting {setting} of task {task.name} must be of type {kind.__name__}, not {value!r}")
    missing = [setting for setting, default in known.items() if default is REQUIRED and setting not in settings]
    if missing:
        raise InputError(f"task {task.name} needs the setting {missing[0]!r}")
    made = task(**settings)
    if form is not None:
        made.form = form
    return made


def settings_of(task: type[Task[Any]]) -> dict[str, Any]:
    """The settings of a task, which are the keywords of its constructor, with their defaults or `REQUIRED`."""
    parameters = inspect.signature(task).parameters.values()
    return {each.name: REQUIRED if each.default is inspect.Parameter.empty else each.default for each in parameters}


def from_file(path: str | Path) -> type[Task[Any]]:
    """The one task that a Python file defines."""
    if not Path(path).is_file():
        raise InputError(f"no such file: {path} (a task)")
    try:
        module = load_module(path, f"vpo_task_{Path(path).stem}")
    except Exception as error:  # a user's file may raise anything
        raise InputError(f"{path}: the file cannot be loaded ({type(error).__name__}: {error})") from error
    defined = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Task) and value.__module__ == module.__name__
    ]
    if len(defined) != 1:
        raise InputError(f"{path}: the file must define one subclass of vpo.tasks.Task, not {len(defined)}")
    return _checked(defined[0], str(path))


def _from_entry_point(point: EntryPoint) -> type[Task[Any]]:
    origin = f"entry point {point.value}"
    try:
        return _checked(point.load(), origin)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{origin}: the task cannot be loaded ({type(error).__name__}: {error})") from error


def _checked(task: Any, origin: str) -> type[Task[Any]]:
    """Refuse a class that is not a complete task; `origin` begins the message."""
    if not (inspect.isclass(task) and issubclass(task, Task)):
        raise InputError(f"{origin}: a task must be a subclass of vpo.tasks.Task, not {task!r}")
    for attribute in ("name", "summary", "objectives", "weights"):
        if not hasattr(task, attribute):
            raise InputError(f"{origin}: the task must define {attribute}")
    if not task.objectives or not all(isinstance(each, Objective) for each in task.objectives):
        raise InputError(f"{origin}: objectives must be 1 or more of vpo.tasks.Objective, not {task.objectives!r}")
    weights = np.asarray(task.weights, dtype=np.float64)
    if weights.shape != (len(task.objectives),):
        raise InputError(f"{origin}: weights must be {len(task.objectives)} numbers, not {task.weights!r}")
    try:
        check_weights(weights, "weights")
    except InputError as error:
        raise InputError(f"{origin}: {error}") from None
    if task.ragged != (task.names_of is not Task.names_of):
        raise InputError(f"{origin}: ragged must be True if and only if the task overrides names_of")
    missing = sorted(getattr(task, "__abstractmethods__", ()))
    if missing:
        raise InputError(f"{origin}: the task must implement {', '.join(missing)}")
    return task
