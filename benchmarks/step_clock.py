"""Shared by the benchmarks of training: the seconds of a step's parts, measured in a trainer of TRL."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from transformers import TrainerCallback

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

    def means(self) -> Counter[str]:
        """The means over all steps but the first, which warms up."""
        steps = self.steps[1:]
        return Counter({name: sum(each.get(name, 0.0) for each in steps) / len(steps) for name in set().union(*steps)})


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
