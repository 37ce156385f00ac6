"""GDPO."""

from dataclasses import dataclass
from typing import ClassVar

from vpo.core.arrays import namespace
from vpo.core.types import Array
from vpo.methods.group import Group
from vpo.methods.grpo import Grpo
from vpo.methods.normalize import EPSILON, z_score


@dataclass(frozen=True, kw_only=True)
class Gdpo(Grpo):
    """Group reward-Decoupled normalization Policy Optimization (arXiv 2601.05242).

    Each objective is normalised separately, so that one with a wide spread does not drown the others.

        reward     r, the vector (w*·r is logged)
        advantage  A_g = Σ_d w*_d · z_d, z_d the z-score of objective d over the group; then divided by
                   (std + 1e-4) of all A in the batch
    """

    name: ClassVar[str] = "gdpo"
    whole_group: ClassVar[bool] = True
    whole_batch: ClassVar[bool] = True

    def advantages(self, rewards: Array, group: Group) -> Array:
        """The weighted sum of each objective's z-score, not yet divided by the batch's spread."""
        return z_score(group.rewards_GMD[:, 0, :]) @ group.target_D

    def rescale_batch(self, advantages: Array) -> Array:
        """Divide by the spread of the batch."""
        return advantages / (namespace(advantages).std(advantages, correction=1) + EPSILON)
