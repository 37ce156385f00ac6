"""What a reward function knows of the trainer that calls it."""

from collections.abc import Callable
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
    """

    step: int = 0
    group_size: int | None = None
    max_completion_length: int | None = None
    processes: int = 1
    process_index: int = 0


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
    )
