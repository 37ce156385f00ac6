"""What a search looks for: a weighting, a condition, a function of one's own, or what the task itself wants.

None of them need have been trained for. A goal gives an answer's vector a value, by which candidates compete, and says
whether it solves the problem.
"""

import math
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.targets import parse_target, weights_for
from vpo.tasks import Task
from vpo.util.errors import InputError
from vpo.util.files import load_module

TOLERANCE = 1e-9
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda score, bound: score >= bound - TOLERANCE,
    "<=": lambda score, bound: score <= bound + TOLERANCE,
    ">": operator.gt,
    "<": operator.lt,
}
_PART = re.compile(r"\s*(.+?)\s*(>=|<=|>|<)\s*(.+?)\s*")


class Goal(ABC):
    """What is looked for in the answers to the problems of a task.

    Attributes:
        name: what users typed.
        task: whose answers they are.
        named: the objectives that it names.
    """

    name: str
    task: Task[Any]
    named: tuple[str, ...] = ()

    def check(self, problem: Any) -> None:
        """Refuse a problem that lacks an objective that the goal names."""
        names = self.task.names_of(problem)
        for name in self.named:
            if name not in names:
                raise InputError(
                    f"goal {self.name!r} names {name!r}, and the objectives of problem {problem.id!r} are "
                    f"{', '.join(names)}"
                )

    def weights_of(self, problem: Any) -> tuple[float, ...] | None:
        """Return the weights of a problem's objectives where it is a weighting, which a policy can be told."""
        return None

    @abstractmethod
    def value(self, problem: Any, answer: str, vector: Sequence[float]) -> float:
        """Return how good an answer is: more is better, 0 is nothing."""

    @abstractmethod
    def solved(self, problem: Any, answer: str, vector: Sequence[float], value: float) -> bool | None:
        """Return whether an answer, of a vector and a value, is all that was looked for; None where nobody knows."""


class WeightingGoal(Goal):
    """A weighting of the objectives, solved at the best that any answer can earn where the task knows it, else at 1."""

    def __init__(self, text: str, task: Task[Any]) -> None:
        """Read "gold=1" or "gold=1,diamond=3"."""
        self.name, self.task = text, task
        self.target: dict[str, float] | None = parse_target(text)
        self.named = tuple(self.target)
        weights_for(self.target, task.names)  # refuses what is no objective
        self.best: dict[str, float] = {}

    def weights_of(self, problem: Any) -> tuple[float, ...]:
        """Return the weights of a problem's objectives."""
        return tuple(weights_for(self.target, self.task.names_of(problem)))

    def value(self, problem: Any, answer: str, vector: Sequence[float]) -> float:
        """Return w·r."""
        return float(np.dot(self.weights_of(problem), vector))

    def solved(self, problem: Any, answer: str, vector: Sequence[float], value: float) -> bool | None:
        """Return whether no answer can earn more."""
        if problem.id not in self.best:
            known = self.task.best(problem, self.weights_of(problem))
            self.best[problem.id] = 1.0 if known is None else known
        return value >= self.best[problem.id] - TOLERANCE


class TaskGoal(WeightingGoal):
    """What the task itself wants: its deployed weighting, and its own notion of solved."""

    def __init__(self, task: Task[Any]) -> None:
        """Take the task."""
        self.name, self.task, self.target = "own", task, task.target

    def solved(self, problem: Any, answer: str, vector: Sequence[float], value: float) -> bool | None:
        """Return what the task says."""
        (found,) = self.task.solved_all([problem], [answer], [tuple(vector)])
        return found


class ConditionGoal(Goal):
    """Bounds on objectives, all of which must hold. The value is the share of the way to them, averaged."""

    def __init__(self, text: str, task: Task[Any]) -> None:
        """Read "diamond>=1, completion>=1"."""
        self.name, self.task = text, task
        self.bounds: list[tuple[str, str, float]] = []
        for part in text.split(","):
            found = _PART.fullmatch(part)
            bound = _number(found[3]) if found else math.nan
            if found is None or not math.isfinite(bound):
                raise InputError(f"goal must be written NAME>=NUMBER,… (or <=, >, <), not {part.strip()!r}")
            if found[1] not in task.names:
                raise InputError(f"goal names {found[1]!r}, and the objectives are {', '.join(task.names)}")
            self.bounds.append((found[1], found[2], bound))
        self.named = tuple(name for name, _, _ in self.bounds)

    def value(self, problem: Any, answer: str, vector: Sequence[float]) -> float:
        """Return how far the bounds are met, on average: 1 for each that is."""
        scores = dict(zip(self.task.names_of(problem), vector, strict=True))
        return float(np.mean([_nearness(scores[name], sign, bound) for name, sign, bound in self.bounds]))

    def solved(self, problem: Any, answer: str, vector: Sequence[float], value: float) -> bool | None:
        """Return whether every bound is met."""
        scores = dict(zip(self.task.names_of(problem), vector, strict=True))
        return all(_SIGNS[sign](scores[name], bound) for name, sign, bound in self.bounds)


class FunctionGoal(Goal):
    """A function of one's own, ``function(answer, scores, problem)`` with scores by name, solved at 1."""

    def __init__(self, text: str, task: Task[Any]) -> None:
        """Read "file.py:function"."""
        self.name, self.task = text, task
        path, _, name = text.rpartition(":")
        if not Path(path).is_file():
            raise InputError(f"reward must be written FILE.py:FUNCTION, and there is no file {path!r}")
        try:
            module = load_module(path, f"vpo_reward_{Path(path).stem}")
        except Exception as error:
            raise InputError(f"{path}: the file cannot be run ({type(error).__name__}: {error})") from error
        self.function = getattr(module, name, None)
        if not callable(self.function):
            raise InputError(f"{path}: the file has no function {name!r}")

    def value(self, problem: Any, answer: str, vector: Sequence[float]) -> float:
        """Return what the function says."""
        assert self.function is not None
        found = self.function(answer, dict(zip(self.task.names_of(problem), vector, strict=True)), problem)
        try:
            number = float(found)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise InputError(f"{self.name}: the function must return a finite number, not {found!r}")
        return number

    def solved(self, problem: Any, answer: str, vector: Sequence[float], value: float) -> bool | None:
        """Return whether the function says 1 or more."""
        return value >= 1 - TOLERANCE


def goals_of(
    task: Task[Any], targets: Sequence[str] = (), conditions: Sequence[str] = (), functions: Sequence[str] = ()
) -> list[Goal]:
    """Return the goals that were given, or else the task's own."""
    found: list[Goal] = [WeightingGoal(text, task) for text in targets]
    found += [ConditionGoal(text, task) for text in conditions]
    found += [FunctionGoal(text, task) for text in functions]
    names = [goal.name for goal in found]
    if len(set(names)) < len(names):
        raise InputError(f"goals must be given once each, not {', '.join(names)}")
    return found or [TaskGoal(task)]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _nearness(score: float, sign: str, bound: float) -> float:
    if _SIGNS[sign](score, bound):
        return 1.0
    room = bound if sign in (">=", ">") else 1 - bound
    reached = score if sign in (">=", ">") else 1 - score
    return min(1.0, max(0.0, reached / room)) if room > 0 else 0.0
