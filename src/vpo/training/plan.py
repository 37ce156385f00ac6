"""Plans of `vpo reproduce`: which methods are trained, from what, how, and on what they are measured."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpo.methods import METHODS
from vpo.methods import get as get_method
from vpo.tasks.maze.world import check_size
from vpo.training.config import TrainConfig
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from vpo.models.warmup import Warmup


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is trained, and on what it is measured.

    Attributes:
        task: what to train on.
        model: what to start from; see the plans of their kinds.
        methods: names, each optionally with settings: "vpo_anchored:anchor=0.7".
        rates: learning rates to choose from, for each method, on the validation problems; a single one is taken.
        seeds: how many.
        steps: of training.
        prompts_per_step: problems a step.
        problems: to train on; 0 for all.
        group: rollouts per problem.
        warmup_steps: over which the rate rises.
        kl: weight of the KL term.
        validation_problems: problems to choose rates on.
        test_problems: problems to report on; 0 for all.
        pool: answers per problem.
        evaluations: pools of each run, each drawn with a seed of its own.
    """

    task: str
    model: str = ""
    methods: tuple[str, ...] = tuple(METHODS)
    rates: tuple[float, ...]
    seeds: int = 3
    steps: int
    prompts_per_step: int
    problems: int
    group: int = 8
    warmup_steps: int = 10
    kl: float = 0.001
    validation_problems: int = 0
    test_problems: int
    pool: int = 30
    evaluations: int = 1

    def __post_init__(self) -> None:
        """Refuse a plan without methods, rates or seeds, and numbers that mean nothing."""
        for name in ("methods", "rates"):
            if not getattr(self, name):
                raise InputError(f"{name} must name 1 or more")
            if len(set(getattr(self, name))) < len(getattr(self, name)):
                raise InputError(f"{name} must name each once, not {', '.join(map(str, getattr(self, name)))}")
        least = {
            "seeds": 1,
            "evaluations": 1,
            "problems": 0,
            "test_problems": 0,
            "validation_problems": 1 if len(self.rates) > 1 else 0,
        }
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise InputError(f"{name} must be {bound} or more, not {getattr(self, name)}")
        for text in self.methods:
            name, settings = split_method(text)
            answers = get_method(name, **settings).answers
            if self.pool < answers or self.pool % answers:
                raise InputError(f"pool must be a multiple of the {answers} answers of {text}, not {self.pool}")
            self.config(self.model or "policy", text, self.rates[0], 0)  # refuses numbers that mean nothing

    @property
    def title(self) -> str:
        """What the plan is about, for people."""
        return Path(self.task).stem

    @property
    def folder(self) -> str:
        """A name for its folder."""
        return Path(self.task).stem

    @property
    def settings(self) -> dict[str, Any]:
        """Of the task."""
        raise NotImplementedError

    @property
    def reported(self) -> range:
        """The seeds that are reported: not 0, with which rates are chosen."""
        return range(1, self.seeds + 1)

    def start(self, folder: Path) -> str:
        """Return the model that all start from, made in a folder if it is to be made and is not there."""
        raise NotImplementedError

    def config(self, model: str, method: str, rate: float, seed: int) -> TrainConfig:
        """Return the settings of one run from a model."""
        name, settings = split_method(method)
        return TrainConfig(
            task=self.task,
            method=name,
            method_settings=settings,
            model=model,
            task_settings=self.settings,
            steps=self.steps,
            prompts_per_step=self.prompts_per_step,
            problems=self.problems or None,
            group=self.group,
            learning_rate=rate,
            warmup_steps=self.warmup_steps,
            kl=self.kl,
            seed=seed,
            save_every=max(1, self.steps // 4),
            keep_checkpoints=1,
            **self.further(),
        )

    def further(self) -> dict[str, Any]:
        """Return the settings of a run that only plans of this kind have."""
        return {}


@dataclass(frozen=True, kw_only=True)
class MazePlan(Plan):
    """Mazes of one size, from the policy `model`, or from one that is built, and stopped early to leave work to do.

    Attributes:
        size: of the mazes.
        policy_mazes: to build the policy from.
        policy_steps: to build it in.
        policy_batch: examples a step of that.
        policy_width: of its layers.
    """

    task: str = "maze"
    size: int = 9
    policy_mazes: int = 40_000
    policy_steps: int = 2_000
    policy_batch: int = 512
    policy_width: int = 192
    rates: tuple[float, ...] = (2.5e-5, 5e-5, 1e-4)
    steps: int = 120
    prompts_per_step: int = 128
    problems: int = 16_000
    validation_problems: int = 200
    test_problems: int = 200

    def __post_init__(self) -> None:
        """Refuse a size that no maze has, too."""
        check_size(self.size)
        super().__post_init__()

    @property
    def title(self) -> str:
        """What the plan is about, for people."""
        return f"maze {self.size} × {self.size}"

    @property
    def folder(self) -> str:
        """A name for its folder."""
        return f"maze-{self.size}"

    @property
    def settings(self) -> dict[str, Any]:
        """Of the task."""
        return {"size": self.size}

    def start(self, folder: Path) -> str:
        """Return the policy, built if it is not there."""
        from vpo.models.build import build_maze

        if not self.model and not folder.is_dir():
            build_maze(
                folder,
                size=self.size,
                mazes=self.policy_mazes,
                steps=self.policy_steps,
                batch=self.policy_batch,
                goals=True,
                width=self.policy_width,
            )
        return self.model or str(folder)

    def further(self) -> dict[str, Any]:
        """Return how many rollouts go through a backward pass: fewer where they are longer, for their memory."""
        return {"micro_batch": min(256 if self.size <= 9 else 128, self.prompts_per_step * self.group)}


@dataclass(frozen=True, kw_only=True)
class LanguagePlan(Plan):
    """A task of text, from the language model `model`, which is warmed up first: see `vpo.models.warmup`.

    Attributes:
        task_settings: of the task, such as its data.
        max_tokens: after m times as many a completion is cut off.
        micro_batch: rollouts in one backward pass; of the warm-up, examples.
        single_steps: steps of the warm-up on single gold answers.
        set_steps: steps of the warm-up on sets, made of the model's own answers; with neither there is no warm-up.
        set_problems: problems for the sets.
        warmup_learning_rate: learning rate of the warm-up.
    """

    task_settings: dict[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] = ("grpo", "gdpo", "max_at_k", "multi_rlvr", "vpo")
    rates: tuple[float, ...] = (1e-5,)
    seeds: int = 1
    steps: int = 60
    prompts_per_step: int = 32
    problems: int = 0
    test_problems: int = 0
    evaluations: int = 4
    max_tokens: int = 200
    micro_batch: int = 32
    single_steps: int = 300
    set_steps: int = 100
    set_problems: int = 400
    warmup_learning_rate: float = 1e-4

    def __post_init__(self) -> None:
        """Refuse a plan without a model, and rates to choose from, for which there are no problems."""
        if not self.model:
            raise InputError(f"{self.task} needs a language model to start from: give --model")
        if len(self.rates) > 1 or self.validation_problems:
            raise InputError(f"{self.task} has no validation problems to choose a rate on: give one rate")
        super().__post_init__()
        self.warmup()  # refuses numbers that mean nothing

    @property
    def settings(self) -> dict[str, Any]:
        """Of the task."""
        return self.task_settings

    def start(self, folder: Path) -> str:
        """Return the model, warmed up if it is not there."""
        from vpo.models.warmup import warm_up

        warmup = self.warmup()
        if warmup is None:
            return self.model
        if not folder.is_dir():
            warm_up(self.model, self.task, self.task_settings, folder, warmup)
        return str(folder)

    def warmup(self) -> "Warmup | None":
        """Return what the warm-up is made of; None for none."""
        from vpo.models.warmup import OWN, Warmup

        if self.single_steps == 0 == self.set_steps:
            return None
        answers = max(get_method(name, **settings).answers for name, settings in map(split_method, self.methods))
        return Warmup(
            answers=max(answers, 2),
            source=OWN,
            single_steps=self.single_steps,
            set_steps=self.set_steps,
            set_problems=self.set_problems,
            warmup_learning_rate=self.warmup_learning_rate,
            micro_batch=math.gcd(Warmup.batch, self.micro_batch),
            max_tokens=self.max_tokens,
        )

    def further(self) -> dict[str, Any]:
        """Return how long answers may be, and how many rollouts go through a backward pass."""
        rollouts = self.prompts_per_step * self.group
        return {"max_tokens": self.max_tokens, "micro_batch": min(self.micro_batch, rollouts)}


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


# Minutes on a CPU, by fields of the plans that have them.
SMALL: dict[str, Any] = {
    "size": 7,
    "policy_mazes": 1_000,
    "policy_steps": 200,
    "policy_batch": 64,
    "policy_width": 96,
    "rates": (2e-4,),
    "seeds": 1,
    "steps": 10,
    "prompts_per_step": 8,
    "problems": 80,
    "warmup_steps": 3,
    "test_problems": 20,
    "evaluations": 1,
    "single_steps": 20,
    "set_steps": 10,
    "set_problems": 20,
}
