"""What a reward function knows of the trainer that calls it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Caller:
    """The trainer that asks for rewards, at one call.

    Attributes:
        step: updates done before.
        group_size: rollouts per problem; None where it is not known.
        max_completion_length: tokens, from which on a completion counts as truncated; None where it is not known.
        processes: how many processes call together, each with its part of the batch.
        process_index: of this one.
        batches: of rollouts in the whole training; None where it is not known, and in an evaluation.
    """

    step: int = 0
    group_size: int | None = None
    max_completion_length: int | None = None
    processes: int = 1
    process_index: int = 0
    batches: int | None = None

    def truncated(self, completion_ids: Sequence[Sequence[int]]) -> list[bool]:
        """Which completions, by their tokens, the token budget cut off; empty where that is not known."""
        longest = self.max_completion_length
        return [] if longest is None else [len(ids) >= longest for ids in completion_ids]


def trainer_of(log_metric: Callable[[str, float], None] | None) -> Any:
    """The TRL trainer that calls a reward function; None where none does.

    TRL tells a reward function neither its arguments, nor the size of a group, nor whether it evaluates. It passes
    `log_metric`, a method of the trainer's, which is the one way to refuse arguments that do not fit before the
    first update.
    """
    owner = getattr(log_metric, "__self__", None)
    return owner if hasattr(owner, "args") and hasattr(owner, "accelerator") else None


def caller_of(trainer: Any) -> Caller:
    """What a TRL trainer is doing."""
    args, accelerator = trainer.args, trainer.accelerator
    evaluated = None if trainer.model.training else getattr(args, "num_generations_eval", None)
    return Caller(
        step=trainer.state.global_step,
        group_size=evaluated or args.num_generations,
        max_completion_length=args.max_completion_length,
        processes=accelerator.num_processes,
        process_index=accelerator.process_index,
        batches=_batches(args, trainer.state.max_steps) if trainer.model.training else None,
    )


def _batches(args: Any, steps: int) -> int | None:
    """Batches of rollouts in so many steps: TRL makes several steps on each where its arguments say so.

    A trainer that does not train yet has 0 steps.
    """
    if steps < 1:
        return None
    updates = float(args.steps_per_generation * args.num_iterations / args.gradient_accumulation_steps)
    return math.ceil(steps / updates)
