"""What a search looks for: a weighting, a condition, a function of the user's, or the task's own target.

The policy need not have been trained for any of them. A goal turns the scores of an answer into one value, by which
candidates compete, and decides whether the answer solves the problem.
"""

import math
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vpo.core.targets import parse_target, weights_for
from vpo.rewards.functions import load_function
from vpo.tasks import Task, Vector
from vpo.util.errors import InputError

TOLERANCE = 1e-9
LEAST, GREATEST = 0.0, 1.0  # score of any objective of the tasks of this package that have a range
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda score, bound: score >= bound - TOLERANCE,
    "<=": lambda score, bound: score <= bound + TOLERANCE,
    ">": operator.gt,
    "<": operator.lt,
}
_PART = re.compile(r"\s*(.+?)\s*(>=|<=|>|<)\s*(.+?)\s*")


class Goal(ABC):
    """What is looked for in the answers to the problems of a task.

    Attributes:
        name: as users typed it.
        task: the task of the answers.
        named: the objectives that the goal names.
        rises: whether the value follows from the scores alone, and never falls where one of them rises.
        is_own: whether it is the task's own, which prompts need not state.
    """

    name: str
    task: Task[Any]
    named: tuple[str, ...] = ()
    rises: bool = True
    is_own: ClassVar[bool] = False

    def check(self, problem: Any) -> None:
        """Refuse a problem that lacks an objective that the goal names."""
        names = self.task.names_of(problem)
        for name in self.named:
            if name not in names:
                raise InputError(
                    f"goal {self.name!r} names {name!r}, and the objectives of problem {problem.id!r} are "
                    f"{', '.join(names)}"
                )

    def check_reachable(self, problems: Sequence[Any]) -> None:
        """Refuse a goal that, as far as the task knows, no answer to any of the problems can reach."""
        return

    def weights_of(self, problem: Any) -> tuple[float, ...] | None:
        """The weights of a problem's objectives, for a prompt that states them; None where it is not a weighting."""
        return None

    @abstractmethod
    def value(self, problem: Any, answer: str, vector: Sequence[float]) -> float:
        """How good an answer is: more is better; below 0 only where scores may be."""

    @abstractmethod
    def solved(self, problem: Any, answer: str, vector: Sequence[float], value: float) -> bool | None:
        """Whether an answer with these scores and this value reaches the goal; None where that cannot be known."""

    def solved_all(
        self, problems: Sequence[Any], answers: Sequence[str], vectors: Sequence[Vector], values: Sequence[float]
    ) -> list[bool | None]:
        """The same of many answers."""
        return [self.solved(*each) for each in zip(problems, answers, vectors, values, strict=True)]


class WeightingGoal(Goal):
    """A weighting of the objectives: solved at the best value of any answer where the task knows it.

    Else it is solved at 1, or never where scores have no bound.
    """

    def __init__(self, text: str, task: Task[Any]) -> None:
        """Read "gold=1" or "gold=1,diamond=3"."""
        self.name, self.task = text, task
        self.target: dict[str, float] | None = parse_target(text)
        self.named = tuple(self.target)
        weights_for(self.target, task.names)  # raises for an unknown objective
        self.best: dict[str, float] = {}

    def weights_of(self, problem: Any) -> tuple[float, ...]:
        """The weights of a problem's objectives."""
        return tuple(weights_for(self.target, self.task.names_of(problem)))

    def value(self, problem: Any, answer: str, vector: Sequence[float]) -> float:
        """The weighted sum w·r."""
        return float(np.dot(self.weights_of(problem), vector))

    def solved(self, problem: Any, answer: str, vector: Sequence[float], value: float) -> bool | None:
        """Whether no answer can have a higher value."""
        if problem.id not in self.best:
            known = self.task.best(problem, self.weights_of(problem))
            greatest = math.inf if self.task.unbounded else GREATEST
            self.best[problem.id] = greatest if known is None else known
        return value >= self.best[problem.id] - TOLERANCE


class TaskGoal(WeightingGoal):
    """The task's own goal: its target weighting, and its own definition of solved."""

    name = "own"
    is_own: ClassVar[bool] = True

    def __init__(self, task: Task[Any]) -> None:
        """The goal of a task."""
        self.task, self.target = task, task.target

    def solved(self, problem: Any, answer: str, vector: Sequence[float], value: float) -> bool | None:
        """As the task defines it."""
        return self.solved_all([problem], [answer], [tuple(vector)], [value])[0]

    def solved_all(
        self, problems: Sequence[Any], answers: Sequence[str], vectors: Sequence[Vector], values: Sequence[float]
    ) -> list[bool | None]:
        """As the task defines it, in one call: it may run tests that are held out."""
        return self.task.solved_all(problems, answers, vectors)


@dataclass(frozen=True)
class _Bound:
    """One comparison of an objective's score with a number."""

    objective: str
    comparison: str
    number: float

    @property
    def is_lower(self) -> bool:
        return self.comparison in (">=", ">")

    def __str__(self) -> str:
        return f"{self.objective}{self.comparison}{self.number:g}"

    def holds(self, score: float) -> bool:
        return _COMPARISONS[self.comparison](score, self.number)

    def reached(self, score: float, *, unbounded: bool) -> float:
        """Share of the way from the worst score to the bound, in [0, 1]; 1 where it holds.

        Where scores are unbounded, it falls with the distance to the bound.
        """
        if self.holds(score):
            return 1.0
        if unbounded:
            return 1 / (1 + abs(score - self.number))
        distance = self.number if self.is_lower else 1 - self.number
        covered = score if self.is_lower else 1 - score
        return min(1.0, max(0.0, covered / distance)) if distance > 0 else 0.0


