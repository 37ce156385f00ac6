"""What there is in a pool to learn from: how often answers to a problem differ, by how much, and what that is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vpo.core.at_k import best_at_k
from vpo.core.credit import pool_value
from vpo.core.intervals import Interval
from vpo.core.simplex import expected_weights
from vpo.core.targets import weights_for
from vpo.core.types import Floats
from vpo.evaluation.intervals import intervals
from vpo.evaluation.pools import Pool, ProblemPool
from vpo.util.progress import progress


@dataclass(frozen=True)
class Signal:
    """What a pool has to learn from, over its problems.

    Attributes:
        group: G, rollouts of a group.
        differ: share of the problems whose answers differ in some objective: the vector methods learn from these.
        scalar: share of those whose answers differ under the target: the scalar methods learn from these.
        groups: share of groups of G answers that differ under the target.
        spread: standard deviation of w*·r over the answers of a problem, averaged over problems.
        headroom: k → what k answers gain when each weighting may choose its own best of them, over the best under the
            mean weighting: E_w[best@k under w] − best@k under E[w]. Near 0, a vector reward trains as a scalar one.
    """

    group: int
    differ: float
    scalar: float
    groups: float
    spread: float
    headroom: Mapping[int, Interval]


def signal_of(pool: Pool, *, target: Mapping[str, float] | None, group: int, ks: Sequence[int]) -> Signal:
    """Describe what a pool has to learn from.

    Args:
        pool: what `vpo.read_pool` returned.
        target: w*, objective → weight, of sum 1; without it all objectives weigh alike.
        group: G, rollouts of a group.
        ks: of the headroom, each at most the answers of the smallest problem.
    """
    problems = list(pool.problems.values())
    values = [_values(problem, target) for problem in problems]
    headroom_Pk = np.stack([_headroom(problem, ks) for problem in progress(problems, f"diagnosing {pool.path}")])
    return Signal(
        group=group,
        differ=float(np.mean([bool(np.ptp(problem.scores_nD, axis=0).any()) for problem in problems])),
        scalar=float(np.mean([np.ptp(values_n) > 0 for values_n in values])),
        groups=float(np.mean([_differing_groups(values_n, group) for values_n in values])),
        spread=float(np.mean([values_n.std() for values_n in values])),
        headroom=intervals({k: headroom_Pk[:, index] for index, k in enumerate(ks)}, dict.fromkeys(ks, (0.0, 1.0))),
    )


def _values(problem: ProblemPool, target: Mapping[str, float] | None) -> Floats:
    """w*·r, rounded: equal score vectors in another order of summing are equal."""
    weights_D = weights_for(target, problem.objectives, f"problem {problem.problem!r}")
    values_n: Floats = np.round(problem.scores_nD @ weights_D, 12)
    return values_n


def _differing_groups(values_n: Floats, group: int) -> float:
    """Probability that G answers, drawn independently, do not all have one value."""
    _, counts = np.unique(values_n, return_counts=True)
    return float(1 - ((counts / len(values_n)) ** group).sum())


def _headroom(problem: ProblemPool, ks: Sequence[int]) -> Floats:
    scores_nD = problem.scores_of(sorted(problem.objectives))
    each_k = np.asarray(pool_value(scores_nD[:, None, :], sets=tuple(ks)))
    mean_k = np.asarray(best_at_k(scores_nD @ expected_weights(scores_nD.shape[1]), tuple(ks)))
    gained_k: Floats = np.maximum(each_k - mean_k, 0.0)  # less is rounding
    return gained_k
