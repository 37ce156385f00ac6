"""What a search is made of: problems with a goal, candidates, and the moves that ask for new candidates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vpo.search.goals import Goal

START, START_ITERATION = "start", -1  # operator and iteration of the answers that a task starts from


def is_counted(row: Mapping[str, Any]) -> bool:
    """Whether a generation of the log counts against budgets: the answers that a task starts from cost nothing."""
    return bool(row["operator"] != START)


@dataclass(frozen=True)
class SearchProblem:
    """A problem and the goal that is searched for in it. The logs call its name `case`."""

    problem: Any
    goal: Goal

    @property
    def name(self) -> str:
        """Unique in a search."""
        return f"{self.problem.id} {self.goal.name}"


@dataclass(frozen=True)
class Candidate:
    """An answer with its origin and its scores.

    Attributes:
        number: its index among the candidates of its search problem, from 0.
        iteration: that generated it.
        operator: that generated it.
        parent: number of the candidate that it was made from, if any.
        second: number of the other one, where it was made from two.
        kept: characters of the parent's answer that it begins with, by `regrow` and `branch`.
        position: in its completion, from 1.
        answer: its text; None where the completion has none at this position.
        scores: one for each objective; None where it was not scored.
        value: by the goal; 0 where it was not scored.
        solved: whether the goal is reached.
        failure: why it was not scored.
        feedback: what it got wrong, in words, where the task says so.
    """

    number: int
    iteration: int
    operator: str
    parent: int | None
    position: int
    answer: str | None
    scores: tuple[float, ...] | None
    value: float
    solved: bool
    failure: str | None = None
    feedback: str = ""
    second: int | None = None
    kept: int = 0


@dataclass(frozen=True)
class Move:
    """What to generate next.

    Attributes:
        operator: by name; see `vpo.search.operators`.
        parent: the candidate to start from; None for a fresh sample.
        kept: characters of the parent's answer that the new one begins with, for `regrow` and `branch`.
        second: another parent, for `cross`.
    """

    operator: str
    parent: Candidate | None = None
    kept: int = 0
    second: Candidate | None = None
