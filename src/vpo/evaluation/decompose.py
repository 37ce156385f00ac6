"""Which objectives should I use? Answered from a pool: sets made from its objectives, and the headroom of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np

from vpo.core.intervals import Interval
from vpo.core.types import Floats
from vpo.evaluation.agreement import SAME, columns_of, constant_objectives, has_correlations
from vpo.evaluation.headroom import TradeOffs, headroom_of, trade_offs, values_of
from vpo.evaluation.objective_sets import ObjectiveSet, all_of, by_hand
from vpo.evaluation.objective_sums import Sum, without_sums
from vpo.evaluation.pools import Pool
from vpo.util.errors import InputError

# Pairs that are tried, those that agree best: each costs as much as a diagnosis.
MOST_PAIRS = 10

# Kinds of proposals.
ALL, VARYING, MERGED, SPLIT, HAND, SCALAR = "all", "varying", "merged", "split", "by hand", "one sum"
PAIR = "pair"


@dataclass(frozen=True)
class Proposal:
    """A set of objectives, and what it would give.

    Attributes:
        kind: "all", "varying" (without those that never vary), "merged" (those that say the same are one), "split"
            (sums of others left out), "pair" (two merged), "by hand" or "one sum".
        objectives: their names; a merged one is "a+b".
        merged: the members of each merged one.
        target: w* over them, or None for all alike.
        effective_rank: in how many independent ways the scores of a problem's answers vary.
        headroom: what an ideal set gains over the best single answer.
        relative_headroom: the same as a share of what choosing well gains over an average answer.
        verdict: whether there are trade-offs, as in a diagnosis.
    """

    kind: str
    objectives: tuple[str, ...]
    merged: tuple[tuple[str, ...], ...]
    target: Mapping[str, float] | None
    effective_rank: float
    headroom: Interval
    relative_headroom: Interval
    verdict: TradeOffs


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
        """The first proposal of a kind."""
        return next(each for each in self.proposals if each.kind == kind)


def decompose(
    pool: Pool,
    *,
    target: Mapping[str, float] | None = None,
    same: float = SAME,
    merge: Sequence[Sequence[str]] = (),
    drop: Sequence[str] = (),
) -> Decomposition:
    """Propose sets of objectives, with the headroom that each would give.

    Args:
        pool: what `vpo.read_pool` returned.
        target: w*, objective → weight, of sum 1. A merged objective has the weight of its members, and is their mean
            weighted by it; the weight of a sum that is left out goes to its parts. Without it all weigh alike, in
            every set.
        same: the correlation over the answers of a problem from which objectives say the same.
        merge: groups of objectives to try merged.
        drop: objectives to try without.
    """
    if not 0 < same <= 1:
        raise InputError(f"same must be a correlation greater than 0, at most 1, not {same}")
    if pool.objectives is None:
        if merge or drop:
            raise InputError(f"{pool.path}: objectives differ between problems, so none can be merged or left out")
        return Decomposition(False, same)
    everything = all_of(pool.objectives, target)
    hand_made = by_hand(everything, merge=merge, drop=drop) if merge or drop else None
    constant = constant_objectives(everything.of(pool))
    if len(constant) == len(everything.names):
        return Decomposition(False, same, constant)
    varying = reduce(ObjectiveSet.drop, constant, everything)
    groups = _groups(pool, varying, same)
    merged = reduce(ObjectiveSet.merge, groups, varying)
    split, sums = without_sums(pool, merged)
    steps = [(ALL, everything), (VARYING, varying), (MERGED, merged), (SPLIT, split)]
    candidates = [*steps, *([(HAND, hand_made)] if hand_made else [])]
    candidates += [(PAIR, varying.merge(pair)) for pair in _pairs(pool, varying)]
    candidates += [(SCALAR, varying.merge(varying.names))] if len(varying.names) > 1 else []
    proposals = [_proposal(pool, kind, objectives) for kind, objectives in _without_repeats(candidates)]
    proposals.sort(key=lambda each: (-round(each.relative_headroom.mean, 6), len(each.objectives), each.objectives))
    recommended, _ = _without_repeats(steps)[-1]
    return Decomposition(True, same, constant, groups, sums, tuple(proposals), recommended)


def _without_repeats(candidates: Sequence[tuple[str, ObjectiveSet]]) -> list[tuple[str, ObjectiveSet]]:
    """Each set once, as the kind under which it comes first; a set by hand stays in any case."""
    kept, seen = [], set()
    for kind, objectives in candidates:
        if kind == HAND or objectives.names not in seen:
            kept.append((kind, objectives))
        seen.add(objectives.names)
    return kept


def _proposal(pool: Pool, kind: str, objectives: ObjectiveSet) -> Proposal:
    changed = objectives.of(pool)
    headroom = headroom_of([values_of(problem, objectives.target) for problem in changed.problems.values()])
    rank = columns_of(changed).effective_rank
    return Proposal(
        kind=kind,
        objectives=objectives.names,
        merged=tuple(tuple(sorted(mix)) for mix in objectives.mixes.values() if len(mix) > 1),
        target=objectives.target,
        effective_rank=rank,
        headroom=headroom.absolute,
        relative_headroom=headroom.relative,
        verdict=trade_offs(rank, headroom.relative.mean),
    )


def _groups(pool: Pool, objectives: ObjectiveSet, threshold: float) -> tuple[tuple[str, ...], ...]:
    """The groups in which each objective agrees with each other one: clusters of complete linkage."""
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
    """The pairs to try merged, those that agree best first; of two objectives the sum is tried anyway."""
    correlation_DD = _correlation(pool, objectives)
    if correlation_DD is None or len(correlation_DD) < 3:
        return []
    pairs = combinations(range(len(correlation_DD)), 2)
    best = sorted(pairs, key=lambda pair: (-round(float(correlation_DD[pair]), 9), pair))[:MOST_PAIRS]
    return [(objectives.names[one], objectives.names[other]) for one, other in best]


def _correlation(pool: Pool, objectives: ObjectiveSet) -> Floats | None:
    """Between objectives over the answers of a problem, (D, D), or None where there are too few answers."""
    return columns_of(objectives.of(pool)).correlation if has_correlations(pool) else None
