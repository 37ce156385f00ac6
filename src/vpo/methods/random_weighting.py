"""Random weighting."""

from dataclasses import dataclass
from typing import ClassVar

from vpo.core.simplex import Concentration, check_concentration
from vpo.core.types import Array
from vpo.methods.base import Method
from vpo.methods.group import Group
from vpo.methods.grpo import Grpo


@dataclass(frozen=True, kw_only=True)
class RandomWeighting(Method):
    """Scalar RL on a random weighting for each group: a baseline of the VPO paper (arXiv 2605.22817).

    The policy does not see the weighting, so it learns an average over them.

        reward     w·r, w ~ Dir(α) from (seed, step, problem)
        advantage  z-score in the group
    """

    name: ClassVar[str] = "random_weighting"
    concentration: Concentration = 1.0

    def __post_init__(self) -> None:
        """Refuse an α that is not positive."""
        super().__post_init__()
        check_concentration(self.concentration)

    @property
    def draws_weightings(self) -> bool:
        """Always."""
        return True

    def for_one_rollout(self) -> Method:
        """GRPO, on the deployed scalar."""
        return Grpo()

    def rewards(self, group: Group) -> Array:
        """w·r for the group's own w."""
        return group.weighted(group.draw_weighting(self.concentration))[:, 0]
