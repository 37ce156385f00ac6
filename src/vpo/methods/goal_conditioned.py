"""Goal-conditioned RL."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vpo.core.types import Array, Floats
from vpo.methods.base import Method
from vpo.methods.group import Group, draw_weighting
from vpo.methods.random_weighting import RandomWeighting


@dataclass(frozen=True, kw_only=True)
class GoalConditioned(RandomWeighting):
    """`random_weighting` with the weighting written into the prompt: a baseline of arXiv 2605.22817.

    Evaluation writes w* into the prompt. For weightings of your own, use `grpo` with one `target` per problem: the
    arithmetic is the same.

        reward     w·r, w ~ Dir(α) from (seed, step, problem)
        advantage  z-score in the group
    """

    name: ClassVar[str] = "goal_conditioned"
    target_in_prompt: ClassVar[bool] = True

    def prompt_weighting(self, objectives: int, key: Sequence[int | str]) -> Floats:
        """The weighting that `rewards` draws from the same key."""
        return draw_weighting(objectives, self.concentration, key=key)

    def for_one_rollout(self) -> Method:
        """This method: the prompt fixes the weighting, so the rollout alone determines its reward."""
        return self

    def rewards(self, group: Group) -> Array:
        """w·r for the weighting that the prompt states."""
        return super().rewards(group) if group.stated_D is None else group.weighted(group.stated_D)[:, 0]
