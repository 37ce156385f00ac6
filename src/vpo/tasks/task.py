"""What a task is: it states objectives, gives problems, asks for m answers, and scores each one as a vector."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from vpo import answers as protocol
from vpo.core.arrays import check_weights
from vpo.core.simplex import Floats
from vpo.errors import InputError

Message: TypeAlias = dict[str, str]
Vector: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class Objective:
    """One number of a reward: its name and what it means, in a line."""

    name: str
    meaning: str


class Problem(Protocol):
    """What every problem has. Problems are frozen dataclasses of plain data."""

    @property
    def id(self) -> str:
        """Its name, unique within a split."""


P = TypeVar("P", bound=Problem)


@dataclass(frozen=True)
class Flaw:
    """A gold answer that does not score as it should, and why."""

    problem: str
    reason: str
    answer: str | None


class Task(ABC, Generic[P]):
    """A domain of problems whose answers are scored as vectors in [0, 1]^D, higher is better.

    A new task subclasses this, says what stands in the first block below, and implements `problems`, `question` and
    `score`. A keyword of its constructor is a setting that `vpo tasks show NAME --set KEY=VALUE` and the like reach.

    An answer that cannot be read scores zero everywhere; scoring never raises, whatever the text.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    objectives: ClassVar[tuple[Objective, ...]]
    weights: ClassVar[Vector]  # w*, the weighting that is deployed and reported; of sum 1

    # Whether a single answer stands in <answer> tags. Not where the published format has tags of its own.
    wraps_single: ClassVar[bool] = True

    # To implement

    @abstractmethod
    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[P]:
        """Return the problems of a split, or the first `count` of them."""

    @abstractmethod
    def question(self, problem: P) -> list[Message]:
        """Return the problem as chat messages, without a word on how many answers to give. The user speaks last."""

    @abstractmethod
    def score(self, problem: P, answer: str) -> Vector:
        """Return the score of one answer on each objective."""

    # To override where the default does not fit

    def solved(self, vector: Sequence[float]) -> bool:
        """Return whether an answer with these scores solves its problem: all objectives at 1."""
        return all(score >= 1 - 1e-9 for score in vector)

    def normal_form(self, answer: str) -> Hashable:
        """Return what two answers share that are the same, None for one that cannot be read: here, the words."""
        return " ".join(answer.split())

    def parse(self, completion: str, answers: int) -> list[str | None]:
        """Return the answers of a completion, None for a missing one."""
        if answers == 1 and not self.wraps_single:
            return [completion.strip() or None]
        return protocol.parse(completion, answers)

    def parts(self, completion: str, answers: int) -> list[tuple[int, int]]:
        """Return where the part of each answer of a set ends, and its place; to be written anew where `parse` is."""
        return protocol.parts(completion, answers)

    def gold(self, problem: P) -> str | None:
        """Return the best answer, or None where the task knows none."""
        return None

    def expected(self, problem: P) -> Vector:
        """Return the scores of the gold answer."""
        return (1.0,) * len(self.objectives)

    def best(self, problem: P, target: Sequence[float] | None = None) -> float | None:
        """Return the largest w·r that any answer can earn, under w* or another target, or None where nobody knows."""
        return None

    def demonstrations(self, problem: P, count: int, random: Random) -> list[str]:
        """Return answers to imitate: here, the gold answer, as often as it takes."""
        gold = self.gold(problem)
        if gold is None:
            raise InputError(f"task {self.name} has no demonstrations")
        return [gold] * count

    def picture(self, problem: P, answers: Sequence[str], *, colour: bool) -> str | None:
        """Return a problem and answers as a picture for a terminal, or None for a task without pictures."""
        return None

    def draw(self, problem: P, answers: Sequence[str], path: str) -> None:
        """Draw a problem and answers into a .png or .svg file."""
        raise InputError(f"task {self.name} has no pictures")

    def scene(self, problem: P) -> str | None:
        """Return a problem as an SVG drawing for a page, or None for a task without pictures."""
        return None

    def trace(self, problem: P, answer: str) -> str:
        """Return an answer as the points of a line over the scene."""
        return ""

    # Given

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the objectives."""
        return tuple(objective.name for objective in self.objectives)

    def ask(self, problem: P, answers: int = 1, target: Sequence[float] | None = None) -> list[Message]:
        """Return the prompt, as chat messages, that asks for a number of answers.

        Args:
            problem: what to ask.
            answers: m, how many answers one completion is to hold.
            target: weights of the objectives to write into the prompt, for goal-conditioned policies.
        """
        *before, last = self.question(problem)
        parts = [last["content"]]
        if target is not None:
            parts.append(self.goal(target))
        if answers > 1 or self.wraps_single:
            parts.append(protocol.instruction(answers))
        return [*before, {**last, "content": "\n\n".join(parts)}]

    def goal(self, target: Sequence[float]) -> str:
        """Return the sentence that states a weighting of the objectives."""
        if len(target) != len(self.objectives):
            raise InputError(f"target must hold {len(self.objectives)} weights, not {len(target)}")
        check_weights(np.asarray(target, dtype=np.float64), "target")
        shares = ", ".join(f"{name} {weight:.0%}" for name, weight in zip(self.names, target, strict=True))
        return f"What counts in this answer: {shares}."

    def score_many(self, problems: Iterable[P], answers: Iterable[str | None]) -> Floats:
        """Return the scores of pairs of problem and answer, (n, D). A missing answer scores zero."""
        zeros = (0.0,) * len(self.objectives)
        rows = [
            zeros if answer is None else self.score(problem, answer)
            for problem, answer in zip(problems, answers, strict=True)
        ]
        return np.asarray(rows, dtype=np.float64).reshape(len(rows), len(self.objectives))

    def validate(self, problems: Iterable[P]) -> Iterator[Flaw | None]:
        """Grade the gold answer of each problem, without a model: None where it scores as it should.

        The answer is written into a completion and read back as a model's would be, as one answer and as three.
        """
        for problem in problems:
            gold = self.gold(problem)
            if gold is None:
                yield Flaw(problem.id, "there is no gold answer", None)
                continue
            alone = self.parse(protocol.write([gold]) if self.wraps_single else gold, 1)
            in_a_set = self.parse(protocol.write([gold] * 3), 3)
            reasons = [
                f"as {what}: {reason}"
                for what, found in (("a single answer", alone[0]), ("one of a set", in_a_set[-1]))
                if (reason := self._shortfall(problem, found))
            ]
            yield Flaw(problem.id, "; ".join(reasons), gold) if reasons else None

    def _shortfall(self, problem: P, answer: str | None) -> str:
        """Return what an answer lacks to the gold scores, in words; nothing where it lacks nothing."""
        if answer is None:
            return "it is not read back"
        scores = zip(self.names, self.score(problem, answer), self.expected(problem), strict=True)
        return ", ".join(f"{name} is {score:.3g}, not {due:.3g}" for name, score, due in scores if score < due - 1e-9)


def take(problems: Sequence[P], count: int | None) -> Sequence[P]:
    """Return the first `count` problems, refusing to give fewer."""
    if count is None:
        return problems
    if not 1 <= count <= len(problems):
        raise InputError(f"count must lie in 1..{len(problems)}, the problems of the split, not {count}")
    return problems[:count]


def check_split(split: str, splits: Sequence[str], task: str) -> None:
    """Refuse a split that a task does not have."""
    if split not in splits:
        raise InputError(f"split {split!r} is not one of {task}: there are {', '.join(splits)}")
