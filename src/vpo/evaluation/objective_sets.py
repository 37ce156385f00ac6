"""Sets of objectives made from those of a pool: some merged, some left out, w* kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vpo.evaluation.pools import Pool, ProblemPool
from vpo.util.errors import InputError, nearest


@dataclass(frozen=True)
class ObjectiveSet:
    """Objectives, each a mix of those of a pool.

    Attributes:
        mixes: name → weights of the pool's objectives in it, of sum 1.
        target: w* over these objectives, or None for all alike.
    """

    mixes: Mapping[str, Mapping[str, float]]
    target: Mapping[str, float] | None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the objectives."""
        return tuple(self.mixes)

    def merge(self, members: Sequence[str]) -> "ObjectiveSet":
        """Replace some objectives by their mean, which has their weight in w*.

        With a target the mean is weighted by it, so that w*·r stays the same.
        """
        self._check(members)
        members = sorted(members)
        total = sum(self._weight(member) for member in members)
        shares = {each: self._weight(each) / total if total else 1 / len(members) for each in members}
        mix: dict[str, float] = {}
        for member, share in shares.items():
            for name, part in self.mixes[member].items():
                mix[name] = mix.get(name, 0.0) + share * part
        name = "+".join(members)
        mixes = {**{each: mix for each, mix in self.mixes.items() if each not in members}, name: mix}
        target = None
        if self.target is not None:
            target = {each: self._weight(each) for each in mixes if each != name} | {name: total}
        return ObjectiveSet(dict(sorted(mixes.items())), target)

    def drop(self, name: str, onto: Mapping[str, float] | None = None) -> "ObjectiveSet":
        """Leave out an objective.

        Args:
            name: the objective.
            onto: objectives that its weight in w* goes to, each with its part of one unit.
        """
        self._check([name])
        if len(self.mixes) == 1:
            raise InputError(f"a set must keep 1 or more objectives, and {name!r} is its last one")
        mixes = {each: mix for each, mix in self.mixes.items() if each != name}
        if self.target is None:
            return replace(self, mixes=mixes)
        moved = {each: self._weight(each) + self._weight(name) * (onto or {}).get(each, 0.0) for each in mixes}
        total = sum(moved.values())
        # Where the rest has no weight in w*, there is no weighting of it to keep.
        return ObjectiveSet(mixes, {each: weight / total for each, weight in moved.items()} if total else None)

    def of(self, pool: Pool) -> Pool:
        """The pool with these objectives in place of its own."""
        return Pool(pool.path, {name: self._of_problem(problem) for name, problem in pool.problems.items()})

    def _of_problem(self, problem: ProblemPool) -> ProblemPool:
        mixes_DE = np.asarray([[mix.get(name, 0.0) for mix in self.mixes.values()] for name in problem.objectives])
        return replace(problem, objectives=self.names, scores_nD=problem.scores_nD @ mixes_DE, target=None)

    def _weight(self, name: str) -> float:
        return 1.0 if self.target is None else self.target.get(name, 0.0)

    def _check(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.mixes:
                raise InputError(f"the pool has no objective {name!r}: {nearest(name, self.mixes)}")
        if len(set(names)) < len(names):
            raise InputError(f"each objective can be merged once, and {','.join(names)} names one twice")


def all_of(objectives: Sequence[str], target: Mapping[str, float] | None) -> ObjectiveSet:
    """The objectives of a pool as they are, sorted by name, so that nothing depends on their order."""
    return ObjectiveSet({name: {name: 1.0} for name in sorted(objectives)}, target)


def by_hand(everything: ObjectiveSet, *, merge: Sequence[Sequence[str]], drop: Sequence[str]) -> ObjectiveSet:
    """Leave out and merge the objectives that a user names."""
    objectives = everything
    for name in drop:
        objectives = objectives.drop(name)
    for members in merge:
        if len(members) < 2:
            raise InputError(f"merge must name 2 or more objectives, such as a,b, not {','.join(members)!r}")
        objectives = objectives.merge(members)
    return objectives
