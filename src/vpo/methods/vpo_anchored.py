"""VPO with an anchored first answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from vpo.core.arrays import namespace, shape
from vpo.core.types import Array
from vpo.methods.group import Group
from vpo.methods.vpo import Vpo
from vpo.util.errors import InputError


@dataclass(frozen=True, kw_only=True)
class VpoAnchored(Vpo):
    """VPO whose first answer has a reward of its own, under w*: this project's own.

    VPO alone is indifferent to the order of its answers, and loses to GRPO where only one is used. Here the first
    answer learns as GRPO's does, and the others to make a good set of it.

        reward     answer 1: w*·r_1, 0 where it is missing; the others: R(S)
        advantage  z-score in the group, of each answer for its own tokens

    For a trainer that has one advantage per completion, `anchor`, λ, gives the whole set one reward instead:

        reward     λ w*·r_1 + (1 − λ) R(S)
        advantage  z-score in the group
    """

    name: ClassVar[str] = "vpo_anchored"
    degenerates_to: ClassVar[str | None] = "scalar RL on w*·r, by `anchor` blended with E[w]·r"
    single_reward: ClassVar[Mapping[str, Any] | None] = {"anchor": 0.9}
    anchor: float | None = None

    def __post_init__(self) -> None:
        """Refuse a λ outside [0, 1]."""
        super().__post_init__()
        if self.anchor is not None and not 0 <= self.anchor <= 1:
            raise InputError(f"anchor must lie in 0..1, not {self.anchor}")

    @property
    def per_answer(self) -> bool:
        """Unless λ blends the rewards of the first answer and of the set."""
        return self.anchor is None

    def rewards(self, group: Group) -> Array:
        """A reward for each answer, (G, M), or the blend of the first one's reward and the set's, (G,)."""
        first_G, set_G = group.weighted(group.target_D)[:, 0], super().rewards(group)
        if self.anchor is not None:
            return self.anchor * first_G + (1 - self.anchor) * set_G
        others = shape(group.rewards_GMD)[1] - 1
        return namespace(first_G).stack([first_G, *[set_G] * others], axis=1)
