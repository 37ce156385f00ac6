"""Training a policy in a run folder, and going on after an interruption."""

import logging
import math
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpo.core.targets import scaled, weights_for
from vpo.methods import get as get_method
from vpo.models.locate import EMBEDDED, ResolvedModel, absolute, locate
from vpo.models.policy import Policy, load
from vpo.models.prompt_format import PromptFormat
from vpo.tasks import Task
from vpo.tasks.task import scoring_note
from vpo.training import runs
from vpo.training.card import write_card
from vpo.training.config import TrainConfig
from vpo.training.machine import check_disk, device, precision, versions
from vpo.training.runs import Run
from vpo.util import processes
from vpo.util.errors import InputError
from vpo.util.files import DiskFullError, command_line, disk_full, first_difference, new_folder, now
from vpo.util.packages import check_installed
from vpo.util.processes import from_main, is_main, together
from vpo.util.signals import handling

if TYPE_CHECKING:
    from trl import GRPOConfig, GRPOTrainer

    from vpo.engines.reward import RewardFunction
    from vpo.training.watch import Watch


@dataclass(frozen=True)
class Outcome:
    """What became of a run: how many steps are done, and whether those are all."""

    run: Run
    steps: int
    finished: bool


@dataclass(frozen=True)
class Parts:
    """All that a run is made of, loaded and checked."""

    config: TrainConfig
    task: Task[Any]
    policy: Policy
    reward: "RewardFunction"
    format: PromptFormat


def train(config: TrainConfig, folder: str | Path) -> Outcome:
    """Train a policy in a new run folder. What is wrong with the config is said before any step, and leaves nothing."""
    run = Run(Path(folder))
    with together():
        if config.engine != "trl":
            raise InputError(f"engine {config.engine!r} trains by vpo.training.verl_launch, or vpo train")
        parts = prepare(config)
        _arguments(parts, run.folder)
        check_disk(run.folder, parts.config, parts.policy.model.num_parameters())
        if is_main():
            runs.create(run.folder, parts.config)
    try:
        return _go_on(run, parts)
    except DiskFullError:
        raise
    except Exception:
        if run.metrics.exists():
            raise
        if is_main():
            shutil.rmtree(run.folder)  # nothing was trained, and the name is free again
        raise


def resume(folder: str | Path) -> Outcome:
    """Go on with a run from its newest whole checkpoint, or from the start where there is none."""
    with together():
        run = runs.find(folder)
        config = run.config()
    if from_main(run.finished):
        return Outcome(run, config.steps, finished=True)
    with together():
        _check_processes(run)
        parts = prepare(config)
        _check_scoring(run, parts.task)
    return _go_on(run, parts)


def _check_processes(run: Run) -> None:
    """Refuse to go on in more or fewer processes than a run was begun in: each has random numbers of its own."""
    notes = run.notes()
    began = notes.get("processes", 1)
    if notes and began != processes.count():
        raise InputError(
            f"{run.folder}: the run was begun in {began} processes, not {processes.count()}: go on with as many, by "
            f"accelerate launch --num_processes {began} -m vpo train --resume {run.folder}"
        )


def _check_scoring(run: Run, task: Task[Any]) -> None:
    """Refuse to go on where answers would be scored otherwise than before: by another calibration or model."""
    before = run.notes().get("scoring", {})
    if changed := first_difference(before, task.described()):
        raise InputError(
            f"{run.folder}: the scoring of task {task.name} is not what the run was begun with: {changed}; run.json "
            "has what it was"
        )


def resolve(config: TrainConfig) -> tuple[TrainConfig, ResolvedModel]:
    """Return a config in which everything is chosen, and its model with its task."""
    located = locate(config.model, config.task, config.task_settings)
    method = get_method(config.method, **config.method_settings)
    method.check_group_size(config.group)
    model = located.resolve(answers=method.answers, max_tokens=config.max_tokens)
    if method.target_in_prompt and not model.format.reads_target:
        raise InputError(
            f"{config.method} states a weighting in each prompt, which this model never learned to read: build one "
            "that did with vpo policy build --goals, or give another model"
        )
    small = config.model == EMBEDDED
    chosen: dict[str, Any] = {
        "task": located.task,
        "model": config.model if small else absolute(config.model),
        "task_settings": located.settings,
        "method_settings": {name: value for name, value in vars(method).items() if value is not None},
        "learning_rate": config.learning_rate or (1e-4 if small else 1e-5 if config.lora else 1e-6),
        "kl": (0.0 if small else 1e-3) if config.kl is None else config.kl,
        "max_tokens": model.max_tokens,
        "micro_batch": config.micro_batch or _micro_batch(config, small=small),
        "precision": precision(config.precision, small=small, lora=bool(config.lora)),
        "target": scaled(config.target) if config.target else model.task.target,
    }
    return replace(config, **chosen), model


def _micro_batch(config: TrainConfig, *, small: bool) -> int:
    """Return how many rollouts to put into a backward pass: all of a process for a small model, else up to a group."""
    share = config.rollouts // processes.count()
    return math.gcd(share, config.rollouts if small else config.group)


