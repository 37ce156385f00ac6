"""Max-at-k."""

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np

from vpo.core.arrays import from_numpy, namespace, shape
from vpo.core.checks import as_integer
from vpo.core.types import Array, Floats
from vpo.methods.group import Group
from vpo.methods.grpo import Grpo
from vpo.methods.normalize import centre
from vpo.util.errors import InputError


@dataclass(frozen=True, kw_only=True)
class MaxAtK(Grpo):
    """Policy gradient of the best of k samples (arXiv 2510.23393), unbiased, from G > k samples.

        reward     w*·r
        advantage  s_g less the group's mean, where s_g is the mean over all subsets of k rollouts of
                   (their best reward if g is among them, else 0). With rewards sorted upward,
                   s_i = [C(i−1, k−1) x_i + Σ_{j>i} C(j−2, k−2) x_j] / C(G, k).

    Its expected gradient is (1 − k/G) times that of E[max of k]: for k = G all s are equal, and k = 1 is
    `dr_grpo`, so 2 ≤ k < G. By default k = max(2, G // 2).
    """

    name: ClassVar[str] = "max_at_k"
    whole_group: ClassVar[bool] = True
    min_group_size: ClassVar[int] = 3
    k: int | None = None

    def __post_init__(self) -> None:
        """Refuse a k below 2, which is dr_grpo."""
        super().__post_init__()
        if self.k is not None:
            as_integer(self.k, "k", 2)

    def check_group_size(self, rollouts: int) -> None:
        """Refuse a group that is not larger than k."""
        super().check_group_size(rollouts)
        if self.k is not None and self.k >= rollouts:
            raise InputError(f"k must be less than the {rollouts} rollouts of a group for max_at_k, not {self.k}")

    def advantages(self, rewards: Array, group: Group) -> Array:
        """The centred gradient weights of E[max of k]."""
        xp = namespace(rewards)
        (rollouts,) = shape(rewards)
        # Rollouts without a known reward may have left the group smaller than it was.
        k = min(self.k or max(2, rollouts // 2), rollouts - 1)
        order = xp.argsort(rewards, stable=True)
        back = xp.argsort(order)
        weights_GG = from_numpy(_subset_weights(rollouts, k), rewards)
        differ = xp.max(rewards) > xp.min(rewards)  # else the sums differ by rounding alone
        return xp.where(differ, centre((weights_GG @ rewards[order])[back]), xp.zeros_like(rewards))


def _subset_weights(rollouts: int, k: int) -> Floats:
    """W with s = W @ x for rewards x sorted upward: W[i, j] is the share of subsets with i in them and j their best."""
    subsets = comb(rollouts, k)
    weights = np.zeros((rollouts, rollouts))
    for j in range(rollouts):  # from 0, so C(j−2, k−2) of the formula is C(j−1, k−2) here
        weights[j, j] = comb(j, k - 1) / subsets
        weights[:j, j] = comb(j - 1, k - 2) / subsets if j else 0.0
    return weights
