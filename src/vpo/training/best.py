"""The best model of a run so far, in `RUN/best`, by the evaluations of the run.

A run that is killed continues from a checkpoint, and then needs the best model as of that checkpoint. So a best model
that a better one replaces moves to `checkpoints/best-STEP`, and stays there as long as a checkpoint refers to it.
"""

import re
import shutil
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vpo.training.runs import Run
from vpo.util.errors import InputError
from vpo.util.files import new_folder, write_json
from vpo.util.stored import read_object

FACTS = "best.json"  # in the folder of the model: the step, the measure and its value
STATE = "vpo_state.json"  # in a checkpoint: what `RunCallback` must restore
REPLACED = re.compile(r"best-(\d+)")


class BestModel:
    """Keeps the model with the largest value of a measure; of equal ones the earliest.

    Attributes:
        step: after which it was evaluated; None before the first evaluation.
        value: of the measure.
    """

    def __init__(self, run: Run, measure: str, save: Callable[[Path, int], None]) -> None:
        """Set the run, the name of the measure, and what writes the model as it stands, after a step, to a folder."""
        self.run, self.measure, self.save = run, measure, save
        self.step: int | None = None
        self.value: float | None = None

    def consider(self, row: Mapping[str, Any]) -> bool:
        """Keep the model as it stands if a row of the log says that it is the best so far; whether it is."""
        value = row.get(self.measure)
        if value is None:
            warnings.warn(
                f"step {row['step']}: {self.measure} is not known, since scores are missing: no model is kept for it",
                stacklevel=2,
            )
            return False
        if self.value is not None and value <= self.value:
            return False
        step = int(row["step"])
        with new_folder(self.run.best) as temporary:
            self.save(temporary, step)
            write_json(temporary / FACTS, {"step": step, "measure": self.measure, "value": value})
            if self.run.best.is_dir():  # last, so that a kill leaves one of both under a name that `rewind` knows
                self.run.best.rename(_replaced(self.run, self.step))
        self.step, self.value = step, float(value)
        prune(self.run)
        return True

    def data(self) -> dict[str, Any] | None:
        """What a checkpoint stores."""
        return None if self.step is None else {"step": self.step, "value": self.value}

    def restore(self, stored: Mapping[str, Any] | None) -> None:
        """Continue from what a checkpoint stored."""
        if stored is not None:
            self.step, self.value = int(stored["step"]), float(stored["value"])


def prune(run: Run) -> None:
    """Remove replaced models that no checkpoint refers to; of a finished run, all."""
    needed = set() if run.finished else {_stored_step(path) for _, path in run.complete_checkpoints()}
    for path in run.checkpoints.glob("best-*"):
        match = REPLACED.fullmatch(path.name)
        if match and int(match[1]) not in needed:
            shutil.rmtree(path)


def rewind(run: Run, checkpoint: Path | None) -> None:
    """Make `RUN/best` the best model as of a checkpoint; without one, there is none."""
    step = None if checkpoint is None else _stored_step(checkpoint)
    for path in run.folder.glob(f".{run.best.name}.*"):  # temporary folders of `new_folder`
        shutil.rmtree(path)
    if run.best.is_dir() and _step_of(run.best) != step:
        shutil.rmtree(run.best)
    if step is not None and not run.best.is_dir():
        with suppress(FileNotFoundError):
            _replaced(run, step).rename(run.best)
    if step is not None and not run.best.is_dir():
        warnings.warn(f"{run.best}: the best model, that of step {step}, is missing or damaged", stacklevel=2)
    prune(run)


def stored_best(checkpoint: Path) -> dict[str, Any] | None:
    """What a checkpoint stores of the best model."""
    best: dict[str, Any] | None = read_object(checkpoint / STATE).get("best")
    return best


def best_facts(run: Run) -> dict[str, Any] | None:
    """The step, the measure and the value of the best model; None where none is kept."""
    path = run.best / FACTS
    return read_object(path, {"step": int, "measure": str, "value": float}) if path.is_file() else None


def _stored_step(checkpoint: Path) -> int | None:
    """The step of the best model as of a checkpoint; None where it does not say."""
    try:
        best = stored_best(checkpoint)
    except InputError:  # a damaged checkpoint, from which no run continues
        return None
    return None if best is None else int(best["step"])


def _step_of(folder: Path) -> int | None:
    """The step of a model that was kept; None where its facts are damaged."""
    try:
        return int(read_object(folder / FACTS, {"step": int})["step"])
    except InputError:
        return None


def _replaced(run: Run, step: int | None) -> Path:
    return run.checkpoints / f"best-{step}"