def prepare(config: TrainConfig) -> Parts:
    """Return the parts of a run: what is wrong with the config is refused here, the cheap things first."""
    from vpo.engines.reward import reward_function

    config, model = resolve(config)
    task = model.task
    for tracker in config.report_to:
        check_installed(tracker, f"report_to {tracker!r}", extra=None)
    problems = task.problems(config.split, count=config.problems)
    method = get_method(config.method, **config.method_settings)
    target = None if config.target is None else weights_for(config.target, task.names).tolist()
    reward = reward_function(task, method, problems=problems, target=target, group=config.group, seed=config.seed)
    asked = model.trained_format(
        task.ask(problems[0], method.answers, reward.prompt_target(problems[0].id)),
        target=config.target,
        target_in_prompt=method.target_in_prompt,
    )
    policy = load(model.path, precision="bfloat16" if config.precision == "bfloat16" else "float32")
    return Parts(config, task, policy, reward, asked)


def _go_on(run: Run, parts: Parts) -> Outcome:
    """Train from the newest whole checkpoint to the end, or until somebody stops it, and save the model."""
    again = f"{processes.command()} train --resume {shlex.quote(str(run.folder))}"
    with ExitStack() as held, disk_full(run.folder, hint=f"make room and go on by {again}"):
        with together():
            if is_main():
                held.enter_context(run.lock())
        if from_main(run.finished):  # by whoever held it before
            return Outcome(run, parts.config.steps, finished=True)
        try:
            done = _train_steps(run, parts)
        except KeyboardInterrupt:
            if is_main():
                print(f"\nvpo: go on with: {again}", file=sys.stderr)
            raise
    return Outcome(run, done, finished=done == parts.config.steps)


def _train_steps(run: Run, parts: Parts) -> int:
    """Train, save the model if that was all, and return the steps that are done."""
    from vpo.models.gradients import FiniteSteps, without_cudnn_attention
    from vpo.training.trl_trainer import build_trainer
    from vpo.training.watch import Watch

    config = parts.config
    step, checkpoint = from_main(run.latest_checkpoint()) or (0, None)
    with together():
        if is_main():
            _begin(run, step, parts.task)
    args = _arguments(parts, run.folder)
    watch = Watch(run, config, parts.format, parts.reward.objectives, args.num_iterations)
    callbacks = [watch, FiniteSteps(), *_trackers(run, config)]
    with together(), _refused(watch):
        trainer = build_trainer(config, parts.reward.observed_by(watch.sample), parts.policy, args, callbacks)
    with _asked_to_stop(watch), _refused(watch), _without_tied_weights(), without_cudnn_attention():
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    done = int(trainer.state.global_step)
    if done == config.steps:
        _save(run, parts, trainer)
    return done


def _begin(run: Run, step: int, task: Task[Any]) -> None:
    """Cut the run back to a step, and note how it goes on."""
    run.rewind(step)
    facts = {"command": command_line(), "began": now(), "versions": versions(), "device": device()}
    run.note_start({**facts, "processes": processes.count(), **scoring_note(task)})


def _save(run: Run, parts: Parts, trainer: "GRPOTrainer") -> None:
    """Write the trained model, and with it the end of the run."""
    from vpo.training.trl_trainer import full_weights

    weights = full_weights(trainer)
    with together():
        if not is_main():
            return
        with new_folder(run.model) as folder:
            model = trainer.accelerator.unwrap_model(trainer.model)
            (model.merge_and_unload() if parts.config.lora else model).save_pretrained(folder, state_dict=weights)
            parts.policy.tokenizer.save_pretrained(folder)
            parts.format.save(folder)
            write_card(folder, parts.config, parts.format)
        run.note({"ended": now()})


def _trackers(run: Run, config: TrainConfig) -> list[Any]:
    """Return the callback of TensorBoard, with its folder in the run's; other trackers are TRL's own matter."""
    if "tensorboard" not in config.report_to or not is_main():
        return []
    from torch.utils.tensorboard import SummaryWriter
    from transformers.integrations import TensorBoardCallback

    return [TensorBoardCallback(SummaryWriter(log_dir=str(run.folder / "tensorboard")))]


@contextmanager
def _refused(watch: "Watch") -> Iterator[None]:
    """Say of what the trainer raises before it begins that it refuses its settings."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if watch.began or isinstance(error, InputError):
            raise
        raise InputError(f"the trainer refuses its settings ({error})") from error


@contextmanager
def _without_tied_weights() -> Iterator[None]:
    """Keep transformers from warning of weights that are missing from a checkpoint since others are the same."""
    logger, wanted = logging.getLogger("transformers.trainer"), _NotMissing()
    logger.addFilter(wanted)
    try:
        yield
    finally:
        logger.removeFilter(wanted)


class _NotMissing(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is about something else."""
        return "missing keys in the checkpoint" not in record.getMessage()


def _arguments(parts: Parts, folder: Path) -> "GRPOConfig":
    from vpo.training.trl_trainer import trainer_config

    return trainer_config(parts.config, parts.reward, Run(folder).checkpoints, parts.policy.model.num_parameters())


def _asked_to_stop(watch: Any) -> AbstractContextManager[None]:
    """Turn Ctrl-C, and SIGTERM, into a stop at the end of a step; a second Ctrl-C stops at once."""

    def ask(number: int, frame: Any) -> None:
        if watch.stop and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not watch.stop and is_main():
            print("\nvpo: stopping after this step, with a checkpoint; Ctrl-C again stops at once", file=sys.stderr)
        watch.stop = True

    return handling((signal.SIGINT, signal.SIGTERM), ask)
