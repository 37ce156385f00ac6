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

    The sum rewards good answers, not different ones: small changes of the best answer have the largest reward.

        reward     Σ_i w*·r_i over the distinct answers of the set, as in the authors' release
        advantage  z-score in the group

    With `count_copies` a repeated answer counts each time: m copies of the best have the largest reward.
    """

    name: ClassVar[str] = "multi_rlvr"
    takes_sets: ClassVar[bool] = True
    answers: int = 3
    count_copies: bool = False

    @property
    def reads_copies(self) -> bool:
        """Unless they count."""
        return not self.count_copies

    def rewards(self, group: Group) -> Array:
        """The sum of w*·r over the answers."""
        scores_GM = group.weighted(group.target_D)
        xp = namespace(scores_GM)
        return xp.sum(scores_GM if self.count_copies else xp.where(group.repeated(), 0.0, scores_GM), axis=1)
