"""Search over a tree of prefixes: the beginnings of answers, each ending where a step of an answer ends."""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from vpo.core.types import Floats
from vpo.search.candidates import START, Candidate, Move, SearchProblem
from vpo.search.strategies import Strategy
from vpo.tasks import Task
from vpo.util.errors import InputError

CONTINUING = ("fresh", "regrow", "branch")  # operators of a tree
EXPLORATION = 0.3
MOST_STEPS = 200  # of an answer: each is scored as the end of a prefix, in time that grows with its length
GOAL_SHARE = 0.5  # of the choices are by the goal's value; the others are by random weights of the objectives


def tree_operators(operators: Mapping[str, float] | None, unsupported: Mapping[str, str]) -> dict[str, float]:
    """The operators of a tree with their shares; by default, a quarter of the generations are fresh samples.

    Args:
        operators: how often each is used, in proportion; None for the default.
        unsupported: operators that the generator does not support, and why.
    """
    if "regrow" in unsupported:
        raise InputError(f"strategy tree {unsupported['regrow']}")
    if operators is None:
        return {"fresh": 0.25, "regrow" if "branch" in unsupported else "branch": 0.75}
    for name, share in operators.items():
        if share and name not in CONTINUING:
            raise InputError(f"strategy tree uses the operators {', '.join(CONTINUING)}, not {name!r}")
    return dict(operators)


@dataclass
class Prefix:
    """The beginning of an answer.

    Attributes:
        origin: the first candidate that begins so.
        end: its length in characters.
        most: the scores that an answer which begins so may have at most; None where that is not known.
        most_value: by the goal, likewise.
        best: the highest value of the candidates that begin so.
        visits: how many do.
        tries: how many generations continued it.
    """

    origin: Candidate | None
    end: int
    most: tuple[float, ...] | None
    most_value: float
    best: float = -math.inf
    visits: int = 0
    tries: int = 0


@dataclass(kw_only=True)
class Tree(Strategy):
    """Continues the prefix that is best under random weights, by its best completion and by what it can still reach.

    Each choice draws weights: one half of them the goal's, the others uniformly from the simplex. A prefix that cannot
    beat the best answer so far is left out. Of the others it takes the one of highest

        (n · best + most) / (n + 1) + 0.3 · sqrt(log(generations) / (1 + tries))

    with the value of its best completion, the most that it can reach (`Task.score_partial`; where that is unknown, best
    alone), the number n of its completions, and the tries, the generations that continued it. One of equals is random.

    Attributes:
        task: cuts answers into steps, and scores prefixes.
        problem: with its goal.
        operators: how often each is used, in proportion. Where no prefix is left, all samples are fresh.
        prefixes: so far; the first is empty.
        children: index of a prefix, by that of its parent and the text between.
        position: index of a prefix, by the number of a candidate and the length of its beginning.
        scored: the different pairs of a prefix and the scores of a candidate that begins with it, in order.
    """

    task: Task[Any]
    problem: SearchProblem
    operators: Mapping[str, float]
    prefixes: list[Prefix] = field(init=False)
    children: dict[tuple[int, str], int] = field(default_factory=dict, init=False)
    position: dict[tuple[int, int], int] = field(default_factory=dict, init=False)
    scored: dict[tuple[int, tuple[float, ...]], None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Begin with the empty prefix."""
        self.prefixes = [self._prefix(None, "")]

    def ask(self, count: int, random: Random) -> list[Move]:
        """Continuations of prefixes, different ones in one iteration where they are as good, and fresh samples."""
        asked: Counter[int] = Counter()
        moves = []
        for _ in range(count):
            (operator,) = random.choices(list(self.operators), list(self.operators.values()))
            index = 0 if operator == "fresh" else self._choose(asked, random)
            asked[index] += 1
            prefix = self.prefixes[index]
            moves.append(Move(operator, prefix.origin, kept=prefix.end) if index else Move("fresh"))
        return moves

    def tell(self, candidates: Sequence[Candidate], forms: Sequence[Hashable]) -> None:
        """Count the generations, and add the prefixes of scored answers."""
        for each in candidates:
            if each.position == 1 and each.operator != START:
                index = 0 if each.parent is None else self.position.get((each.parent, each.kept), 0)
                self.prefixes[index].tries += 1
            if each.answer is not None and each.scores is not None:
                self._add(each, each.answer, each.scores)

    def _add(self, candidate: Candidate, answer: str, scores: tuple[float, ...]) -> None:
        """Add an answer to all of its prefixes."""
        index = start = 0
        self._count(index, candidate, scores)
        for end in self.task.steps(self.problem.problem, answer)[:MOST_STEPS]:
            index = self.children.setdefault((index, answer[start:end]), len(self.prefixes))
            if index == len(self.prefixes):
                self.prefixes.append(self._prefix(candidate, answer[:end]))
            self.position[candidate.number, end] = index
            self._count(index, candidate, scores)
            start = end

    def _count(self, index: int, candidate: Candidate, scores: tuple[float, ...]) -> None:
        prefix = self.prefixes[index]
        prefix.visits += 1
        prefix.best = max(prefix.best, candidate.value)
        self.scored[index, scores] = None

    def _prefix(self, origin: Candidate | None, text: str) -> Prefix:
        """A new prefix, with what it can reach."""
        problem, goal = self.problem.problem, self.problem.goal
        most = self.task.score_partial(problem, text)
        known = most is not None and goal.rises
        return Prefix(origin, len(text), most, goal.value(problem, text, most) if known and most else math.inf)

    def _choose(self, asked: Mapping[int, int], random: Random) -> int:
        """The index of the prefix to continue; 0 where no other can lead to a better answer."""
        best_n, most_n, least = self._values(random)
        open_n = most_n > least + 1e-9
        open_n[0] = False
        if not open_n.any():
            return 0
        visits_n = np.asarray([each.visits for each in self.prefixes])
        tries_n = np.asarray([each.tries + asked.get(index, 0) for index, each in enumerate(self.prefixes)])
        expected_n = np.where(np.isinf(most_n), best_n, (visits_n * best_n + most_n) / (visits_n + 1))
        values_n = expected_n + EXPLORATION * np.sqrt(np.log(1 + tries_n.sum()) / (1 + tries_n))
        values_n[~open_n] = -math.inf
        return int(random.choice(np.flatnonzero(values_n >= values_n.max() - 1e-9).tolist()))

    def _values(self, random: Random) -> tuple[Floats, Floats, float]:
        """The best value of each prefix so far, the most that it can reach, and what that must exceed.

        Under the goal's weights or random ones. An answer may reach the task's own goal without being the best.
        """
        if not self.scored or random.random() < GOAL_SHARE:
            best_n = np.asarray([each.best for each in self.prefixes])
            most_n = np.asarray([each.most_value for each in self.prefixes])
            return best_n, most_n, min(0.0, best_n.max()) if self.problem.goal.is_own else float(best_n.max())
        indices, vectors = zip(*self.scored, strict=True)
        weights_D = np.asarray([random.expovariate(1.0) for _ in vectors[0]])
        weights_D /= weights_D.sum()
        best_n = np.full(len(self.prefixes), -math.inf)
        np.maximum.at(best_n, np.asarray(indices), np.asarray(vectors) @ weights_D)
        unknown = (math.inf,) * len(weights_D)
        most_nD = np.asarray([unknown if each.most is None else each.most for each in self.prefixes])
        return best_n, most_nD @ weights_D, float(best_n.max())
