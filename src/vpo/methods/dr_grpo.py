"""Dr. GRPO."""

from dataclasses import dataclass
from typing import ClassVar

from vpo.core.types import Array
from vpo.methods.group import Group, centre
from vpo.methods.grpo import Grpo


@dataclass(frozen=True, kw_only=True)
class DrGrpo(Grpo):
    """GRPO done right (arXiv 2503.20783): no division by the standard deviation.

    Dividing by it gives problems that are nearly always or nearly never solved the largest advantages.
    The other half of Dr. GRPO, a loss that does not divide by the length, is the trainer's.

    earns      w*·r
    advantage  A_g = x_g − mean
    """

    name: ClassVar[str] = "dr_grpo"

    def advantage(self, group: Group) -> Array:
        """Return the reward less the group's mean."""
        return centre(self.reward(group))
