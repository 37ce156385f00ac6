"""VPO."""

from dataclasses import dataclass, replace
from typing import ClassVar

from vpo.core.arrays import shape
from vpo.core.checks import as_integer
from vpo.core.set_reward import set_reward
from vpo.core.simplex import Concentration, check_concentration, dirichlet
from vpo.core.types import Array
from vpo.methods.base import Method
from vpo.methods.group import Group


@dataclass(frozen=True, kw_only=True)
class Vpo(Method):
    """Vector Policy Optimization (arXiv 2605.22817).

    The max stands inside the expectation: a set is rewarded for a good answer under every weighting.

        reward     R(S) = E_{w ~ Dir(α)}[max_i w·r_i]
        advantage  z-score in the group

    The expectation runs over one fixed set of directions, so R is a plain reward function, the same in
    every process. `draws` takes that many random weightings per group instead, as the paper does (100).
    """

    name: ClassVar[str] = "vpo"
    takes_sets: ClassVar[bool] = True
    degenerates_to: ClassVar[str | None] = "GRPO on the mean of the objectives (E[w]·r)"
    answers: int = 3
    concentration: Concentration = 1.0
    draws: int | None = None

    def __post_init__(self) -> None:
        """Refuse an α that is not positive and a number of draws below 1."""
        super().__post_init__()
        check_concentration(self.concentration)
        if self.draws is not None:
            as_integer(self.draws, "draws", 1)

    @property
    def draws_weightings(self) -> bool:
        """With `draws`: each group has random directions."""
        return self.draws is not None

    def for_one_rollout(self) -> Method:
        """VPO over the fixed directions."""
        return replace(self, draws=None)

    def rewards(self, group: Group) -> Array:
        """The set reward, (G,)."""
        objectives = shape(group.rewards_GMD)[-1]
        if self.draws is None:
            return set_reward(group.rewards_GMD, concentration=self.concentration, mask=group.mask_GM)
        directions_KD = dirichlet(objectives, self.concentration, size=self.draws, seed=group.key)
        return set_reward(group.rewards_GMD, directions=directions_KD, mask=group.mask_GM)
