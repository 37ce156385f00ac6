"""Goal-conditioned RL."""

from dataclasses import dataclass
from typing import ClassVar

from vpo.methods.random_weighting import RandomWeighting


@dataclass(frozen=True, kw_only=True)
class GoalConditioned(RandomWeighting):
    """`random_weighting` with the weighting written into the prompt: a baseline of arXiv 2605.22817.

    The trainer writes ``drawn_weighting(D, key=(seed, step, problem))`` into the group's prompt; evaluation
    writes w*. For weightings of your own, use `grpo` with one `target` per problem: the arithmetic is the same.

    earns      w·r, w ~ Dir(α) from (seed, step, problem)
    advantage  z-score in the group
    """

    name: ClassVar[str] = "goal_conditioned"
    target_in_prompt: ClassVar[bool] = True
