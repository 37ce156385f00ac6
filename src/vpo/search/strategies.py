"""Strategies choose what to generate next. One object for each search problem, with ask and tell."""

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
    """Searches one problem. All randomness comes from the argument `random`, so that a search can be resumed."""

    @abstractmethod
    def ask(self, count: int, random: Random) -> list[Move]:
        """The next moves, one for each of `count` generations."""

    @abstractmethod
    def tell(self, candidates: Sequence[Candidate], forms: Sequence[Hashable]) -> None:
        """Learn from scored candidates; `forms` are their normal forms, None for answers that cannot be read."""


@dataclass(kw_only=True)
class BestOfN(Strategy):
    """Independent samples; the scores choose among them."""

    def ask(self, count: int, random: Random) -> list[Move]:
        """Fresh samples."""
        return [Move("fresh")] * count

    def tell(self, candidates: Sequence[Candidate], forms: Sequence[Hashable]) -> None:
        """Ignored: samples are independent."""


@dataclass(kw_only=True)
class Evolve(Strategy):
    """Evolution: operators vary parents from a population of the best and an archive of the non-dominated candidates.

    Attributes:
        operators: how often each is used, in proportion.
        parents: how a parent is chosen: by "target", in a tournament by the goal's value; "best", the one of highest
            value; by "weighting", the best under random weights of the objectives; by "lexicase" over the objectives;
            or by "novelty" in reward space.
        size: of the population, the candidates of highest value. Parents come from the archive as well.
        population: sorted by value.
        archive: the non-dominated candidates.
        seen: normal forms of all candidates so far.
    """

    operators: Mapping[str, float]
    parents: str = "target"
    size: int = 20
    population: list[Candidate] = field(default_factory=list)
    archive: list[Candidate] = field(default_factory=list)
    seen: set[Hashable] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.parents not in PARENTS:
            raise InputError(f"parents must be chosen by {', '.join(PARENTS)}, not {self.parents!r}")
        if self.size < 1:
            raise InputError(f"size must be 1 or more, not {self.size}")

    def ask(self, count: int, random: Random) -> list[Move]:
        """Moves with random operators and parents; fresh samples while there are no candidates."""
        return [self._move(random) for _ in range(count)]

    def _move(self, random: Random) -> Move:
        known = list({each.number: each for each in (*self.population, *self.archive)}.values())
        if not known:
            return Move("fresh")
        (name,) = random.choices(list(self.operators), list(self.operators.values()))
        if name == "fresh":
            return Move(name)
        parent = PARENTS[self.parents](known, random)
        if name == "cross":
            second = _complement(parent, known, random)
            return Move("repair", parent) if second is None else Move(name, parent, second=second)
        return Move(name, parent, kept=int(random.random() * len(parent.answer or "")))

    def tell(self, candidates: Sequence[Candidate], forms: Sequence[Hashable]) -> None:
        """Add new answers to the population and the archive; repeated and unscored ones are dropped."""
        new = []
        for each, form in zip(candidates, forms, strict=True):
            if each.scores is not None and form is not None and form not in self.seen:
                self.seen.add(form)
                new.append(each)
        if new:
            self.population = sorted([*self.population, *new], key=lambda each: (-each.value, each.number))[: self.size]
            self.archive = _nondominated([*self.archive, *new])


def _nondominated(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The non-dominated candidates; of those with equal scores the first."""
    kept = is_nondominated(_vectors(candidates))
    return [each for each, keep in zip(candidates, kept, strict=True) if keep]


def _vectors(candidates: Sequence[Candidate]) -> Floats:
    return np.asarray([each.scores for each in candidates], dtype=np.float64)


def _comparable(candidates: Sequence[Candidate]) -> Floats:
    """Their scores, with objectives that span more than 1 scaled down to that: no objective outweighs the others."""
    vectors_nD = _vectors(candidates)
    scaled_nD: Floats = vectors_nD / np.maximum(1.0, np.ptp(vectors_nD, axis=0))
    return scaled_nD


def _by_target(known: Sequence[Candidate], random: Random) -> Candidate:
    """Tournament by value; of equals the first sampled."""
    return max((random.choice(known) for _ in range(TOURNAMENT)), key=lambda each: each.value)


def _best(known: Sequence[Candidate], random: Random) -> Candidate:
    """The candidate of highest value; of equals the first."""
    return min(known, key=lambda each: (-each.value, each.number))


def _by_weighting(known: Sequence[Candidate], random: Random) -> Candidate:
    """The best under weights drawn uniformly from the simplex: each as often as a set reward counts on it."""
    vectors_nD = _comparable(known)
    weights_D = [random.expovariate(1.0) for _ in range(vectors_nD.shape[1])]
    values_n = vectors_nD @ np.asarray(weights_D)
    return known[random.choice(np.flatnonzero(values_n >= values_n.max() - 1e-9).tolist())]


def _complement(parent: Candidate, known: Sequence[Candidate], random: Random) -> Candidate | None:
    """The candidate that is better by most where it is better than the parent; None where none is."""
    vectors_nD = _comparable([parent, *known])
    gains_n = np.clip(vectors_nD[1:] - vectors_nD[0], 0, None).sum(axis=1)
    if gains_n.max() <= 1e-9:
        return None
    return known[random.choice(np.flatnonzero(gains_n >= gains_n.max() - 1e-9).tolist())]


def _by_lexicase(known: Sequence[Candidate], random: Random) -> Candidate:
    """Keep the best in one objective after another, in random order; choose among the remaining."""
    remaining = list(known)
    scores = remaining[0].scores
    assert scores is not None
    for objective in random.sample(range(len(scores)), len(scores)):
        best = max(each.scores[objective] for each in remaining if each.scores)
        remaining = [each for each in remaining if each.scores and each.scores[objective] >= best - 1e-9]
    return random.choice(remaining)


def _by_novelty(known: Sequence[Candidate], random: Random) -> Candidate:
    """Tournament by mean L1 distance to the nearest neighbours in reward space."""
    if len(known) == 1:
        return known[0]
    vectors_nD = _comparable(known)
    entrants = [random.randrange(len(known)) for _ in range(TOURNAMENT)]
    distances = [
        np.sort(np.abs(vectors_nD - vectors_nD[index]).sum(axis=1))[1 : 1 + NEIGHBOURS].mean() for index in entrants
    ]
    return known[entrants[int(np.argmax(distances))]]


PARENTS = {
    "target": _by_target,
    "best": _best,
    "weighting": _by_weighting,
    "lexicase": _by_lexicase,
    "novelty": _by_novelty,
}
