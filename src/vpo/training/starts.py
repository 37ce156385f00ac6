"""What all methods of a plan start from: a small policy for mazes, or a language model that is warmed up."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from vpo.models.build_config import BuildConfig
from vpo.models.warmup import OWN, WarmupConfig, warm_up
from vpo.tasks import get as get_task
from vpo.training.config import TrainConfig
from vpo.util.errors import InputError
from vpo.util.settings import check_settings, setting, setting_like


@runtime_checkable
class Start(Protocol):
    """A task, the model that all methods start from, and the settings of a run that follow from them."""

    @property
    def task(self) -> str:
        """Name or file of the task."""

    @property
    def task_settings(self) -> dict[str, Any]:
        """Settings of the task."""

    @property
    def model(self) -> str:
        """A model of the user's; empty where the start makes its own."""

    @property
    def validation(self) -> str | None:
        """The split to choose learning rates on; None to hold out training problems."""

    @property
    def test_settings(self) -> dict[str, Any]:
        """Settings of the task that are others in evaluations on test problems."""

    @property
    def max_tokens(self) -> int | None:
        """The token budget of an answer; None for that of the model."""

    @property
    def title(self) -> str:
        """The task for people, such as "maze 9 × 9"."""

    @property
    def name(self) -> str:
        """The task as the name of a folder, such as "maze-9"."""

    def make(self, folder: Path, answers: int) -> str:
        """The model to start from, made in `folder` unless it is there; `answers` is the m of its sets."""

    def train_settings(self, rollouts: int) -> dict[str, Any]:
        """Further fields of `TrainConfig` for steps of so many rollouts."""


@dataclass(frozen=True, kw_only=True)
class MazeStart:
    """Mazes of one size, from `model` or from a policy that is built; a short build leaves something to learn."""

    model: str = setting(
        "",
        "folder, name on the hub or `embedded` to start from",
        metavar="MODEL",
        shown="for mazes one is built",
    )
    size: int = setting_like(BuildConfig, "size")
    policy_mazes: int = setting(40_000, "mazes to build the policy from", least=1)
    policy_steps: int = setting(2_000, "optimiser steps to build the policy in", least=1)
    policy_batch: int = setting(512, "examples in a step of the build", least=1)
    policy_width: int = setting(192, "width of the policy's layers, a multiple of 32", least=32)

    task: ClassVar[str] = "maze"
    validation: ClassVar[str | None] = "validation"
    max_tokens: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        """Refuse values out of bounds, before anything is written."""
        check_settings(self)
        self.build_config()

    @property
    def task_settings(self) -> dict[str, Any]:
        """Settings of the task."""
        return {"size": self.size}

    @property
    def test_settings(self) -> dict[str, Any]:
        """None are others."""
        return {}

    @property
    def title(self) -> str:
        """The task for people."""
        return f"maze {self.size} × {self.size}"

    @property
    def name(self) -> str:
        """The task as the name of a folder."""
        return f"maze-{self.size}"

    def make(self, folder: Path, answers: int) -> str:
        """The policy, built unless it is there. It learns sets of every size, so `answers` does not matter."""
        from vpo.models.build import build_maze

        if self.model:
            return self.model
        if not folder.is_dir():
            build_maze(folder, self.build_config())
        return str(folder)

    def build_config(self) -> BuildConfig:
        """Settings of the policy that is built."""
        return BuildConfig(
            size=self.size,
            mazes=self.policy_mazes,
            steps=self.policy_steps,
            batch=self.policy_batch,
            goals=True,
            width=self.policy_width,
        )

    def train_settings(self, rollouts: int) -> dict[str, Any]:
        """As many rollouts in a backward pass as divide those of a step; fewer of larger mazes, which are longer."""
        most = min(256 if self.size <= 13 else 128, rollouts)
        return {"micro_batch": max(count for count in range(1, most + 1) if rollouts % count == 0)}


@dataclass(frozen=True, kw_only=True)
class LanguageStart:
    """A language task, from a language model that is warmed up first on sets of its own answers.

    There is no warm-up where `single_steps` and `set_steps` are both 0.
    """

    task: str  # a name from `vpo tasks`, or the path of a Python file that defines one
    model: str = setting_like(MazeStart, "model")
    task_settings: dict[str, Any] = field(default_factory=dict)
    test_settings: dict[str, Any] = field(default_factory=dict)  # such as the data of another benchmark
    split: str = setting_like(TrainConfig, "split")
    lora: int = setting_like(TrainConfig, "lora")
    max_tokens: int = setting_like(WarmupConfig, "max_tokens", default=200)
    micro_batch: int = setting_like(TrainConfig, "micro_batch", default=32, shown=None)
    single_steps: int = setting_like(WarmupConfig, "single_steps", default=300)
    set_steps: int = setting_like(WarmupConfig, "set_steps")
    set_problems: int = setting_like(WarmupConfig, "set_problems", default=400)
    warmup_learning_rate: float = setting_like(WarmupConfig, "warmup_learning_rate", default=1e-4)

    validation: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        """Check the task, the model and the numbers of the warm-up."""
        get_task(self.task, **self.task_settings)
        get_task(self.task, **self.task_settings | self.test_settings)
        if not self.model:
            raise InputError(f"{self.task} needs a language model to start from: give --model")
        self.warmup(answers=2)

    @property
    def title(self) -> str:
        """The task for people."""
        return Path(self.task).stem

    @property
    def name(self) -> str:
        """The task as the name of a folder."""
        return Path(self.task).stem

    def make(self, folder: Path, answers: int) -> str:
        """The warmed-up model, trained unless it is there."""
        warmup = self.warmup(max(answers, 2))
        if warmup is None:
            return self.model
        if not folder.is_dir():
            warm_up(self.model, self.task, self.task_settings, folder, warmup)
        return str(folder)

    def warmup(self, answers: int) -> WarmupConfig | None:
        """Settings of the warm-up; None for no warm-up."""
        if self.single_steps == 0 == self.set_steps:
            return None
        return WarmupConfig(
            answers=answers,
            split=self.split,
            source=OWN,
            single_steps=self.single_steps,
            set_steps=self.set_steps,
            set_problems=self.set_problems,
            warmup_learning_rate=self.warmup_learning_rate,
            micro_batch=math.gcd(WarmupConfig.batch, self.micro_batch),
            max_tokens=self.max_tokens,
        )

    def train_settings(self, rollouts: int) -> dict[str, Any]:
        """The split, the adapter, the token budget, and rollouts in a backward pass."""
        return {
            "split": self.split,
            "lora": self.lora,
            "max_tokens": self.max_tokens,
            "micro_batch": min(self.micro_batch, rollouts),
        }
