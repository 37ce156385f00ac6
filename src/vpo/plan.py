"""Plans of `vpo reproduce`: which methods are trained, how, and on what they are measured."""

import json
from dataclasses import dataclass
from typing import Any

from vpo.config import TrainConfig
from vpo.errors import InputError
from vpo.methods import METHODS
from vpo.methods import get as get_method
from vpo.tasks.maze.world import check_size


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is trained, and on what it is measured.

    Attributes:
        size: of the mazes.
        model: the policy that all start from; by default one is built, which leaves something to learn.
        policy_mazes: to build it from.
        policy_steps: to build it in.
        policy_batch: examples a step of that.
        policy_width: of its layers.
        methods: names, each optionally with settings: "vpo_anchored:anchor=0.7".
        rates: learning rates to choose from, for each method.
        seeds: how many.
        steps: of training.
        prompts: mazes a step.
        problems: mazes to train on.
        group: rollouts per maze.
        warmup_steps: over which the rate rises.
        kl: weight of the KL term.
        validation: mazes to choose rates on.
        test: mazes to report on.
        pool: answers per maze.
    """

    size: int = 9
    model: str = ""
    policy_mazes: int = 40_000
    policy_steps: int = 2_000
    policy_batch: int = 512
    policy_width: int = 192
    methods: tuple[str, ...] = tuple(METHODS)
    rates: tuple[float, ...] = (2.5e-5, 5e-5, 1e-4)
    seeds: int = 3
    steps: int = 120
    prompts: int = 128
    problems: int = 16_000
    group: int = 8
    warmup_steps: int = 10
    kl: float = 0.001
    validation: int = 200
    test: int = 200
    pool: int = 30

    def __post_init__(self) -> None:
        """Refuse a plan without methods, rates or seeds."""
        for name in ("methods", "rates"):
            if not getattr(self, name):
                raise InputError(f"{name} must name 1 or more")
            if len(set(getattr(self, name))) < len(getattr(self, name)):
                raise InputError(f"{name} must name each once, not {', '.join(map(str, getattr(self, name)))}")
        if self.seeds < 1:
            raise InputError(f"seeds must be 1 or more, not {self.seeds}")
        check_size(self.size)
        for text in self.methods:
            name, settings = split_method(text)
            answers = get_method(name, **settings).answers
            if self.pool < answers or self.pool % answers:
                raise InputError(f"pool must be a multiple of the {answers} answers of {text}, not {self.pool}")
            self.config(self.model or "policy", text, self.rates[0], 0)  # refuses numbers that mean nothing

    @property
    def reported(self) -> range:
        """The seeds that are reported: not 0, with which rates are chosen."""
        return range(1, self.seeds + 1)

    def config(self, model: str, method: str, rate: float, seed: int) -> TrainConfig:
        """Return the settings of one run from a model."""
        name, settings = split_method(method)
        return TrainConfig(
            task="maze",
            method=name,
            method_settings=settings,
            model=model,
            micro_batch=min(256 if self.size <= 9 else 128, self.prompts * self.group),  # tokens fill the memory
            task_settings={"size": self.size},
            steps=self.steps,
            prompts=self.prompts,
            problems=self.problems,
            group=self.group,
            learning_rate=rate,
            warmup_steps=self.warmup_steps,
            kl=self.kl,
            seed=seed,
            save_every=max(1, self.steps // 4),
            keep_checkpoints=1,
        )


def split_method(text: str) -> tuple[str, dict[str, Any]]:
    """Read "vpo_anchored:anchor=0.7:answers=4" as a method and its settings."""
    name, *parts = text.split(":")
    settings = {}
    for part in parts:
        key, _, value = part.partition("=")
        try:
            settings[key] = json.loads(value)
        except ValueError:
            raise InputError(f"a setting of a method must be written KEY=NUMBER, not {part!r}") from None
    get_method(name, **settings)
    return name, settings


# Minutes on a CPU.
SMALL = Plan(
    size=7,
    policy_mazes=1_000,
    policy_steps=200,
    policy_batch=64,
    policy_width=96,
    rates=(2e-4,),
    seeds=1,
    steps=10,
    prompts=8,
    problems=80,
    warmup_steps=3,
    validation=10,
    test=20,
)
