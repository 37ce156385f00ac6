"""Dr. GRPO."""

from dataclasses import dataclass
from typing import ClassVar

from vpo.methods.grpo import Grpo


@dataclass(frozen=True, kw_only=True)
class DrGrpo(Grpo):
    """GRPO done right (arXiv 2503.20783): no division by the standard deviation, nor by the length.

    Dividing by the standard deviation gives problems that are nearly always or nearly never solved the largest
    advantages. The loss that does not divide by the length is the trainer's.

        reward     w*·r
        advantage  A_g = x_g − mean
    """

    name: ClassVar[str] = "dr_grpo"
    normalize_by_std: ClassVar[bool] = False
    loss_type: ClassVar[str | None] = "dr_grpo"
