"""What happens around the steps of a TRL trainer: the bar, the logs of the run, checkpoints, and a way to stop."""

import math
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from vpo.engines.metrics import ScoredBatch
from vpo.models.prompt_format import PromptFormat
from vpo.training.config import TrainConfig
from vpo.training.runs import Run
from vpo.util.files import append_rows
from vpo.util.processes import gathered, is_main, together

BAR = "{desc} {n_fmt}/{total_fmt}, {remaining} left, {rate_fmt}{postfix}"
LINES = 10  # printed over a whole run where there is no terminal for a bar


class Watch(TrainerCallback):  # type: ignore[misc]  # transformers is not looked into
    """Writes the logs of a run, marks its checkpoints, shows how it goes, and stops it between two steps."""

    def __init__(
        self, run: Run, config: TrainConfig, asked: PromptFormat, objectives: Sequence[str], updates: int
    ) -> None:
        """Take the run to write to, its settings and prompts, and how many updates one batch of rollouts serves."""
        self.run, self.config, self.format, self.objectives = run, config, asked, tuple(objectives)
        self.updates_per_generation = updates
        self.began = self.stop = False
        self.bar: Any = None
        self.last = 0.0
        self.line = ""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Show the bar."""
        self.began = True
        self.last = time.perf_counter()
        if not is_main():
            return
        from tqdm import tqdm

        name = f"{Path(self.config.task).stem} {self.config.method}"
        done = state.global_step
        self.bar = tqdm(total=self.config.steps, initial=done, desc=name, bar_format=BAR, disable=None)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Write a line of metrics, and show the ones worth watching."""
        if not is_main() or logs is None or "loss" not in logs:  # the last is a summary of the run
            return
        append_rows(self.run.metrics, [{"step": state.global_step, **{name: _known(logs[name]) for name in logs}}])
        if "completions/mean_length" in logs:  # not in a further update on the same rollouts
            self.line = self._line(logs)
        if not self.bar.disable:
            self.bar.set_postfix_str(self.line, refresh=False)
            self.bar.update(state.global_step - self.bar.n)
        elif state.global_step % max(1, self.config.steps // LINES) == 0:
            print(f"step {state.global_step} of {self.config.steps}: {self.line}", file=sys.stderr, flush=True)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Save where it is time; stop where somebody asked for it. Between generations only, when no rollouts wait."""
        if state.global_step % self.updates_per_generation or state.global_step >= self.config.steps:
            return
        self.stop = any(gathered(self.stop))  # whichever process was asked
        control.should_save = self.stop or state.global_step % self.config.save_every < self.updates_per_generation
        control.should_training_stop = self.stop

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Add the prompt format to the checkpoint, and mark it as whole, now that all of it is written."""
        with together():  # each process has written its part
            pass
        with together():
            if is_main():
                self.format.save(self.run.checkpoint(state.global_step))
                self.run.complete_checkpoint(state.global_step, self.config.keep_checkpoints)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.close()

    def _line(self, logs: Mapping[str, Any]) -> str:
        """Return what is worth watching of new rollouts."""
        now = time.perf_counter()
        speed = logs["completions/mean_length"] * self.config.rollouts / (now - self.last)
        self.last = now
        named = [(name, logs.get(f"vpo/objective/{name}")) for name in self.objectives]
        named = named or [("target", logs.get("vpo/target"))]  # names mean nothing where problems differ in objectives
        shown = [f"{name} {value:.2f}" for name, value in named if value is not None]
        return ", ".join([f"{speed:,.0f} tokens/s", f"diversity {logs.get('vpo/diversity', 0):.2f}", *shown])

    def sample(self, step: int, rows: Sequence[Mapping[str, Any]], texts: Sequence[str], batch: ScoredBatch) -> None:
        """Write the rollouts of one group, now and then: an observer of the reward function."""
        if step % self.config.rollouts_every >= self.updates_per_generation or not is_main():
            return
        append_rows(self.run.rollouts, [_rollout(step, place, rows, texts, batch) for place in batch.groups[0]])


def _known(value: Any) -> Any:
    """Return None for a number that JSON does not have, such as the norm of a gradient that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _rollout(
    step: int, place: int, rows: Sequence[Mapping[str, Any]], texts: Sequence[str], batch: ScoredBatch
) -> dict[str, Any]:
    vectors = batch.vectors[place]
    return {
        "step": step + 1,  # as in the metrics, where a step is counted when it is done
        "problem": rows[place].get("problem"),
        "prompt": rows[place]["prompt"],
        "completion": texts[place],
        "answers": batch.parsed[place],
        "vectors": None if vectors is None else vectors.tolist(),
        "reward": batch.rewards[place],
    }
