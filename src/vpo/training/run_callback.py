"""A callback of the TRL trainer: progress bar, logs of the run, checkpoints, and stopping."""

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from vpo.engines.metrics import ScoredBatch
from vpo.engines.scorer import RewardScorer
from vpo.models.adapters import BaseModel
from vpo.models.prompt_format import PromptFormat
from vpo.training.best import STATE, BestModel, prune, stored_best
from vpo.training.config import TrainConfig
from vpo.training.evaluating import HeldOutEvaluation, eval_text
from vpo.training.runs import Run
from vpo.util.files import append_rows, write_json
from vpo.util.processes import barrier, gathered, is_main, together
from vpo.util.progress import Pace, say

BAR = "{desc} {n_fmt}/{total_fmt}, {remaining} left, {rate_fmt}{postfix}"
# Shares of the answers, as they are shown → as they are logged.
RATES = {"in form": "vpo/parse_rate", "read": "vpo/read_rate"}
FIRST_LINES = 3  # steps that have a line each where there is no terminal for a progress bar; see `Pace`


class RunCallback(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Writes the logs of a run, marks its checkpoints, shows its progress, and stops it between two steps.

    Attributes:
        began: whether training has begun.
        stop: set it to stop the run, with a checkpoint, once no rollouts wait for further updates.
        stalled: why the run was stopped, where no reward could be known any more.
        evaluation: of the model as it stands; None in a run without.
        best: keeps the best model by it; None where none is kept.
        base: what checkpoints of an adapter say of its base model; None where all weights are trained.
        trackers: take the measures of an evaluation, beside the log of the run.
    """

    def __init__(
        self, run: Run, config: TrainConfig, prompt_format: PromptFormat, reward: RewardScorer, updates: int
    ) -> None:
        """Set the run and its settings; `updates` is the number of optimiser steps on each batch of rollouts."""
        self.run, self.config, self.format = run, config, prompt_format
        self.objectives, self.alarms = reward.objectives, reward.alarms
        self.name = f"{Path(config.task).stem} {config.method}"
        self.updates_per_generation = updates
        self.began = self.stop = False
        self.stalled: str | None = None
        self.evaluation: HeldOutEvaluation | None = None
        self.best: BestModel | None = None
        self.base: BaseModel | None = None
        self.trackers: Callable[[dict[str, Any]], None] = lambda row: None
        self.bar: Any = None
        self.pace = Pace()
        self.last_log = 0.0  # time of the last log of new rollouts
        self.status = ""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Show the progress bar, or say in a log what is trained."""
        self.began = True
        self.last_log = time.perf_counter()
        if is_main():
            self._begin(state)
        if state.global_step == 0:
            self._evaluate(0)

    def _begin(self, state: Any) -> None:
        from tqdm import tqdm

        done = state.global_step
        self.bar = tqdm(total=self.config.steps, initial=done, desc=self.name, bar_format=BAR, disable=None)
        self.pace = Pace(done, FIRST_LINES)
        if self.bar.disable:
            prompts, group = self.config.prompts_per_step, self.config.group
            resumed = f", from step {done}" if done else ""
            say(f"{self.name}: {self.config.steps} steps of {prompts} prompts × {group} completions{resumed}")
        if self.evaluation:
            self._say(f"{self.name}: evaluated on {len(self.evaluation.problems)} problems of {self.config.eval_split}")

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Write the metrics of a step, and show the most important ones."""
        if not is_main() or logs is None or "loss" not in logs:  # the last log is a summary of the run
            return
        append_rows(self.run.metrics, [{"step": state.global_step, **{name: _json_value(logs[name]) for name in logs}}])
        if "completions/mean_length" in logs:  # absent from further updates on the same rollouts
            self.status = self._status(logs)
        if not self.bar.disable:
            self.bar.set_postfix_str(self.status, refresh=False)
            self.bar.update(state.global_step - self.bar.n)
        elif self.pace.due(state.global_step, self.config.steps):
            left = self.pace.left(state.global_step, self.config.steps)
            say(f"{self.name}, step {state.global_step} of {self.config.steps}{left}: {self.status}")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Evaluate, save, and stop after a signal: before the end only where no rollouts wait for further updates."""
        last = state.global_step >= self.config.steps
        if state.global_step % self.updates_per_generation and not last:
            return
        if last or self._is_due(state.global_step, self.config.eval_every):
            self._evaluate(state.global_step)
        if last:
            return
        self.stop = any(gathered(self.stop))  # whichever process got the signal
        control.should_save = self.stop or self._is_due(state.global_step, self.config.save_every)
        control.should_training_stop = self.stop

    def _is_due(self, step: int, every: int | None) -> bool:
        """Whether something is done after a step that is done every so many, as far as no rollouts wait then."""
        return every is not None and step % every < self.updates_per_generation

    def _evaluate(self, step: int) -> None:
        """Evaluate the model as it stands, log and show the measures, and keep the model if it is the best so far."""
        if self.evaluation is None:
            return
        began = time.perf_counter()
        row = self.evaluation.measure(step)
        if row is not None:
            append_rows(self.run.evaluations, [row])
            kept = self.best is not None and self.best.consider(row)
            self._say(f"{self.name}, step {step}: {eval_text(row, self.config)}{', the best so far' if kept else ''}")
            self.trackers(row)
        barrier()  # until the model is written
        self.last_log += time.perf_counter() - began  # it generates no rollouts

    def _say(self, line: str) -> None:
        """Print a line, above the progress bar where there is one."""
        if self.bar is None or self.bar.disable:
            say(line)
        else:
            self.bar.write(line, file=sys.stderr)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Add the prompt format, the counts of the alarms and the best value so far, and mark it as complete."""
        barrier()  # each process has written its part
        with together():
            if is_main():
                checkpoint = self.run.checkpoint(state.global_step)
                self.format.save(checkpoint)
                if self.base:
                    self.base.save(checkpoint)
                best = {"best": self.best.data()} if self.best else {}
                write_json(checkpoint / STATE, {"unknown_batches": self.alarms.unknown_batches, **best})
                self.run.complete_checkpoint(state.global_step, self.config.keep_checkpoints)
                prune(self.run)

    def restore(self, checkpoint: Path) -> None:
        """Continue the counts of a checkpoint, and its best value."""
        self.alarms.unknown_batches = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))["unknown_batches"]
        if self.best:
            self.best.restore(stored_best(checkpoint))

    def stall(self, reason: str) -> None:
        """Stop the run, since no reward can be known any more: `on_stall` of the reward, in every process."""
        self.stop, self.stalled = True, reason

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the progress bar."""
        if self.bar is not None:
            self.bar.close()

    def _status(self, logs: Mapping[str, Any]) -> str:
        """The most important metrics of new rollouts, for the progress bar."""
        now = time.perf_counter()
        speed = logs["completions/mean_length"] * self.config.rollouts / (now - self.last_log)
        self.last_log = now
        rates = [f"{name} {logs[metric]:.0%}" for name, metric in RATES.items() if metric in logs]
        named = [(name, f"objective/{name}") for name in self.objectives]
        named = named or [("target", "target")]  # where problems differ in their objectives
        named = [("set reward", "set_reward"), ("diversity", "diversity"), *named]
        values = [(name, logs.get(f"vpo/{metric}")) for name, metric in named]
        shown = [f"{name} {value:.2f}" for name, value in values if value is not None]
        return ", ".join([f"{speed:,.0f} tokens/s", *rates, *shown])

    def write_rollouts(
        self, step: int, rows: Sequence[Mapping[str, Any]], texts: Sequence[str], batch: ScoredBatch
    ) -> None:
        """Write the rollouts of a batch's first group, every `rollouts_every` steps; an observer of the reward."""
        if step % self.config.rollouts_every >= self.updates_per_generation or not is_main():
            return
        append_rows(self.run.rollouts, [self._rollout(step, index, rows, texts, batch) for index in batch.groups[0]])

    def _rollout(
        self, step: int, index: int, rows: Sequence[Mapping[str, Any]], texts: Sequence[str], batch: ScoredBatch
    ) -> dict[str, Any]:
        vectors = batch.vectors[index]
        return {
            "step": step + 1,  # as in the metrics, where steps are counted from 1
            "problem": rows[index].get("problem"),
            "prompt": rows[index]["prompt"],
            "completion": texts[index],
            "answers": batch.parsed[index],
            "objectives": list(self.objectives),  # of the columns of `vectors`; none where problems differ in them
            "vectors": None if vectors is None else vectors.tolist(),
            "reward": batch.rewards[index],
        }


def _json_value(value: Any) -> Any:
    """None for a number that JSON lacks, such as a non-finite gradient norm."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
