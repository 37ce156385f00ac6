"""What a task is: it states objectives, gives problems, asks for m answers, and scores each one as a vector."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from vpo.core.checks import check_weights
from vpo.tasks import answers as protocol
from vpo.util.errors import InputError

Message: TypeAlias = dict[str, str]
Vector: TypeAlias = tuple[float, ...]

AT_ONCE = 64  # what is scored in one call: enough to keep many cores busy


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
T = TypeVar("T")


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

    An answer that cannot be read scores zero everywhere; scoring never raises, whatever the text. A score that cannot
    be known, since what would tell is out of order, is None: never zero.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    objectives: ClassVar[tuple[Objective, ...]]
    weights: ClassVar[Vector]  # w*, the weighting that is deployed and reported; of sum 1

    # Whether problems differ in how many objectives they have. Such a task says by `names_of` which, and w* is uniform
    # over the objectives of each problem.
    ragged: ClassVar[bool] = False

    # Whether a single answer stands in <answer> tags. Not where the published format has tags of its own.
    wraps_single: ClassVar[bool] = True

    # Settings that are files or folders.
    files: ClassVar[tuple[str, ...]] = ("data",)

    # To implement

    @abstractmethod
    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[P]:
        """Return the problems of a split, or the first `count` of them."""

    @abstractmethod
    def question(self, problem: P) -> list[Message]:
        """Return the problem as chat messages, without a word on how many answers to give. The user speaks last."""

    @abstractmethod
    def score(self, problem: P, answer: str) -> Vector | None:
        """Return the score of one answer on each objective of the problem, or None where it cannot be known."""

    # To override where the default does not fit

    def solved(self, vector: Sequence[float]) -> bool:
        """Return whether an answer with these scores solves its problem: all objectives at 1."""
        return all(score >= 1 - 1e-9 for score in vector)

    def names_of(self, problem: P) -> tuple[str, ...]:
        """Return the names of a problem's objectives: here, of all."""
        return self.names

    def score_all(self, problems: Sequence[P], answers: Sequence[str | None]) -> list[Vector | None]:
        """Return the scores of pairs of problem and answer, each as `score` does; a missing answer scores zero.

        To override where many are scored faster together than one after another.
        """
        return [
            (0.0,) * len(self.names_of(problem)) if answer is None else self.score(problem, answer)
            for problem, answer in zip(problems, answers, strict=True)
        ]

    def score_sets(self, problems: Sequence[P], sets: Sequence[Sequence[str | None]]) -> list[list[Vector | None]]:
        """Return the scores of the answers of sets, one set for each problem: here, of all in one `score_all`.

        To override where the score of an answer depends on the others of its set.
        """
        repeated = [problem for problem, answers in zip(problems, sets, strict=True) for _ in answers]
        vectors = iter(self.score_all(repeated, [answer for answers in sets for answer in answers]))
        return [list(islice(vectors, len(answers))) for answers in sets]

    def solved_all(
        self, problems: Sequence[P], answers: Sequence[str | None], vectors: Sequence[Vector | None]
    ) -> list[bool | None]:
        """Return whether each answer, of these scores, solves its problem, or None where that cannot be known.

        This is for evaluation and search. To override where there is more to it than the scores, such as tests that
        are kept out of the reward.
        """
        return [None if vector is None else self.solved(vector) for vector in vectors]

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

    def described(self) -> dict[str, Any]:
        """Return what scores depend on besides settings, as plain data: it is saved with a run, and must not change."""
        return {}

    def counted(self) -> dict[str, tuple[float, int]]:
        """Return what is worth watching of the scoring since this was last asked: name → total and of how many.

        It is logged as the mean, or the total where the number is 0.
        """
        return {}

    def gold(self, problem: P) -> str | None:
        """Return the best answer, or None where the task knows none."""
        return None

    def expected(self, problem: P) -> Vector:
        """Return the scores of the gold answer."""
        return (1.0,) * len(self.names_of(problem))

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

    @property
    def target(self) -> dict[str, float] | None:
        """w* by name; None, which is uniform everywhere, where problems differ in their objectives."""
        return None if self.ragged else dict(zip(self.names, self.weights, strict=True))

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
            parts.append(self.goal(problem, target))
        if answers > 1 or self.wraps_single:
            parts.append(protocol.instruction(answers))
        return [*before, {**last, "content": "\n\n".join(parts)}]

    def goal(self, problem: P, target: Sequence[float]) -> str:
        """Return the sentence that states a weighting of a problem's objectives."""
        names = self.names_of(problem)
        if len(target) != len(names):
            raise InputError(f"target must hold {len(names)} weights, not {len(target)}")
        check_weights(np.asarray(target, dtype=np.float64), "target")
        shares = ", ".join(f"{name} {weight:.0%}" for name, weight in zip(names, target, strict=True))
        return f"What counts in this answer: {shares}."

    def validate(self, problems: Iterable[P]) -> Iterator[Flaw | None]:
        """Grade the gold answer of each problem, without a model: None where it scores as it should.

        The answer is written into a completion and read back as a model's would be, as one answer and as three.
        """
        for some in in_blocks(problems):
            yield from self._graded(some)

    def _graded(self, problems: Sequence[P]) -> list[Flaw | None]:
        """Grade the gold answers of some problems in one call."""
        golds = [self.gold(problem) for problem in problems]
        ways = {"a single answer": self._read_alone, "one of a set": self._read_in_a_set}
        reasons: list[list[str]] = [[] for _ in problems]
        for way, read in ways.items():
            found = [None if gold is None else read(gold) for gold in golds]
            vectors = self.score_all(problems, found)
            solved = self.solved_all(problems, found, vectors)
            for place, problem in enumerate(problems):
                if reason := self._shortfall(problem, found[place], vectors[place], solved[place]):
                    reasons[place].append(f"as {way}: {reason}")
        return [
            Flaw(problem.id, "there is no gold answer", None)
            if gold is None
            else Flaw(problem.id, "; ".join(found), gold)
            if found
            else None
            for problem, gold, found in zip(problems, golds, reasons, strict=True)
        ]

    def _read_alone(self, gold: str) -> str | None:
        return self.parse(protocol.write([gold]) if self.wraps_single else gold, 1)[0]

    def _read_in_a_set(self, gold: str) -> str | None:
        return self.parse(protocol.write([gold] * 3), 3)[-1]

    def _shortfall(self, problem: P, answer: str | None, vector: Vector | None, solved: bool | None) -> str:
        """Return what an answer lacks to the gold scores, in words; nothing where it lacks nothing."""
        if answer is None:
            return "it is not read back"
        if vector is None or solved is None:
            return "its score cannot be known"
        expected = self.expected(problem)
        scores = zip(self.names_of(problem), vector, expected, strict=True)
        lacking = [f"{name} is {score:.3g}, not {due:.3g}" for name, score, due in scores if score < due - 1e-9]
        if not lacking and not solved and self.solved(expected):
            return "it does not solve the problem"
        return ", ".join(lacking)


def in_blocks(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield as many items at a time as are worth one call of `score_all`."""
    rest = iter(items)
    while some := list(islice(rest, AT_ONCE)):
        yield some


def take(problems: Sequence[P], count: int | None) -> Sequence[P]:
    """Return the first `count` problems, refusing to give fewer."""
    if count is None:
        return problems
    if not 1 <= count <= len(problems):
        raise InputError(f"count must lie in 1..{len(problems)}, the problems of the split, not {count}")
    return problems[:count]


def scoring_note(task: Task[Any]) -> dict[str, Any]:
    """Return what is noted of how a task scores, under `scoring`; nothing where its settings say all."""
    described = task.described()
    return {"scoring": described} if described else {}


def check_split(split: str, splits: Sequence[str], task: str) -> None:
    """Refuse a split that a task does not have."""
    if split not in splits:
        raise InputError(f"split {split!r} is not one of {task}: there are {', '.join(splits)}")
