"""Training a policy in a run folder, and resuming after an interruption."""

import logging
import shlex
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from vpo.models.run_folder import CONFIG
from vpo.tasks import Task
from vpo.tasks.task import scoring_note
from vpo.training import best, runs
from vpo.training.config import TrainConfig
from vpo.training.machine import check_disk, device, versions
from vpo.training.moved import NOT_MOVED, NewPaths, check_origin, origin, relocated
from vpo.training.prepare import PreparedRun, prepare
from vpo.training.runs import ResumePoint, Run
from vpo.training.saving import base_model, save_merged, save_trained
from vpo.util import processes
from vpo.util.errors import InputError
from vpo.util.files import DiskFullError, disk_full
from vpo.util.processes import OtherProcessError, from_main, is_main, together
from vpo.util.records import command_line, first_difference, now
from vpo.util.signals import handling

if TYPE_CHECKING:
    from trl import GRPOConfig

    from vpo.training.run_callback import RunCallback


@dataclass(frozen=True)
class TrainResult:
    """How far a run is: the steps that are done, and whether those are all."""

    run: Run
    steps: int
    finished: bool


def train(config: TrainConfig, folder: str | Path) -> TrainResult:
    """Train a policy in a new run folder. A wrong config raises before the first step, and leaves no folder."""
    run = Run(Path(folder))
    with together():
        if config.engine != "trl":
            raise InputError(f"engine {config.engine!r} trains with vpo.training.verl_launch, or vpo train")
        if is_main():
            runs.check_free(run.folder)  # before a model is loaded
        prepared = prepare(config)
        _trainer_config(prepared, run)
        check_disk(run.folder, prepared.config, prepared.policy.model.num_parameters())
        if is_main():
            runs.create(run.folder, prepared.config)
    try:
        return _train_locked(run, prepared)
    except DiskFullError:
        raise
    except Exception:
        if is_main() and not run.metrics.exists():
            shutil.rmtree(run.folder)  # no step was made, so the same --out can be used again
        raise


def resume(folder: str | Path, paths: NewPaths = NOT_MOVED) -> TrainResult:
    """Resume a run from its newest whole checkpoint, or from the start where none was completed.

    Args:
        folder: of the run.
        paths: where its model and its data are now, if the run was moved.
    """
    with together():
        run = runs.find(folder)
        steps = run.config().steps
    if from_main(run.finished):
        return TrainResult(run, steps, finished=True)
    with together():
        _check_processes(run)
        config, moved = relocated(run, paths)
        prepared = prepare(config)
        check_origin(run, prepared, moved)
        _check_scoring(run, prepared.task)
    return _train_locked(run, prepared, moved)


def _check_processes(run: Run) -> None:
    """Raise in more or fewer processes than at the start of the run: each has random numbers of its own."""
    notes = run.notes()
    started = notes.get("processes", 1)
    if notes and started != processes.count():
        raise InputError(
            f"{run.folder}: the run was started in {started} processes, not {processes.count()}: resume it with "
            f"accelerate launch --num_processes {started} -m vpo train --resume {run.folder}"
        )


def _check_scoring(run: Run, task: Task[Any]) -> None:
    """Raise where answers would be scored differently than before, such as with another calibration or model."""
    before = run.notes().get("scoring", {})
    if changed := first_difference(before, task.described()):
        raise InputError(
            f"{run.folder}: the scoring of task {task.name} has changed since the run was started: {changed}; see "
            "run.json for what it was"
        )


def _train_locked(run: Run, prepared: PreparedRun, moved: Mapping[str, str] = NOT_MOVED.files) -> TrainResult:
    """Train from the newest whole checkpoint to the last step, or until a signal; only one process at a time can."""
    command = _resume_command(run)
    with ExitStack() as locks, disk_full(run.folder, hint=f"free some space, then resume with {command}"):
        with together():
            if is_main():
                locks.enter_context(run.lock())
        if from_main(run.finished):  # by the process that had the lock before
            return TrainResult(run, prepared.config.steps, finished=True)
        if from_main(run.adapter.is_dir()):
            if is_main():
                run.remove_temporary()
            save_merged(run, prepared)
            if is_main():
                best.prune(run)
            return TrainResult(run, prepared.config.steps, finished=True)
        try:
            steps = _train_steps(run, prepared, moved)
        except KeyboardInterrupt:
            if is_main():
                print(f"\nvpo: continue with: {command}", file=sys.stderr)
            raise
    return TrainResult(run, steps, finished=steps == prepared.config.steps)


