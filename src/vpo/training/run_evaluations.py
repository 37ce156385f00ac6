"""Evaluations of a run: what `RunCallback` needs for them, from the run and its trainer."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpo.training.best import BestModel
from vpo.training.evaluating import NONE, HeldOutEvaluation
from vpo.training.prepare import PreparedRun
from vpo.training.run_callback import RunCallback
from vpo.training.saving import save_current
from vpo.training.trl_trainer import is_sharded
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from trl import GRPOTrainer


def add_evaluations(callback: RunCallback, prepared: PreparedRun, trainer: "GRPOTrainer") -> None:
    """Have a callback evaluate the policy, and keep the best one, if the run says so."""
    config, run = prepared.config, callback.run
    if config.eval_every is None:
        return
    if is_sharded(trainer):
        raise InputError("eval_every cannot sample from weights that are sharded over processes: use vpo eval")
    callback.evaluation = HeldOutEvaluation(
        policy=prepared.policy,
        task=prepared.task,
        problems=prepared.problems.held_out,
        config=config,
        answers=prepared.format.answers,
        target_in_prompt=prepared.format.target_in_prompt,
        forced=prepared.forced,
        autocast=trainer.accelerator.autocast,
    )

    def save(folder: Path, step: int) -> None:
        save_current(folder, run.best, prepared, trainer.accelerator.unwrap_model(trainer.model), step)

    if config.keep_best not in (None, NONE):
        callback.best = BestModel(run, str(config.keep_best), save)

    def report(row: dict[str, Any]) -> None:
        should_log = trainer.control.should_log  # of the step, whose own log is still to come
        logs = {f"eval_{name}": value for name, value in row.items() if name != "step"}
        trainer.callback_handler.on_log(trainer.args, trainer.state, trainer.control, logs)
        trainer.control.should_log = should_log

    callback.trackers = report
