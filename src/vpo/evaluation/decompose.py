"""Which objectives should I use? Answered from a pool: sets made from its objectives, and what each would give."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from vpo.core.at_k import Interval
from vpo.core.geometry import columns
from vpo.core.types import Floats
from vpo.evaluation.diagnose import ENOUGH_ANSWERS, SAME, STILL, Verdict, earnings, headroom_of, verdict
from vpo.evaluation.objective_sets import ObjectiveSet, all_of, by_hand
from vpo.evaluation.pools import Pool
from vpo.util.errors import InputError

# An objective is the sum of others where they explain this share of its variance over the answers of a problem,
EXPLAINED = 0.98
# and each of them moves it by this share of its own spread. Less is a fit to noise.
MOVES = 0.1
# Differences between answers that there must be for each objective, else a perfect fit says nothing.
FREEDOM = 5
# Pairs that are tried, those that agree best: each costs as much as a diagnosis.
MOST_PAIRS = 10

ALL, VARYING, MERGED, SPLIT, HAND, SCALAR = "all", "varying", "merged", "split", "by hand", "one sum"
PAIR = "pair"


@dataclass(frozen=True)
class Proposal:
    """A set of objectives and what it would give.

    Attributes:
        kind: "all", "varying" (without those that never vary), "merged" (those that say the same are one), "split"
            (sums of others left out), "pair" (two merged), "by hand" or "one sum".
        objectives: their names; a merged one is "a+b".
        merged: what each merged one is made of.
        target: w* over them, or None for all alike.
        effective_rank: in how many independent ways the scores of a problem's answers vary.
        headroom: what an ideal set earns above the best single answer.
        relative_headroom: the same as a share of what choosing well gains over an average answer.
        verdict: as in a diagnosis.
    """

    kind: str
    objectives: tuple[str, ...]
    merged: tuple[tuple[str, ...], ...]
    target: Mapping[str, float] | None
    effective_rank: float
    headroom: Interval
    relative_headroom: Interval
    verdict: Verdict


@dataclass(frozen=True)
class Sum:
    """An objective that is a sum of others: what one unit of it is made of, and how much of it that explains."""

    objective: str
    parts: Mapping[str, float]
    explained: float


@dataclass(frozen=True)
class Decomposition:
    """What a pool says about which objectives to use.

    Attributes:
        applies: whether it can be said: every problem has the same objectives, and some answers differ.
        threshold: the correlation from which objectives say the same.
        constant: objectives that never vary over the answers of a problem.
        groups: objectives that say the same: each agrees with each other one of its group.
        sums: objectives that are sums of others.
        proposals: sets of objectives, the largest relative headroom first, then the fewest objectives.
        recommended: the kind of the one to use, or None.
    """

    applies: bool
    threshold: float
    constant: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    sums: tuple[Sum, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    recommended: str | None = None

    def proposal(self, kind: str) -> Proposal:
        """Return the first proposal of a kind."""
        return next(each for each in self.proposals if each.kind == kind)


def decompose(
    pool: Pool,
    *,
    target: Mapping[str, float] | None = None,
    threshold: float = SAME,
    merge: Sequence[Sequence[str]] = (),
    drop: Sequence[str] = (),
) -> Decomposition:
    """Propose sets of objectives, with the headroom that each would give.

    Args:
        pool: what `vpo.read_pool` returned.
        target: w*, objective → weight, of sum 1. A merged objective has the weight of its members, and is their mean
            weighted by it; a sum that is split hands its weight on to its parts. Without it all weigh alike, in
            every set.
        threshold: the correlation over the answers of a problem from which objectives say the same.
        merge: groups of objectives to try merged.
        drop: objectives to try without.
    """
    if not 0 < threshold <= 1:
        raise InputError(f"same must be a correlation greater than 0, at most 1, not {threshold}")
    if pool.objectives is None:
        if merge or drop:
            raise InputError(f"{pool.path}: objectives differ between problems, so none can be merged or left out")
        return Decomposition(False, threshold)
    whole = all_of(pool.objectives, target)
    tried = by_hand(whole, merge=merge, drop=drop) if merge or drop else None
    constant = tuple(name for name, spread in zip(whole.names, _spread(pool, whole), strict=True) if spread < STILL)
    if len(constant) == len(whole.names):
        return Decomposition(False, threshold, constant)
    varying = whole
    for name in constant:
        varying = varying.drop(name)
    groups = _groups(pool, varying, threshold)
    merged = varying
    for group in groups:
        merged = merged.merge(group)
    split, sums = _without_sums(pool, merged)
    sets = [(ALL, whole), (VARYING, varying), (MERGED, merged), (SPLIT, split)]
    last = next(kind for kind, each in reversed(sets) if _first_of(sets, each) == kind)
    sets += [(HAND, tried)] if tried else []
    sets += [(PAIR, varying.merge(pair)) for pair in _pairs(pool, varying)]
    sets += [(SCALAR, varying.merge(varying.names))] if len(varying.names) > 1 else []
    found = [_proposal(pool, kind, each) for kind, each in sets if kind == HAND or _first_of(sets, each) == kind]
    found.sort(key=lambda each: (-round(each.relative_headroom.mean, 6), len(each.objectives), each.objectives))
    return Decomposition(True, threshold, constant, groups, sums, tuple(found), last)


def _first_of(sets: Sequence[tuple[str, ObjectiveSet]], wanted: ObjectiveSet) -> str:
    """Return the first kind under which a set stands, so that none is proposed twice."""
    return next(kind for kind, each in sets if each.names == wanted.names)


def _proposal(pool: Pool, kind: str, objectives: ObjectiveSet) -> Proposal:
    changed = objectives.of(pool)
    found = headroom_of([earnings(problem, objectives.target) for problem in changed.problems.values()])
    rank = columns(_centred(changed)).effective_rank
    return Proposal(
        kind=kind,
        objectives=objectives.names,
        merged=tuple(tuple(sorted(mix)) for mix in objectives.mixes.values() if len(mix) > 1),
        target=objectives.target,
        effective_rank=rank,
        headroom=found.headroom,
        relative_headroom=found.relative,
        verdict=verdict(rank, found.relative.mean),
    )


def _centred(pool: Pool) -> Floats:
    """Return all scores less the mean of their problem, (rows, D)."""
    return np.vstack([each.scores_nD - each.scores_nD.mean(axis=0) for each in pool.problems.values()])


def _spread(pool: Pool, objectives: ObjectiveSet) -> Floats:
    return columns(_centred(objectives.of(pool))).spread


def _correlation(pool: Pool, objectives: ObjectiveSet) -> Floats | None:
    """Return how the objectives agree over the answers of a problem, or None where too few answers tell."""
    if max(len(each.scores_nD) for each in pool.problems.values()) < ENOUGH_ANSWERS:
        return None
    return columns(_centred(objectives.of(pool))).correlation


def _groups(pool: Pool, objectives: ObjectiveSet, threshold: float) -> tuple[tuple[str, ...], ...]:
    """Return the groups in which each objective agrees with each other one: clusters of complete linkage."""
    correlation_DD = _correlation(pool, objectives)
    if correlation_DD is None or len(correlation_DD) < 2:
        return ()
    from scipy.cluster.hierarchy import fcluster, linkage  # slow to import
    from scipy.spatial.distance import squareform

    # Rounded, so that objectives which agree exactly are at the same distance, whatever the last digit says.
    distance_DD = np.round(1 - np.clip(correlation_DD, -1, 1), 9)
    np.fill_diagonal(distance_DD, 0.0)
    tree = linkage(squareform(distance_DD, checks=False), "complete")
    labels = fcluster(tree, 1 - threshold + 1e-9, "distance")
    groups = [tuple(np.asarray(objectives.names)[labels == label].tolist()) for label in np.unique(labels)]
    return tuple(sorted(group for group in groups if len(group) > 1))


def _pairs(pool: Pool, objectives: ObjectiveSet) -> list[tuple[str, str]]:
    """Return the pairs to try merged, those that agree best first; of two objectives the sum is tried anyway."""
    correlation_DD = _correlation(pool, objectives)
    if correlation_DD is None or len(correlation_DD) < 3:
        return []
    pairs = combinations(range(len(correlation_DD)), 2)
    best = sorted(pairs, key=lambda pair: (-round(float(correlation_DD[pair]), 9), pair))[:MOST_PAIRS]
    return [(objectives.names[one], objectives.names[other]) for one, other in best]


def _without_sums(pool: Pool, objectives: ObjectiveSet) -> tuple[ObjectiveSet, tuple[Sum, ...]]:
    """Leave out one sum of others after the other, the best explained first."""
    sums: list[Sum] = []
    while found := max(_sums(pool, objectives), key=lambda each: round(each.explained, 6), default=None):
        sums.append(found)
        objectives = objectives.drop(found.objective, onto=found.parts)
    return objectives, tuple(sums)


def _sums(pool: Pool, objectives: ObjectiveSet) -> Iterator[Sum]:
    """Yield the objectives that two or more others add up to, by regression with weights of 0 or more.

    A difference is no sum: of a, b and a + b, only a + b is one.
    """
    rows_nD = _centred(objectives.of(pool))
    names = objectives.names
    if len(names) < 3 or len(rows_nD) - len(pool.problems) < FREEDOM * len(names):
        return
    spread_D = columns(rows_nD).spread
    scaled_nD = rows_nD / spread_D
    for place, name in enumerate(names):
        others = [each for each in range(len(names)) if each != place]
        weights, _ = _regress(scaled_nD[:, others], scaled_nD[:, place])
        parts = [each for each, weight in zip(others, weights, strict=True) if weight >= MOVES]
        if len(parts) < 2:
            continue
        weights, explained = _regress(scaled_nD[:, parts], scaled_nD[:, place])
        if explained >= EXPLAINED:
            units = weights * spread_D[place] / spread_D[parts]
            named = zip((names[part] for part in parts), units.tolist(), strict=True)
            yield Sum(name, dict(named), explained)


def _regress(inputs_nD: Floats, output_n: Floats) -> tuple[Floats, float]:
    """Return the weights of 0 or more that fit best, and the share of the output's square that they explain."""
    from scipy.optimize import nnls  # slow to import

    weights_D, residual = nnls(inputs_nD, output_n)
    return weights_D, float(1 - residual**2 / (output_n @ output_n))
