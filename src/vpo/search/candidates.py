"""What a search is made of: cases, moves that are asked for, and candidates that are told."""

from dataclasses import dataclass
from typing import Any

from vpo.search.goals import Goal


@dataclass(frozen=True)
class SearchProblem:
    """A problem and what is looked for in its answers."""

    problem: Any
    goal: Goal

    @property
    def name(self) -> str:
        """What tells it from others."""
        return f"{self.problem.id} {self.goal.name}"


@dataclass(frozen=True)
class Candidate:
    """An answer, where it came from, and what it is worth.

    Attributes:
        number: its place among the candidates of its case, from 0.
        iteration: in which it was asked for.
        operator: that asked for it.
        parent: the number of the candidate that it came out of, if any.
        position: in its generation, from 1.
        answer: its text; None where the generation has none there.
        scores: its vector; None where it was not scored.
        value: what the goal gives it; 0 where it was not scored.
        solved: whether it is what was looked for.
        failure: why it was not scored, if so.
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


@dataclass(frozen=True)
class Move:
    """What to ask of the policy next.

    Attributes:
        operator: by name; see `vpo.search.operators`.
        parent: the candidate to start from, None for a fresh sample.
        cut: which share of the parent's answer is kept, for `regrow` and `branch`.
    """

    operator: str
    parent: Candidate | None = None
    cut: float = 0.0
