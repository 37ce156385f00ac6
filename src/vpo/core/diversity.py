"""How different the answers of a pool are, in the space of their scores."""

from dataclasses import dataclass

import numpy as np

from vpo.core.arrays import from_numpy, namespace, shape, to_numpy, widen
from vpo.core.checks import as_pools
from vpo.core.set_reward import set_reward
from vpo.core.types import Array, ArrayLike

# Slightly below the worst score, so that an answer that is best at one objective and worst at the others counts.
HYPERVOLUME_REFERENCE = -0.1
# The exact hypervolume takes time exponential in the number of objectives.
HYPERVOLUME_OBJECTIVES = 6


@dataclass(frozen=True)
class Diversity:
    """Measures of one pool, or of many: each is an array of the leading shape.

    Attributes:
        l1: mean L1 distance between the score vectors of two answers.
        distinct: number of different score vectors.
        nondominated: number of different score vectors that no other beats.
        hypervolume: volume dominated above −0.1; None for more than six objectives.
        coverage: mean over the objectives of the best score in the pool.
        expected_max: E_w[max_i w·r_i], the set reward of the whole pool.
    """

    l1: Array
    distinct: Array
    nondominated: Array
    hypervolume: Array | None
    coverage: Array
    expected_max: Array


def diversity(scores: ArrayLike) -> Diversity:
    """How different the answers of a pool are, from their score vectors, (..., n, D).

    Args:
        scores: of the n answers of a problem on D objectives; leading axes are problems.
    """
    scores = as_pools(scores)
    batch, (answers, objectives) = shape(scores)[:-2], shape(scores)[-2:]
    pools = to_numpy(widen(scores)).reshape(-1, answers, objectives)

    def gather(values: list[float], dtype: type) -> Array:
        return from_numpy(np.asarray(values, dtype=dtype).reshape(batch), scores)

    small = objectives <= HYPERVOLUME_OBJECTIVES
    return Diversity(
        l1=pairwise_l1(scores),
        distinct=gather([len(np.unique(pool, axis=0)) for pool in pools], np.int64),
        nondominated=gather([int(is_nondominated(pool).sum()) for pool in pools], np.int64),
        hypervolume=gather([_hypervolume(pool) for pool in pools], np.float64) if small else None,
        coverage=coverage(scores),
        expected_max=set_reward(widen(scores)),
    )


def pairwise_l1(scores: ArrayLike) -> Array:
    """Mean L1 distance over all pairs of answers, (..., n, D) → (...). One answer: 0."""
    scores = as_pools(scores)
    xp = namespace(scores)
    n = shape(scores)[-2]
    # In sorted order the i-th value is added in i distances and subtracted in n−1−i.
    signs = from_numpy(2.0 * np.arange(n) - (n - 1), scores)
    totals = xp.sum(xp.sort(widen(scores), axis=-2) * signs[:, None], axis=(-1, -2))
    return totals / max(n * (n - 1) / 2, 1)


def coverage(scores: ArrayLike) -> Array:
    """Mean over the objectives of the best score in the pool, (..., n, D) → (...)."""
    scores = as_pools(scores)
    xp = namespace(scores)
    return xp.mean(xp.max(widen(scores), axis=-2), axis=-1)


def is_nondominated(pool_nD: Array) -> Array:
    """Mask of the score vectors, (n, D), that no other dominates; of equal ones the first."""
    import moocore  # slow to import

    return moocore.is_nondominated(pool_nD, maximise=True, keep_weakly=False)


def _hypervolume(pool_nD: Array) -> float:
    import moocore  # slow to import

    return float(moocore.hypervolume(pool_nD, ref=np.full(pool_nD.shape[1], HYPERVOLUME_REFERENCE), maximise=True))
