"""How a search chooses what to ask for next: one object a case, ask and tell."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from vpo.core.diversity import is_nondominated
from vpo.core.types import Floats
from vpo.search.candidates import Candidate, Move
from vpo.util.errors import InputError

TOURNAMENT = 3
NEIGHBOURS = 3


@dataclass(kw_only=True)
class Strategy(ABC):
    """Searches one case. It draws from a generator that it is given, so that a search can be taken up anywhere."""

    @abstractmethod
    def ask(self, count: int, random: Random) -> list[Move]:
        """Return what to ask of the policy, so many generations."""

    @abstractmethod
    def tell(self, found: Sequence[Candidate], forms: Sequence[Hashable]) -> None:
        """Take what came of it, and what two answers share that are the same."""


@dataclass(kw_only=True)
class BestOfN(Strategy):
    """Independent samples, of which the verifier chooses."""

    def ask(self, count: int, random: Random) -> list[Move]:
        """Return fresh samples."""
        return [Move("fresh")] * count

    def tell(self, found: Sequence[Candidate], forms: Sequence[Hashable]) -> None:
        """Learn nothing."""


@dataclass(kw_only=True)
class Evolve(Strategy):
    """A population that is varied by operators, and an archive of what nothing dominates.

    Attributes:
        operators: how often each is used, in proportion.
        parents: how a parent is chosen: by "target", the goal's value; by "lexicase" over the objectives; or by
            "novelty" in reward space.
        size: of the population: those of most value. The archive takes part besides.
    """

    operators: Mapping[str, float]
    parents: str = "target"
    size: int = 20
    population: list[Candidate] = field(default_factory=list)
    archive: list[Candidate] = field(default_factory=list)
    seen: set[Hashable] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Refuse what is not there to choose from."""
        if self.parents not in PARENTS:
            raise InputError(f"parents must be chosen by {', '.join(PARENTS)}, not {self.parents!r}")
        if self.size < 1:
            raise InputError(f"size must be 1 or more, not {self.size}")

    def ask(self, count: int, random: Random) -> list[Move]:
        """Return moves, each by an operator drawn in proportion, from a parent of its own. The first are fresh."""
        return [self._move(random) for _ in range(count)]

    def _move(self, random: Random) -> Move:
        known = list({each.number: each for each in (*self.population, *self.archive)}.values())
        if not known:
            return Move("fresh")
        (name,) = random.choices(list(self.operators), list(self.operators.values()))
        if name == "fresh":
            return Move(name)
        parent = PARENTS[self.parents](known, random)
        return Move(name, parent, cut=random.random())

    def tell(self, found: Sequence[Candidate], forms: Sequence[Hashable]) -> None:
        """Keep what is new: the best in the population, and in the archive what no other dominates."""
        new = []
        for each, form in zip(found, forms, strict=True):
            if each.scores is not None and form is not None and form not in self.seen:
                self.seen.add(form)
                new.append(each)
        if new:
            self.population = sorted([*self.population, *new], key=lambda each: (-each.value, each.number))[: self.size]
            self.archive = _undominated([*self.archive, *new])


def _undominated(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return those whose vectors nothing dominates, the first of those with the same vector."""
    kept = is_nondominated(_vectors(candidates))
    return [each for each, keep in zip(candidates, kept, strict=True) if keep]


def _vectors(candidates: Sequence[Candidate]) -> Floats:
    return np.asarray([each.scores for each in candidates], dtype=np.float64)


def _by_target(known: Sequence[Candidate], random: Random) -> Candidate:
    """Return the best of some that are drawn, by value; of equals the first drawn."""
    return max((random.choice(known) for _ in range(TOURNAMENT)), key=lambda each: each.value)


def _by_lexicase(known: Sequence[Candidate], random: Random) -> Candidate:
    """Return one of those that are best in one objective after another, in an order drawn at random."""
    left = list(known)
    scores = left[0].scores
    assert scores is not None
    for objective in random.sample(range(len(scores)), len(scores)):
        best = max(each.scores[objective] for each in left if each.scores)
        left = [each for each in left if each.scores and each.scores[objective] >= best - 1e-9]
    return random.choice(left)


def _by_novelty(known: Sequence[Candidate], random: Random) -> Candidate:
    """Return of some that are drawn the one that is farthest from its nearest neighbours in reward space."""
    if len(known) == 1:
        return known[0]
    vectors_nD = _vectors(known)
    drawn = [random.randrange(len(known)) for _ in range(TOURNAMENT)]
    away = [np.sort(np.abs(vectors_nD - vectors_nD[place]).sum(axis=1))[1 : 1 + NEIGHBOURS].mean() for place in drawn]
    return known[drawn[int(np.argmax(away))]]


PARENTS = {"target": _by_target, "lexicase": _by_lexicase, "novelty": _by_novelty}
