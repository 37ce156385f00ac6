"""Runs that were copied to another machine or path: where their model and their data are now.

`config.toml` has absolute paths, and stays as it was. A run is resumed with the paths that the user gives, or those of
its last resume, or its own, or what is there as seen from the run folder; `run.json` records what they led to at the
start, and another model or other problems are refused.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vpo.evaluation.fingerprints import problems_hash
from vpo.models.locate import EMBEDDED, absolute
from vpo.tasks import find
from vpo.training.config import TrainConfig
from vpo.training.prepare import PreparedRun
from vpo.training.runs import Run
from vpo.util.errors import InputError

OPTIONS = {
    **{"model": "--model", "task": "--task-file", "data": "--data", "prompts": "--prompts", "rewards": "--rewards"},
    **{"evaluator": "--evaluator", "start": "--start"},
}


@dataclass(frozen=True)
class NewPaths:
    """Where the model, the file of the task, and the files of its settings are now; as before where not named."""

    model: str | None = None
    task: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    def named(self) -> dict[str, str]:
        """Those that are not None, by setting, absolute."""
        paths = {"model": self.model, "task": self.task, **self.files}
        return {name: os.path.normpath(absolute(path)) for name, path in paths.items() if path is not None}


NOT_MOVED = NewPaths()


def origin(run: Run, prepared: PreparedRun) -> dict[str, Any]:
    """What `run.json` records at the start, to find and to know the model and the problems again."""
    paths = _task_file(prepared.config) | _paths(prepared.config)
    folder = run.folder.absolute()
    return {
        "weights": prepared.weights,
        "problems": problems_hash([*prepared.problems.trained, *prepared.problems.held_out]),
        "relative": {name: os.path.relpath(path, folder) for name, path in paths.items() if Path(path).is_absolute()},
    }


def relocated(run: Run, new_paths: NewPaths) -> tuple[TrainConfig, dict[str, str]]:
    """The settings of a run with paths that exist, and those of them that are not as in `config.toml`."""
    config, notes, named = run.config(), run.notes(), new_paths.named()
    resumed = notes.get("resumed") or [{}]
    remembered = {name: path for name, path in resumed[-1].get("moved", {}).items() if _is_there(path)}
    known = {**remembered, **named}
    relative = notes.get("origin", {}).get("relative", {})
    moved: dict[str, str] = {}
    for paths in (_task_file, _paths):  # the file of a task says which of its settings are files
        for name, path in paths(config).items():
            found = known.get(name) or _existing(path, relative.get(name), run.folder)
            if found is None:
                option = OPTIONS.get(name, f"--set {name}=PATH")
                raise InputError(f"{run.folder}: the run's {name} is not at {path}: give its path with {option}")
            if found != path:
                moved[name] = found
        config = _with_paths(config, moved)
    for name in named:
        if name not in _paths(config) | _task_file(config):
            raise InputError(f"{run.folder}: the run has no {name} whose path could be given")
    return config, moved


def check_origin(run: Run, prepared: PreparedRun, moved: Mapping[str, str]) -> None:
    """Refuse another model than that of the start; where paths have changed, other problems too."""
    before = run.notes().get("origin")
    if before is None:  # no step is done, or an earlier version began the run
        return
    if before["weights"] != prepared.weights:
        raise InputError(
            f"{run.folder}: {prepared.policy.path} is not the model that the run was started from: its weights are "
            "others; name the right one with --model"
        )
    if moved.keys() - {"model"} and before["problems"] != origin(run, prepared)["problems"]:
        names = ", ".join(f"{name} {path}" for name, path in moved.items() if name != "model")
        raise InputError(f"{run.folder}: the problems are not those that the run was started with ({names})")


def _task_file(config: TrainConfig) -> dict[str, str]:
    """The file that defines the task, where one of the user's does."""
    return {"task": config.task} if config.task.endswith(".py") else {}


def _paths(config: TrainConfig) -> dict[str, str]:
    """The other settings that are paths or names on the hub, but for a model that ships with the package."""
    settings = config.task_settings
    files = {name: str(settings[name]) for name in find(config.task).files if name in settings}
    return files if config.model == EMBEDDED else {"model": config.model, **files}


def _existing(path: str, relative: str | None, folder: Path) -> str | None:
    """A path, or a name on the hub, as it is; or the path that is there as seen from the run; None without either."""
    if _is_there(path):
        return path
    beside = os.path.abspath(folder / relative) if relative is not None else None
    return beside if beside is not None and Path(beside).exists() else None


def _is_there(path: str) -> bool:
    """Whether a path exists; a name on the hub may."""
    return not Path(path).is_absolute() or Path(path).exists()


def _with_paths(config: TrainConfig, paths: Mapping[str, str]) -> TrainConfig:
    fields: dict[str, Any] = {name: path for name, path in paths.items() if name in ("model", "task")}
    files = {name: path for name, path in paths.items() if name not in fields}
    return replace(config, **fields, task_settings={**config.task_settings, **files})
