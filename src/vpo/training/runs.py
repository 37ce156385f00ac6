"""Run folders: what training leaves behind, written once, read everywhere.

=====================  ===============================================================================================
``config.toml``        every setting, resolved: ``vpo train --config`` of it trains the same again
``run.json``           the command, the versions and the device; when it was begun, resumed and finished
``metrics.jsonl``      one line a step: each objective, set reward, diversity, loss, …
``rollouts.jsonl``     one line a sampled rollout: prompt, completion, answers, their vectors, what it was paid
``checkpoints/``       ``checkpoint-N`` after N steps; one that is whole holds a file ``complete``, written last
``tensorboard/``       what TensorBoard shows, where it was asked for
``model/``             the trained model in Hugging Face's format, with ``vpo.json``, its prompt format
``eval.json``          what ``vpo eval`` measured
``pool.parquet``       the answers that it measured
=====================  ===============================================================================================

A run is finished when ``model/`` is there. Every file and folder appears whole or not at all, but for the two logs,
which grow by whole lines; ``--resume`` cuts them back to the checkpoint that it goes on from. One process at a time
holds a run, by a lock on ``.lock``.
"""

import json
import math
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.models.run_folder import CONFIG, NOTES, RunFolder, is_run
from vpo.training.config import TrainConfig, as_toml, config_of, read_settings
from vpo.util.errors import InputError
from vpo.util.files import complete_lines, locked, new_folder, write_json, write_text

COMPLETE = "complete"


@dataclass(frozen=True)
class Run(RunFolder):
    """A run folder, as training writes it."""

    @property
    def metrics(self) -> Path:
        """The log of steps."""
        return self.folder / "metrics.jsonl"

    @property
    def rollouts(self) -> Path:
        """The log of sampled rollouts."""
        return self.folder / "rollouts.jsonl"

    def config(self) -> TrainConfig:
        """Return the settings of the run."""
        return config_of(read_settings(self.folder / CONFIG))

    def note(self, facts: Mapping[str, Any]) -> None:
        """Add facts to `run.json`."""
        write_json(self.folder / NOTES, {**self.notes(), **facts})

    def note_beginning(self, facts: Mapping[str, Any]) -> None:
        """Add facts to `run.json`, under `resumed` where the run was begun before."""
        known = self.notes()
        self.note({"resumed": [*known.get("resumed", []), facts]} if known else facts)

    def steps(self) -> list[dict[str, Any]]:
        """Return what was logged of each step; nothing where there is no log."""
        return [json.loads(line) for line in complete_lines(self.metrics)]

    def held(self) -> AbstractContextManager[None]:
        """Hold the run, refusing where another process does."""
        return locked(self.folder, "training this run")

    def checkpoint(self, step: int) -> Path:
        """Return the folder of the checkpoint after a step."""
        return self.checkpoints / f"checkpoint-{step}"

    def latest_checkpoint(self) -> tuple[int, Path] | None:
        """Return the newest whole checkpoint with its step, or None."""
        return max(self._whole_checkpoints(), default=None)

    def complete_checkpoint(self, step: int, keep: int) -> None:
        """Mark the checkpoint of a step as whole, then remove all but the newest ones."""
        (self.checkpoint(step) / COMPLETE).touch()
        for _, path in sorted(self._whole_checkpoints())[:-keep]:
            (path / COMPLETE).unlink()  # first, so that one that is half removed does not count
            shutil.rmtree(path)

    def rewind(self, step: int) -> None:
        """Forget what came after a step: lines of the logs, checkpoints that are not whole, files half written."""
        for log in (self.metrics, self.rollouts):
            if log.is_file():
                lines = log.read_text(encoding="utf-8").split("\n")  # and not at other ends of lines, within texts
                write_text(log, "".join(f"{line}\n" for line in lines if _step_of(line) <= step))
        whole = {path for _, path in self._whole_checkpoints()}
        for path in self.checkpoints.glob("checkpoint-*"):
            if path not in whole:
                shutil.rmtree(path)
        for name in (NOTES, self.metrics.name, self.rollouts.name, self.model.name):
            for path in self.folder.glob(f".{name}.*"):  # what was being written
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _whole_checkpoints(self) -> list[tuple[int, Path]]:
        found = self.checkpoints.glob(f"checkpoint-*/{COMPLETE}")
        return [(int(path.parent.name.rpartition("-")[2]), path.parent) for path in found]


def create(folder: str | Path, config: TrainConfig) -> Run:
    """Make the folder of a new run, which must not be there yet."""
    run = Run(Path(folder))
    if run.folder.exists():
        raise InputError(
            f"{folder}: there is something already, and nothing is overwritten: choose another folder with --out, or "
            f"go on with a run by vpo train --resume {folder}"
        )
    run.folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(run.folder) as temporary:
        write_text(temporary / CONFIG, as_toml(config))
        (temporary / run.checkpoints.name).mkdir()
    return run


def find(folder: str | Path) -> Run:
    """Return the run in a folder."""
    run = Run(Path(folder))
    if not is_run(folder):
        reason = "there is no such folder" if not run.folder.exists() else f"it has no {CONFIG}"
        raise InputError(f"{folder}: this is not the folder of a run: {reason}")
    return run


def _step_of(line: str) -> float:
    """Return the step of a line of a log; infinity for one that a full disk cut off."""
    try:
        return float(json.loads(line)["step"])
    except ValueError:
        return math.inf
