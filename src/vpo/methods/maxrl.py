"""MaxRL."""

from dataclasses import dataclass
from typing import ClassVar

from vpo.core.arrays import namespace
from vpo.core.types import Array
from vpo.methods.group import Group
from vpo.methods.grpo import Grpo
from vpo.methods.normalize import centre


@dataclass(frozen=True, kw_only=True)
class MaxRl(Grpo):
    """Maximum likelihood reinforcement learning (arXiv 2602.02710): hard problems weigh more.

    Assumes rewards of 0 or more. A group whose mean is not positive has nothing to learn from: 0.

        reward     w*·r
        advantage  A_g = (x_g − mean) / mean
    """

    name: ClassVar[str] = "maxrl"
    whole_group: ClassVar[bool] = True

    def advantages(self, rewards: Array, group: Group) -> Array:
        """The reward's excess over the group's mean, as a multiple of that mean."""
        xp = namespace(rewards)
        mean = xp.mean(rewards)
        positive = mean > 0
        return xp.where(positive, centre(rewards) / xp.where(positive, mean, 1.0), 0.0)
