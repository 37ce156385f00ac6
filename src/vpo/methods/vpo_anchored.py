"""VPO with an anchored first answer."""

from dataclasses import dataclass
from typing import ClassVar

from vpo.core.arrays import Array
from vpo.errors import InputError
from vpo.methods.group import Group
from vpo.methods.vpo import Vpo


@dataclass(frozen=True, kw_only=True)
class VpoAnchored(Vpo):
    """VPO whose first answer is also paid for by itself, under w*: this project's own.

    VPO alone is indifferent to the order of its answers, and loses to GRPO where only one is used.

    earns      λ w*·r_1 + (1 − λ) R(S); r_1 = 0 where answer 1 is missing
    advantage  z-score in the group
    """

    name: ClassVar[str] = "vpo_anchored"
    alone: ClassVar[str | None] = "scalar RL on λ w*·r + (1 − λ) E[w]·r"
    anchor: float = 0.5

    def __post_init__(self) -> None:
        """Refuse a λ outside [0, 1]."""
        super().__post_init__()
        if not 0 <= self.anchor <= 1:
            raise InputError(f"anchor must lie in 0..1, not {self.anchor}")

    def earned(self, group: Group) -> Array:
        """Return the blend of answer 1's own reward and the set's."""
        first_G = group.weighted(group.target_D)[:, 0]
        return self.anchor * first_G + (1 - self.anchor) * super().earned(group)
