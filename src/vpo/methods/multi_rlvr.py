"""Multi-answer RLVR."""

from dataclasses import dataclass
from typing import ClassVar

from vpo.core.arrays import namespace
from vpo.core.types import Array
from vpo.methods.group import Group, Method


@dataclass(frozen=True, kw_only=True)
class MultiRlvr(Method):
    """Scalar RL on a set of answers: a baseline of the VPO paper (arXiv 2605.22817).

    The sum pays for good answers, not for different ones: m copies of the best earn most.

    earns      Σ_i w*·r_i
    advantage  z-score in the group
    """

    name: ClassVar[str] = "multi_rlvr"
    multi: ClassVar[bool] = True
    answers: int = 3

    def earned(self, group: Group) -> Array:
        """Return the sum of w*·r over the answers."""
        scores_GM = group.weighted(group.target_D)
        return namespace(scores_GM).sum(scores_GM, axis=1)
