"""Run folders: the files of a training run.

=====================  ===============================================================================================
``config.toml``        every setting, resolved: ``vpo train --config`` with it repeats the run
``run.json``           the command, the versions and the device; times of start, resumes and end
``metrics.jsonl``      a line per step: each objective, set reward, diversity, loss, …
``rollouts.jsonl``     a line per sampled rollout: prompt, completion, answers, their vectors, its reward
``evaluations.jsonl``  with ``eval_every``: a line per evaluation on held-out problems
``best/``              the best model by these so far; of a LoRA run, the adapter
``checkpoints/``       ``checkpoint-N`` after N steps; ``complete``, written last, has size and hash of each other file
``tensorboard/``       event files, with ``--report-to tensorboard``
``model/``             the trained model in Hugging Face's format, with its prompt format in ``vpo.json``
``adapter/``           of a LoRA run, the trained adapter alone
``eval.json``          the results of ``vpo eval``
``pool.parquet``       the answers that it sampled
``eval.partial/``      what it has sampled and scored so far, while it runs
=====================  ===============================================================================================

A run is finished when ``model/`` exists. Files and folders appear complete or not at all, except for the logs: they
grow by complete lines, and ``--resume`` truncates them to the step of its checkpoint. One process at a time trains a
run: it locks ``.lock``.
"""

import re
import shutil
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.models.run_folder import CONFIG, FIRST_LINE, LAST_LINE, METRICS, NOTES, RunFolder, is_run
from vpo.training.config import TrainConfig, as_toml, checked_settings, config_of
from vpo.util.errors import InputError
from vpo.util.files import check_new, locked, new_folder, sync, write_json, write_text
from vpo.util.manifests import begins_with, manifest_damage, manifest_facts, size_and_hash, write_manifest
from vpo.util.stored import log_lines, read_log

COMPLETE = "complete"  # the manifest of a checkpoint
STEP = {"step": int}  # what every row of the logs has
CHECKPOINT = re.compile(r"checkpoint-(\d+)")


@dataclass(frozen=True)
class ResumePoint:
    """Where a run continues.

    Attributes:
        step: the steps that are done.
        checkpoint: None where no step is.
        damaged: newer checkpoints that cannot be used, by name: what is wrong with each.
        changed: files beside the checkpoints that are not what they were when the checkpoint was written.
    """

    step: int
    checkpoint: Path | None
    damaged: dict[str, str]
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run(RunFolder):
    """A run folder, as training writes it."""

    @property
    def metrics(self) -> Path:
        """The log of metrics, a line per step."""
        return self.folder / METRICS

    @property
    def rollouts(self) -> Path:
        """The log of sampled rollouts."""
        return self.folder / "rollouts.jsonl"

    @property
    def evaluations(self) -> Path:
        """The log of evaluations on held-out problems."""
        return self.folder / "evaluations.jsonl"

    def config(self) -> TrainConfig:
        """The settings of the run."""
        path = self.folder / CONFIG
        settings = checked_settings(self.settings(), path)
        try:
            return config_of(settings)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def note(self, facts: Mapping[str, Any]) -> None:
        """Add facts to `run.json`."""
        write_json(self.folder / NOTES, {**self.notes(), **facts})

    def note_start(self, facts: Mapping[str, Any]) -> None:
        """Add facts of a start to `run.json`; those of later starts become a list, `resumed`."""
        known = self.notes()
        self.note({"resumed": [*known.get("resumed", []), facts]} if known else facts)

    def steps(self) -> list[dict[str, Any]]:
        """The logged metrics of each step; raises for a finished run whose log does not reach its end."""
        rows = read_log(self.metrics, STEP)
        if is_run(self.folder) and self.finished and (not rows or rows[-1]["step"] != self.config().steps):
            last = f"ends at step {rows[-1]['step']}" if rows else "is missing or empty"
            raise InputError(f"{self.metrics}: the log {last}, and the run has {self.config().steps} steps")
        return rows

    def lock(self) -> AbstractContextManager[int]:
        """Lock the run; raise where another process trains it. Yields the descriptor of the lock."""
        return locked(self.folder, "training this run")

    def checkpoint(self, step: int) -> Path:
        """The folder of the checkpoint after a step."""
        return self.checkpoints / f"checkpoint-{step}"

    def latest_checkpoint(self) -> tuple[int, Path] | None:
        """The newest complete checkpoint and its step; `resume_point` checks its files too."""
        return max(self.complete_checkpoints(), default=None)

    def resume_point(self) -> ResumePoint:
        """The newest checkpoint of which every file is as it was written. It reads those that it checks completely.

        Raises where all checkpoints that were completed are damaged. One that was not completed counts for nothing.
        """
        damaged: dict[str, str] = {}
        for step, path in sorted(self._checkpoints(), reverse=True):
            if not (damage := _damage(path, step)):
                expected = manifest_facts(path, COMPLETE).get("run", {})
                changed = [name for name in expected if _changed(self.folder / name, expected[name])]
                return ResumePoint(step, path, damaged, tuple(changed))
            damaged[path.name] = damage
        if completed := self.complete_checkpoints():
            texts = "; ".join(f"{path.name}: {damaged[path.name]}" for _, path in sorted(completed))
            raise InputError(
                f"{self.folder}: no whole checkpoint is left ({texts}): restore the files, or start again from step 0 "
                f"by removing {self.checkpoints}"
            )
        return ResumePoint(0, None, damaged)

    def complete_checkpoint(self, step: int, keep: int) -> None:
        """Mark the checkpoint of a step as complete, then remove all but the newest `keep`."""
        logs = (self.metrics, self.rollouts, self.evaluations)
        beside = [path for path in (self.folder / CONFIG, *logs) if path.is_file()]
        for path in beside:
            sync(path)
        facts = {"step": step, "run": {path.name: size_and_hash(path) for path in beside}}
        write_manifest(self.checkpoint(step), COMPLETE, facts)
        for _, path in sorted(self.complete_checkpoints())[:-keep]:
            _remove_checkpoint(path)

    def rewind(self, step: int) -> None:
        """Remove what came after a step: lines of the logs, newer and incomplete checkpoints, temporary files."""
        # Rollouts are not of every step. The start is evaluated again where the run begins again.
        for log, last, reached in (
            (self.metrics, step, step),
            (self.rollouts, step, min(step, 1)),
            (self.evaluations, step or -1, 0),
        ):
            kept = [(line, row["step"]) for line, row in log_lines(log, STEP) if row["step"] <= last]
            if log.is_file():
                write_text(log, "".join(f"{line}\n" for line, _ in kept))
            if max((number for _, number in kept), default=0) < reached:
                warnings.warn(
                    f"{log}: lines are missing before step {step}, of which there is a checkpoint: the log stays "
                    "incomplete, and the training is not affected",
                    stacklevel=2,
                )
        complete = {path for _, path in self.complete_checkpoints()}
        for number, path in self._checkpoints():
            if number > step or path not in complete:
                _remove_checkpoint(path)
        self.remove_temporary()

    def remove_temporary(self) -> None:
        """Remove the temporary files and folders of a process that was killed while it wrote."""
        written = (self.metrics, self.rollouts, self.evaluations, self.model, self.adapter)
        for name in (NOTES, *(path.name for path in written)):
            for path in self.folder.glob(f".{name}.*"):  # temporary files of `replacing` and `new_folder`
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _checkpoints(self) -> list[tuple[int, Path]]:
        matches = [(CHECKPOINT.fullmatch(path.name), path) for path in self.checkpoints.glob("checkpoint-*")]
        return [(int(match[1]), path) for match, path in matches if match and path.is_dir()]

    def complete_checkpoints(self) -> list[tuple[int, Path]]:
        """The complete checkpoints with their steps."""
        return [(step, path) for step, path in self._checkpoints() if (path / COMPLETE).exists()]


