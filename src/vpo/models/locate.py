"""Where a model is, and how it is asked: by path, by name on the hub, or shipped inside this package."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.models.prompt_format import PromptFormat, format_of
from vpo.models.run_folder import RunFolder, is_run
from vpo.tasks import Task, find, get
from vpo.util.errors import InputError

EMBEDDED = "embedded"  # the model that ships with the package for the task
SHIPPED = Path(__file__).parent / "embedded"


@dataclass(frozen=True)
class Located:
    """Where a model is, and how it is asked.

    Attributes:
        task: what it is to be asked.
        path: a folder, or a name on the hub.
        format: its prompt format, None for a model that was not trained with this package.
        settings: those of the task, those of the format that were not given included.
    """

    task: str
    path: str
    format: PromptFormat | None
    settings: dict[str, Any]

    def trained_format(self, task: Task[Any], **asked: Any) -> PromptFormat:
        """Return the prompt format of what is trained from this model on a task: it keeps the limits of the model."""
        limits = self.format or PromptFormat(task=self.task)
        return PromptFormat(
            task=self.task,
            task_name=task.name,
            task_settings=self.settings,
            most_answers=limits.most_answers,
            reads_target=limits.reads_target,
            **asked,
        )


def locate(model: str, task: str | None, settings: Mapping[str, Any]) -> Located:
    """Find a model: "embedded", the folder of a finished run, that of a model, or a name on the hub.

    Paths that exist are made absolute, so that what is written down holds anywhere.

    Args:
        model: what to find.
        task: what it is to be asked; by default what it was trained on.
        settings: of the task.
    """
    if task is None and model == EMBEDDED:
        raise InputError("task must be given for the embedded model: there is one for each")
    name = find(task).name if task is not None else ""  # refuses what is not a task
    path = embedded(name, **settings) if model == EMBEDDED else model
    if is_run(path):
        run = RunFolder(Path(path))
        if run.engine() == "verl":
            raise InputError(
                f"{model}: verl's checkpoints are to be merged first: python -m verl.model_merger merge --backend fsdp "
                f"--local_dir {run.checkpoints}/global_step_N/actor --target_dir merged; then give merged"
            )
        if not run.finished:
            raise InputError(f"{model}: this run is not finished; go on with it by vpo train --resume {model}")
        path = str(run.model)
    found = format_of(path)
    if task is None:
        if found is None and not Path(path).exists():
            raise InputError(f"{model}: there is no such folder; if it is a model's name on the hub, give a task too")
        if found is None:
            raise InputError(f"task must be given for {model}: there is no vpo.json that names one")
        task, name = found.task, found.task_name
    if found is not None and found.task_name != name:
        found = None  # it was trained on another
    known = {**(found.task_settings if found else {}), **settings}
    for setting in find(task).files:
        if setting in known:
            known[setting] = absolute(known[setting])
    return Located(absolute(task) if task.endswith(".py") else task, absolute(path), found, known)


def absolute(path: str) -> str:
    """Return a path that exists as an absolute one, anything else as it is."""
    return str(Path(path).absolute()) if Path(path).exists() else path


def embedded(task: str, **settings: Any) -> str:
    """Return the folder of the policy that is shipped for a task, such as maze with size=9."""
    name = task
    if task == "maze":
        get(task, **settings)  # refuses what no maze has
        name = f"maze-{settings.get('size', 9)}"
    folder = SHIPPED / name
    if not folder.is_dir():
        there = ", ".join(sorted(path.name for path in SHIPPED.glob("*") if path.is_dir()))
        more = "vpo policy build makes one" if task == "maze" else "give a model"
        raise InputError(f"no policy is shipped for {name}: there are {there}; {more}")
    return str(folder)