class ConditionGoal(Goal):
    """Bounds on objectives: solved where all hold. The value is the mean over bounds of how far each is reached."""

    def __init__(self, text: str, task: Task[Any]) -> None:
        """Read "diamond>=1, completion>=1"."""
        self.name, self.task = text, task
        self.bounds: list[_Bound] = []
        for part in text.split(","):
            match = _PART.fullmatch(part)
            bound = _number(match[3]) if match else math.nan
            if match is None or not math.isfinite(bound):
                raise InputError(f"goal must be written NAME>=NUMBER,… (or <=, >, <), not {part.strip()!r}")
            name, comparison = match[1], match[2]
            if name not in task.names:
                raise InputError(f"goal names {name!r}, and the objectives are {', '.join(task.names)}")
            self.bounds.append(_Bound(name, comparison, bound))
        self.named = tuple(bound.objective for bound in self.bounds)
        self.rises = all(bound.is_lower for bound in self.bounds)
        self._check_bounds()

    def _check_bounds(self) -> None:
        """Refuse bounds beyond the range of scores, and bounds of one objective that exclude each other."""
        for bound in self.bounds if _keeps_to_range(self.task) else ():
            if not bound.holds(GREATEST if bound.is_lower else LEAST):
                raise InputError(
                    f"goal {self.name!r} cannot be reached: scores of {bound.objective} lie in "
                    f"{LEAST:g}..{GREATEST:g}, and never {bound.comparison} {bound.number:g}"
                )
        for lower in (bound for bound in self.bounds if bound.is_lower):
            for upper in (bound for bound in self.bounds if not bound.is_lower and bound.objective == lower.objective):
                # Only the bounds themselves and what is between them can satisfy both.
                between = (lower.number, (lower.number + upper.number) / 2, upper.number)
                if not any(lower.holds(score) and upper.holds(score) for score in between):
                    raise InputError(f"goal {self.name!r} cannot be reached: no score is both {lower} and {upper}")

    def check_reachable(self, problems: Sequence[Any]) -> None:
        """Refuse lower bounds that exceed the best score of every problem, one by one and in their mean."""
        bounds = [bound for bound in self.bounds if bound.is_lower]
        for parts in dict.fromkeys([*((bound,) for bound in bounds), tuple(bounds)] if bounds else []):
            greatest = -math.inf
            for problem in problems:
                names = self.task.names_of(problem)
                counts = [sum(part.objective == name for part in parts) for name in names]
                best = self.task.best(problem, [count / len(parts) for count in counts])
                # No answer has a larger mean of these scores, and one that reaches the bounds has at least theirs.
                if best is None or best >= sum(part.number for part in parts) / len(parts) - TOLERANCE:
                    break
                greatest = max(greatest, best)
            else:
                wanted = " and ".join(map(str, parts))
                what = parts[0].objective if len(parts) == 1 else "the mean of these scores"
                raise InputError(
                    f"goal {self.name!r} cannot be reached: no answer to any of the {len(problems)} problems has "
                    f"{wanted}, since {what} is at most {greatest:.4g}"
                )

    def value(self, problem: Any, answer: str, vector: Sequence[float]) -> float:
        """The mean over bounds of how far each is reached: 1 where it holds."""
        scores = dict(zip(self.task.names_of(problem), vector, strict=True))
        unbounded = self.task.unbounded
        return float(np.mean([bound.reached(scores[bound.objective], unbounded=unbounded) for bound in self.bounds]))

    def solved(self, problem: Any, answer: str, vector: Sequence[float], value: float) -> bool | None:
        """Whether every bound holds."""
        scores = dict(zip(self.task.names_of(problem), vector, strict=True))
        return all(bound.holds(scores[bound.objective]) for bound in self.bounds)


class FunctionGoal(Goal):
    """A function of the user's, ``function(answer, scores, problem)`` with scores by name: solved at 1."""

    rises = False

    def __init__(self, text: str, task: Task[Any]) -> None:
        """Read "file.py:function" or "module:function"."""
        self.name, self.task, self.function = text, task, load_function(text)

    def value(self, problem: Any, answer: str, vector: Sequence[float]) -> float:
        """What the function returns."""
        result = self.function(answer, dict(zip(self.task.names_of(problem), vector, strict=True)), problem)
        try:
            number = float(result)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise InputError(f"{self.name}: the function must return a finite number, not {result!r}")
        return number

    def solved(self, problem: Any, answer: str, vector: Sequence[float], value: float) -> bool | None:
        """Whether the function returned 1 or more."""
        return value >= 1 - TOLERANCE


def goals_of(
    task: Task[Any], targets: Sequence[str] = (), conditions: Sequence[str] = (), functions: Sequence[str] = ()
) -> list[Goal]:
    """One goal for each text; the task's own goal where there is none."""
    goals: list[Goal] = [WeightingGoal(text, task) for text in targets]
    goals += [ConditionGoal(text, task) for text in conditions]
    goals += [FunctionGoal(text, task) for text in functions]
    names = [goal.name for goal in goals]
    if len(set(names)) < len(names):
        raise InputError(f"goals must be given once each, not {', '.join(names)}")
    return goals or [TaskGoal(task)]


def _keeps_to_range(task: Task[Any]) -> bool:
    """Whether all scores are in 0..1: those of this package's tasks are; a task of the user's may break that rule."""
    return type(task).__module__.partition(".")[0] == "vpo" and not task.unbounded


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
