"""GRPO."""

from dataclasses import dataclass
from typing import ClassVar

from vpo.core.types import Array
from vpo.methods.base import Method
from vpo.methods.group import Group


@dataclass(frozen=True, kw_only=True)
class Grpo(Method):
    """Group Relative Policy Optimization (arXiv 2402.03300), on the deployed scalar.

    Scalar RL: every other method changes its reward or its advantage.

        reward     w*·r
        advantage  A_g = (x_g − mean) / (std + 1e-4) over the group
    """

    name: ClassVar[str] = "grpo"

    def rewards(self, group: Group) -> Array:
        """w*·r."""
        return group.weighted(group.target_D)[:, 0]
