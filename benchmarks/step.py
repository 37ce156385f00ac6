"""The seconds of a training step by its parts, as `vpo train` takes it and as stock TRL does, in turn.

python benchmarks/step.py MODEL --task code --data mbppplus.jsonl.gz [--method vpo] [--answers 3] [--prompts 32]
    [--group 8] [--max-tokens 150] [--steps 3] [--lora RANK] [--ways stock,vpo] [--json FILE]

Stock is `trl.GRPOTrainer` with the `generate` of transformers, and the same settings. The first step warms up and does
not count. Parts are the means of the others; on a GPU each waits for what was computed. "Tokens a second" counts those
that were sampled, so that a step with longer completions is not taken for a slower one.
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from transformers import TrainerCallback
from trl import GRPOTrainer

from vpo.training import trl_trainer
from vpo.training.config import TrainConfig
from vpo.training.train import train

PARTS = ("generation", "rewards", "log-probabilities", "forward", "backward", "optimizer")


class Clock:
    """Seconds of named parts of each step."""

    def __init__(self) -> None:
        """Begin with no part."""
        self.seconds: Counter[str] = Counter()
        self.steps: list[dict[str, float]] = []
        self.tokens = 0
        self.started = self.now()

    @staticmethod
    def now() -> float:
        """The time, once the GPU has computed what it was given."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose time is added to a part."""

        def call(*arguments: Any, **settings: Any) -> Any:
            start = self.now()
            try:
                return function(*arguments, **settings)
            finally:
                self.seconds[name] += self.now() - start

        return call

    def end_step(self) -> None:
        """Keep the parts of a step, its whole and its tokens, and begin the next."""
        now = self.now()
        self.steps.append({**self.seconds, "step": now - self.started, "tokens": self.tokens})
        self.seconds.clear()
        self.tokens, self.started = 0, now


class StepEnds(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Times the optimizer, and ends steps."""

    def __init__(self, clock: Clock) -> None:
        """Take the clock."""
        self.clock = clock

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        """Begin the optimizer's part."""
        self.began = self.clock.now()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """End it, and the step."""
        self.clock.seconds["optimizer"] += self.clock.now() - self.began
        self.clock.end_step()


def timed_trainer(base: Any, clock: Clock) -> Any:
    """A trainer class that computes as another, and notes the time of its parts."""

    class Timed(base):  # type: ignore[misc]  # trl is untyped
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            super().__init__(*arguments, **settings)
            self.add_callback(StepEnds(clock))
            self.accelerator.backward = clock.timed("backward", self.accelerator.backward)

        def _generate_single_turn(self, *arguments: Any, **settings: Any) -> Any:
            return clock.timed("generation", super()._generate_single_turn)(*arguments, **settings)

        def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, ids: Any) -> Any:
            clock.tokens += sum(map(len, ids))
            return clock.timed("rewards", super()._calculate_rewards)(inputs, prompts, completions, ids)

        def _get_per_token_logps_and_entropies(self, *arguments: Any, **settings: Any) -> Any:
            compute = super()._get_per_token_logps_and_entropies
            name = "forward" if torch.is_grad_enabled() else "log-probabilities"
            return clock.timed(name, compute)(*arguments, **settings)

    return Timed


def measure(way: str, config: TrainConfig) -> dict[str, float]:
    """The mean seconds of the parts of a step."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as patches:
        chosen = trl_trainer._trainer_class
        base = (lambda *_, **__: GRPOTrainer) if way == "stock" else chosen
        patches.enter_context(
            mock.patch.object(trl_trainer, "_trainer_class", lambda *a, **s: timed_trainer(base(*a, **s), clock))
        )
        if way == "stock":
            patches.enter_context(mock.patch.object(trl_trainer, "share_prompts"))
        train(config, Path(folder) / "run")
    steps = clock.steps[1:]
    mean = {name: sum(each.get(name, 0.0) for each in steps) / len(steps) for name in (*PARTS, "step", "tokens")}
    mean["rest"] = mean["step"] - sum(mean[name] for name in PARTS)
    return mean


def main() -> None:
    """Print a table of the ways, and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--task", default="code")
    parser.add_argument("--data")
    parser.add_argument("--method", default="vpo", help="whose completions have one advantage, as stock TRL needs")
    sizes = {"prompts": 32, "group": 8, "answers": 3, "max-tokens": 150, "steps": 3, "lora": 0}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--ways", default="stock,vpo")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    config = TrainConfig(
        task=options.task,
        task_settings={"data": options.data} if options.data else {},
        method_settings={"answers": options.answers},
        model=options.model,
        method=options.method,
        prompts_per_step=options.prompts,
        group=options.group,
        max_tokens=options.max_tokens,
        steps=options.steps + 1,
        lora=options.lora,
    )
    figures = {way: measure(way, config) for way in options.ways.split(",")}
    print(f"{'seconds':20}" + "".join(f"{way:>12}" for way in figures))
    for name in (*PARTS, "rest", "step"):
        print(f"{name:20}" + "".join(f"{figures[way][name]:12.2f}" for way in figures))
    print(f"{'tokens a second':20}" + "".join(f"{each['tokens'] / each['step']:12,.0f}" for each in figures.values()))
    if options.json:
        settings = {name: str(value) for name, value in vars(options).items() if value is not None and name != "json"}
        options.json.write_text(json.dumps({"settings": settings, **figures}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