def _train_steps(run: Run, prepared: PreparedRun, moved: Mapping[str, str]) -> int:
    """Train, and save the model after the last step; the number of steps that are done."""
    from vpo.models.gradients import FiniteSteps, without_cudnn_attention
    from vpo.training.run_callback import RunCallback
    from vpo.training.run_evaluations import add_evaluations
    from vpo.training.trl_trainer import build_trainer

    config = prepared.config
    point = _resume_point(run)
    with together():
        if is_main():
            _note_start(run, point, prepared, moved)
    args = _trainer_config(prepared, run)
    callback = RunCallback(run, config, prepared.format, prepared.reward, args.num_iterations)
    callback.base = base_model(prepared)
    reward = prepared.reward.observed_by(callback.write_rollouts).stopped_by(callback.stall)
    callbacks = [callback, FiniteSteps(), *_tensorboard(run, config)]
    with together(), _refused_settings(callback):
        trainer = build_trainer(config, reward, prepared.policy, args, callbacks, prepared.forced)
        add_evaluations(callback, prepared, trainer)
    if point.checkpoint:
        callback.restore(point.checkpoint)
    with (
        _stopped_by_signals(callback),
        _refused_settings(callback),
        _no_tied_weight_warnings(),
        without_cudnn_attention(),
    ):
        trainer.train(resume_from_checkpoint=str(point.checkpoint) if point.checkpoint else None)
    steps = int(trainer.state.global_step)
    if callback.stalled:
        _end_stalled(run, callback.stalled)
    if steps == config.steps:
        _warn_unknown(reward.alarms.unknown_batches)
        save_trained(run, prepared, trainer)
        if is_main():
            best.prune(run)
    return steps


def _end_stalled(run: Run, reason: str) -> NoReturn:
    """Raise where no reward can be known any more, as for gradients that are not finite."""
    if not is_main():
        raise OtherProcessError(reason)
    checkpoint = run.latest_checkpoint()
    start = checkpoint[1].name if checkpoint else "step 0"
    raise InputError(
        f"{run.folder}: {reason}: nothing can be learned from them; repair that, then continue from {start} with: "
        f"{_resume_command(run)}"
    )


def _warn_unknown(batches: int) -> None:
    if batches and is_main():
        what = "the last batch" if batches == 1 else f"the last {batches} batches"
        warnings.warn(f"no reward was known in {what}: the model has learned nothing from them", stacklevel=2)


def _resume_command(run: Run) -> str:
    return f"{processes.command()} train --resume {shlex.quote(str(run.folder))}"


def _trainer_config(prepared: PreparedRun, run: Run) -> "GRPOConfig":
    from vpo.training.trl_trainer import trainer_config

    parameters = prepared.policy.model.num_parameters()
    return trainer_config(prepared.config, prepared.reward, run.checkpoints, parameters)


def _resume_point(run: Run) -> ResumePoint:
    """Where the run continues; says which checkpoints are damaged, if some are."""
    point: ResumePoint | None = None
    with together():  # the main process alone reads the checkpoints
        if is_main():
            point = run.resume_point()
            for name, damage in point.damaged.items():
                start = point.checkpoint.name if point.checkpoint else "step 0"
                print(f"vpo: {run.folder}: {name} is not used ({damage}): continuing from {start}", file=sys.stderr)
            for name in point.changed:
                what = "its settings are used as they are now" if name == CONFIG else "the training is not affected"
                warnings.warn(f"{run.folder / name} was changed since the checkpoint was written: {what}", stacklevel=2)
    point = from_main(point)
    assert point is not None
    return point


def _note_start(run: Run, point: ResumePoint, prepared: PreparedRun, moved: Mapping[str, str]) -> None:
    """Remove what came after the step from which the run continues, and note the start or resume in `run.json`."""
    run.rewind(point.step)
    best.rewind(run, point.checkpoint)
    facts = {"command": command_line(), "began": now(), "versions": versions(), "device": device()}
    further = {"damaged": point.damaged, "moved": dict(moved)}
    if not run.notes():
        further["origin"] = origin(run, prepared)
    noted = {name: value for name, value in further.items() if value}
    run.note_start({**facts, "processes": processes.count(), **scoring_note(prepared.task), **noted})


def _tensorboard(run: Run, config: TrainConfig) -> list[Any]:
    """The callback of TensorBoard, with event files in the run folder. TRL makes those of other trackers."""
    if "tensorboard" not in config.report_to or not is_main():
        return []
    from torch.utils.tensorboard import SummaryWriter
    from transformers.integrations import TensorBoardCallback

    return [TensorBoardCallback(SummaryWriter(log_dir=str(run.folder / "tensorboard")))]


@contextmanager
def _refused_settings(callback: "RunCallback") -> Iterator[None]:
    """An error of the trainer before the first step is about its settings: wrong input, not a bug."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if callback.began or isinstance(error, InputError):
            raise
        raise InputError(f"the trainer refuses its settings ({error})") from error


@contextmanager
def _no_tied_weight_warnings() -> Iterator[None]:
    """Silence a warning of transformers about keys that a checkpoint lacks because their weights are tied."""
    logger, other_messages = logging.getLogger("transformers.trainer"), _OtherMessages()
    logger.addFilter(other_messages)
    try:
        yield
    finally:
        logger.removeFilter(other_messages)


class _OtherMessages(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message is about something else."""
        return "missing keys in the checkpoint" not in record.getMessage()


def _stopped_by_signals(callback: "RunCallback") -> AbstractContextManager[None]:
    """Ctrl-C and SIGTERM stop the run at the end of a step; a second Ctrl-C stops it immediately."""

    def stop(number: int, frame: Any) -> None:
        if callback.stop and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not callback.stop and is_main():
            print("\nvpo: stopping after this step, with a checkpoint; Ctrl-C again stops immediately", file=sys.stderr)
        callback.stop = True

    return handling((signal.SIGINT, signal.SIGTERM), stop)
