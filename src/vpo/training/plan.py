"""Plans of `vpo reproduce`: which methods are trained, from what, how, and what they are measured on.

A plan is a TOML file with the options of the command by their names, `task`, and `task_settings` for a language task:
see examples/plans. The `plan.toml` that a reproduction writes is one, too.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from vpo.core.checks import as_integer
from vpo.evaluation.eval_plan import EvalConfig
from vpo.methods import METHODS, Method
from vpo.methods import get as get_method
from vpo.training.config import TrainConfig
from vpo.training.starts import LanguageStart, MazeStart, Start
from vpo.util.errors import InputError, nearest
from vpo.util.settings import check_settings, setting, setting_like
from vpo.util.stored import read_toml
from vpo.util.type_checks import matches_type


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is trained, and what it is measured on. The defaults are those of mazes; see `LANGUAGE` for the others."""

    start: Start
    methods: tuple[str, ...] = setting(
        tuple(METHODS),
        "methods; with settings, a group size or a learning rate of their own: vpo:answers=5,grpo:group=24:rate=5e-5",
        metavar="NAME,…",
        shown="all",
    )
    rates: tuple[float, ...] = setting(
        (2.5e-5, 5e-5, 1e-4), "learning rates to choose from on the validation problems", metavar="RATE,…"
    )
    seeds: int = setting(3, "runs of each method that are reported", least=1)
    steps: int = setting_like(TrainConfig, "steps", default=120)
    prompts_per_step: int = setting_like(TrainConfig, "prompts_per_step", default=128)
    problems: int = setting(16_000, "how many problems to train on; 0: all of the split", least=0)
    group: int = setting_like(TrainConfig, "group")
    warmup_steps: int = setting_like(TrainConfig, "warmup_steps")
    kl: float = setting_like(TrainConfig, "kl", default=0.001, shown=None)
    validation_problems: int = setting(
        200, "how many problems to choose rates on: of the validation split, or held out of training", least=0
    )
    test_problems: int = setting(200, "how many problems to report on; 0: all of the split", least=0)
    pool: int = setting_like(EvalConfig, "pool")
    evaluations: int = setting(1, "evaluations of each run, each with a seed of its own", least=1)
    reference: str = setting(
        "", "the method that the others are compared with", metavar="NAME", shown="vpo, or else the first"
    )

    def __post_init__(self) -> None:
        """Refuse values out of bounds, and those that do not fit the task, the methods or each other."""
        check_settings(self)
        for name in ("methods", "rates"):
            values = getattr(self, name)
            if not values:
                raise InputError(f"{name} must name 1 or more")
            if len(set(values)) < len(values):
                raise InputError(f"{name} must name each once, not {', '.join(map(str, values))}")
        if self.reference and self.reference not in self.methods:
            raise InputError(f"reference must be one of the methods, {', '.join(self.methods)}, not {self.reference!r}")
        if self.chooses_rates and self.validation_problems < 1:
            raise InputError(f"validation_problems must be 1 or more, not {self.validation_problems}")
        for text in self.methods:
            answers = parse_method(text).method.answers
            if self.pool < answers or self.pool % answers:
                raise InputError(f"pool must be a multiple of the {answers} answers of {text}, not {self.pool}")
            self.config(self.start.model or "policy", text, self.rates_of(text)[0], 0)  # checks the numbers of a run

    @property
    def chooses_rates(self) -> bool:
        """Whether a method has several learning rates to choose from."""
        return any(len(self.rates_of(method)) > 1 for method in self.methods)

    def rates_of(self, method: str) -> tuple[float, ...]:
        """The learning rates of a method: its own, or else those of the plan."""
        own = parse_method(method).rate
        return self.rates if own is None else (own,)

    @property
    def answers(self) -> int:
        """The largest m of the methods."""
        return max(parse_method(text).method.answers for text in self.methods)

    def config(self, model: str, method: str, rate: float, seed: int, *, validated: bool = False) -> TrainConfig:
        """The settings of one run. One that is `validated` holds problems out, where there is no split of them."""
        planned = parse_method(method)
        held_out: dict[str, Any] = {}
        if validated and self.start.validation is None:
            held_out = {"eval_every": self.steps, "eval_problems": self.validation_problems, "keep_best": "none"}
        group = planned.group or self.group
        return TrainConfig(
            task=self.start.task,
            method=planned.name,
            method_settings=planned.settings,
            model=model,
            task_settings=self.start.task_settings,
            steps=self.steps,
            prompts_per_step=self.prompts_per_step,
            problems=self.problems or None,
            group=group,
            learning_rate=rate,
            warmup_steps=self.warmup_steps,
            kl=self.kl,
            seed=seed,
            save_every=max(1, self.steps // 4),
            keep_checkpoints=1,
            **self.start.train_settings(self.prompts_per_step * group),
            **held_out,
        )


# What differs for language tasks, by fields of `Plan`.
LANGUAGE: dict[str, Any] = {
    "methods": ("grpo", "gdpo", "max_at_k", "multi_rlvr", "vpo"),
    "rates": (1e-5,),
    "seeds": 1,
    "steps": 60,
    "prompts_per_step": 32,
    "problems": 0,
    "validation_problems": 0,
    "test_problems": 0,
    "evaluations": 4,
}
# Minutes on a CPU, by fields of `Plan` and of its start.
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


def plan_for(
    task: str, settings: Mapping[str, Any], *, planned: Mapping[str, Any] | None = None, small: bool = False
) -> Plan:
    """A plan for a task, with some settings in place of its defaults.

    Args:
        task: "maze", or a language task.
        settings: by the names of the fields of `Plan` and of its start.
        planned: the settings of a plan file, which `settings` and `small` come before.
        small: use the defaults of a plan that takes minutes on a CPU.
    """
    known = _settings_of(task)
    planned = planned or {}
    for name in (*planned, *settings):
        if name not in known:
            raise InputError(f"reproduce {task} has no --{name.replace('_', '-')}")
    values = {**planned} if task == "maze" else {"task": task, **LANGUAGE, **planned}
    if small:
        values |= {name: value for name, value in SMALL.items() if name in known}
    values |= settings
    kind = MazeStart if task == "maze" else LanguageStart
    start = kind(**{name: values.pop(name) for name in _names(kind) if name in values})
    return Plan(start=start, **values)


def read_plan(path: Path) -> dict[str, Any]:
    """The settings of a plan file, with its `task`; only names that plans have are allowed in it."""
    written, _ = read_toml(path)
    start = written.pop("start", {})
    if not isinstance(start, dict):
        raise InputError(f"{path}: start must be a table, not {start!r}")
    settings = {**start, **written}
    for name, value in settings.items():
        if name not in (*SETTINGS, "task"):
            raise InputError(f"{path}: setting {name!r} is not known: {nearest(name, sorted([*SETTINGS, 'task']))}")
        if isinstance(value, list):
            settings[name] = tuple(value)
    if not isinstance(settings.get("task", ""), str):
        raise InputError(f"{path}: task must be text, not {settings['task']!r}")
    return settings


def _settings_of(task: str) -> set[str]:
    return (_names(Plan) | _names(MazeStart if task == "maze" else LanguageStart)) - {"start", "task"}


def _names(kind: type) -> set[str]:
    return {each.name for each in fields(kind)}


SETTINGS = _settings_of("maze") | _settings_of("")  # the names of all settings of plans


@dataclass(frozen=True)
class PlannedMethod:
    """A method of a plan.

    Attributes:
        name: of the method.
        settings: of the method.
        group: rollouts per problem, where they are not those of the plan.
        rate: the learning rate, where it is not chosen from those of the plan.
    """

    name: str
    settings: dict[str, Any]
    group: int | None = None
    rate: float | None = None

    @property
    def method(self) -> Method:
        """The method with its settings."""
        return get_method(self.name, **self.settings)


def parse_method(text: str) -> PlannedMethod:
    """Read "max_at_k:k=4:group=24:rate=5e-5": a method, its settings, its rollouts per problem and learning rate."""
    name, *parts = text.split(":")
    settings = {}
    for part in parts:
        key, _, value = part.partition("=")
        try:
            settings[key] = json.loads(value)
        except ValueError:
            raise InputError(f"a setting of a method must be written KEY=VALUE, not {part!r}") from None
    planned = PlannedMethod(name, settings, settings.pop("group", None), settings.pop("rate", None))
    if not matches_type(planned.rate, float | None):
        raise InputError(f"rate of {name} must be a number, not {planned.rate!r}")
    if planned.group is not None:
        planned.method.check_group_size(as_integer(planned.group, "group", 1))
    return planned
