"""VPO with marginal credit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from vpo.core.arrays import namespace, shape
from vpo.core.checks import as_integer
from vpo.core.credit import marginal_credit, pool_value
from vpo.core.simplex import Concentration, check_concentration
from vpo.core.types import Array
from vpo.methods.base import Method
from vpo.methods.group import Group
from vpo.methods.vpo import Vpo
from vpo.util.errors import InputError


@dataclass(frozen=True, kw_only=True)
class VpoMarginal(Method):
    """Each answer is rewarded for what it adds to a pool of K sets of its group: this project's own.

    VPO rewards variety inside a set, and nothing between sets; and one advantage for a set says little about each of
    its answers. Marginal credit does both (`vpo.core.credit` has the formula and its exact form):

        reward     c_gj = E_w E_T[max(S_g ∪ T) − max(S_g without j ∪ T)],
                   T the answers of K − 1 other sets of the group
        advantage  z-score in the group at each position, for the tokens of that answer

    With `answers` = 1 it is a vector Max-at-k: one advantage per rollout, and no change to the prompt. With `anchored`
    the reward of answer 1 is w*·r_1 instead, so that it learns as GRPO's does.

    `sets` is K, at most the rollouts of a group; by default half of them, and 2 or more.
    """

    name: ClassVar[str] = "vpo_marginal"
    takes_sets: ClassVar[bool] = True
    whole_group: ClassVar[bool] = True
    single_reward: ClassVar[Mapping[str, Any] | None] = {"answers": 1}
    metric_names: ClassVar[tuple[str, ...]] = ("credit", "zero_credit", "from_other_sets")
    answers: int = 3
    sets: int | None = None
    concentration: Concentration = 1.0
    anchored: bool = False

    def __post_init__(self) -> None:
        """Refuse a K below 1, an α that is not positive, and an anchor without other answers."""
        super().__post_init__()
        check_concentration(self.concentration)
        if self.sets is not None:
            as_integer(self.sets, "sets", 1)
        if self.anchored and self.answers == 1:
            raise InputError("anchored needs 2 or more answers: with 1, its reward is that of grpo")

    @property
    def per_answer(self) -> bool:
        """Unless a rollout has one answer."""
        return self.answers > 1

    def check_group_size(self, rollouts: int) -> None:
        """Refuse a group that has fewer rollouts than the pool has sets."""
        super().check_group_size(rollouts)
        if self.sets is not None and self.sets > rollouts:
            raise InputError(f"sets must be at most the {rollouts} rollouts of a group, not {self.sets}")

    def for_one_rollout(self) -> Method:
        """The set reward: credit needs the group."""
        return Vpo(answers=self.answers, concentration=self.concentration)

    def rewards(self, group: Group) -> Array:
        """The credit of each answer, (G, M), or with one answer of each rollout, (G,)."""
        credit_GM = marginal_credit(
            group.rewards_GMD, sets=self._sets(group), concentration=self.concentration, mask=group.mask_GM
        )
        if not self.per_answer:
            return credit_GM[:, 0]
        if not self.anchored:
            return credit_GM
        first_G1 = group.weighted(group.target_D)[:, :1]
        return namespace(credit_GM).concat([first_G1, credit_GM[:, 1:]], axis=1)

    def metrics(self, rewards: Array, group: Group) -> dict[str, float]:
        """The mean credit of an answer, the share without any, and that of the pool's value beyond a single set's.

        The first two leave out missing answers and, where it is anchored, the first.
        """
        credit_GM = rewards if self.per_answer else rewards[:, None]
        start = 1 if self.anchored else 0
        credit_N = credit_GM[:, start:][group.mask_GM[:, start:]]
        sets = (1, self._sets(group))
        values = pool_value(group.rewards_GMD, sets=sets, concentration=self.concentration, mask=group.mask_GM)
        one, pool = map(float, values)
        return {
            "credit": float(credit_N.mean()) if len(credit_N) else 0.0,
            "zero_credit": float((credit_N == 0).mean()) if len(credit_N) else 1.0,
            "from_other_sets": 1 - one / pool if pool > 0 else 0.0,
        }

    def _sets(self, group: Group) -> int:
        """K. Rollouts without a known reward may have left the group smaller than it was."""
        rollouts = shape(group.rewards_GMD)[0]
        return min(self.sets or max(2, rollouts // 2), rollouts)
