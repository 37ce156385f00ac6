"""Two methods that the library does not have, as a user would write them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vpo.methods import Group, Method
from vpo.methods.grpo import Grpo


@dataclass(frozen=True, kw_only=True)
class Worst(Method):
    """One reward per rollout: that of its worst objective.

    reward     min_d r_d
    advantage  x_g − mean
    """

    name: ClassVar[str] = "worst"
    normalize_by_std: ClassVar[bool] = False
    loss_type: ClassVar[str | None] = "dapo"

    def rewards(self, group: Group):
        """The smallest objective of the answer."""
        return group.rewards_GMD[:, 0, :].min(axis=-1)


@dataclass(frozen=True, kw_only=True)
class Lead(Method):
    """One advantage per answer, out of the whole group, and no z-score.

    reward     v_gj less the best v of all other rollouts, v = w*·r
    advantage  the difference to the group's mean at that position, as a share of the largest difference
    """

    name: ClassVar[str] = "lead"
    takes_sets: ClassVar[bool] = True
    whole_group: ClassVar[bool] = True
    answers: int = 2

    @property
    def per_answer(self) -> bool:
        """Always."""
        return True

    def for_one_rollout(self) -> Method:
        """GRPO on the first answer: a rollout alone leads nobody."""
        return Grpo()

    def rewards(self, group: Group):
        """How far each answer is ahead of the other rollouts, (G, M)."""
        values_GM = group.weighted(group.target_D)
        others_G = [np.delete(values_GM, g, axis=0).max() for g in range(len(values_GM))]
        return values_GM - np.asarray(others_G)[:, None]

    def advantages(self, rewards, group: Group):
        """Centred, and scaled to 1."""
        centred_GM = rewards - rewards.mean(axis=0)
        return centred_GM / max(np.abs(centred_GM).max(), 1e-4)
