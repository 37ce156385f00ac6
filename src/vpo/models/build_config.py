"""The settings of a policy that is built from nothing; apart from the building, which is slow to import."""

from dataclasses import dataclass

from vpo.util.errors import InputError
from vpo.util.settings import SEEDS, check_settings, setting


@dataclass(frozen=True, kw_only=True)
class BuildConfig:
    """Settings of a small maze policy that is built from nothing."""

    size: int = setting(9, "width and height of the mazes")
    mazes: int = setting(80_000, "mazes to learn from, four examples each", least=1)
    steps: int = setting(8_000, "optimiser steps", least=1)
    batch: int = setting(512, "examples in a step", least=1)
    seed: int = setting(0, "random seed", least=0, most=SEEDS - 1)
    goals: bool = setting(False, "learn to read a weighting in the prompt too, for goal_conditioned")
    width: int | None = setting(None, "width of the layers, a multiple of 32", shown="that of the embedded policy")

    def __post_init__(self) -> None:
        """Refuse values out of bounds, and a batch larger than the data."""
        from vpo.tasks.maze.generator import check_size  # the task is slow to import

        check_settings(self)
        check_size(self.size)
        if self.width is not None and (self.width < 32 or self.width % 32):
            raise InputError(f"width must be a multiple of 32, not {self.width}")
        if 4 * self.mazes < self.batch:
            raise InputError(
                f"batch must be at most {4 * self.mazes}, the examples of {self.mazes} mazes, not {self.batch}"
            )