def _damage(checkpoint: Path, step: int) -> str:
    """What is wrong with a checkpoint; empty where nothing is."""
    if not (checkpoint / COMPLETE).exists():
        return f"it has no file {COMPLETE}, which is written last"
    damage = manifest_damage(checkpoint, COMPLETE, {"step": step})
    return ", ".join(damage[:3]) + (f" and {len(damage) - 3} more" if len(damage) > 3 else "")


def _changed(path: Path, expected: Mapping[str, Any]) -> bool:
    """Whether a file beside the checkpoints is not what it was; only logs grow."""
    right_size = path.name != CONFIG or (path.is_file() and path.stat().st_size == expected["size"])
    return not (right_size and begins_with(path, expected))


def _remove_checkpoint(path: Path) -> None:
    with suppress(OSError):
        (path / COMPLETE).unlink()  # first, so that a half-removed checkpoint does not count
    path.unlink() if path.is_symlink() else shutil.rmtree(path)


def check_free(folder: str | Path) -> None:
    """Refuse a folder that exists, or that cannot be made."""
    check_new(folder, f"choose another --out, or `vpo train --resume {folder}`")


def create(folder: str | Path, config: TrainConfig) -> Run:
    """Make the folder of a new run."""
    run = Run(Path(folder))
    check_free(folder)
    run.folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(run.folder) as temporary:
        write_text(temporary / CONFIG, f"{FIRST_LINE}{as_toml(config)}{LAST_LINE}")
        (temporary / run.checkpoints.name).mkdir()
    return run


def has_log(folder: Path) -> bool:
    """Whether a folder has, or should have, a log of metrics; verl has logs of its own."""
    return Run(folder).metrics.is_file() or (is_run(folder) and Run(folder).engine() == "trl")


def find(folder: str | Path) -> Run:
    """The run in a folder; raises where there is none."""
    if not Path(folder).exists():
        raise InputError(f"no such run: {folder}")
    if not is_run(folder):
        raise InputError(f"{folder} is not the folder of a run: it has no {CONFIG}")
    return Run(Path(folder))
