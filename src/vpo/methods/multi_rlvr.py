"""Multi-answer RLVR."""

from dataclasses import dataclass
from typing import ClassVar

from vpo.core.arrays import namespace
from vpo.core.types import Array
from vpo.methods.base import Method
from vpo.methods.group import Group


@dataclass(frozen=True, kw_only=True)
class MultiRlvr(Method):
    """Scalar RL on a set of answers: a baseline of the VPO paper (arXiv 2605.22817).

    The sum rewards good answers, not different ones: m copies of the best have the largest reward.

    reward     Σ_i w*·r_i
    advantage  z-score in the group
    """

    name: ClassVar[str] = "multi_rlvr"
    takes_sets: ClassVar[bool] = True
    answers: int = 3

    def rewards(self, group: Group) -> Array:
        """The sum of w*·r over the answers."""
        scores_GM = group.weighted(group.target_D)
        return namespace(scores_GM).sum(scores_GM, axis=1)
