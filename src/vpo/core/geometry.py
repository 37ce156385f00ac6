"""Whether a vector reward has trade-offs at all: without them, VPO is scalar RL with m answers."""

from dataclasses import dataclass

import numpy as np

from vpo.core.arrays import from_numpy, namespace, shape, to_numpy, widen
from vpo.core.checks import as_pools
from vpo.core.set_reward import set_reward
from vpo.core.simplex import Concentration, directions, expected_weights
from vpo.core.types import Array, ArrayLike, Floats

# Answers this close under a weighting share it.
_TIE = 1e-9


@dataclass(frozen=True)
class Geometry:
    """The shape of a reward, from pools of scores.

    Attributes:
        effective_rank: how many directions the scores of a problem's answers vary in, 0 to D: the
            exponential of the entropy of the singular values, columns centred in each problem.
        correlation: (D, D), between objectives, over the answers of a problem. 0 where one does not vary.
        spread: (D,), standard deviation of each objective over the answers of a problem.
        shares: (..., n), the part of the simplex of weightings in which each answer is the best one.
        expected_max: (...), E_w[max_i w·r_i], the set reward of the whole pool.
        best_single: (...), max_i E[w]·r_i, the expected score of the best single answer.
    """

    effective_rank: float
    correlation: Array
    spread: Array
    shares: Array
    expected_max: Array
    best_single: Array

    @property
    def headroom(self) -> Array:
        """The set reward of the pool less the score of the best single answer. Near 0, VPO will not help."""
        return self.expected_max - self.best_single


def geometry(scores: ArrayLike, *, concentration: Concentration = 1.0) -> Geometry:
    """Whether a reward has trade-offs, from pools of score vectors, (..., n, D).

    Args:
        scores: of the n answers of a problem on D objectives; leading axes are problems.
        concentration: α of the Dirichlet distribution of weightings, a number or one per objective. 1 is uniform.
    """
    scores = as_pools(scores)
    xp = namespace(scores)
    wide = widen(scores)
    objectives = shape(scores)[-1]
    statistics = columns(to_numpy(wide - xp.mean(wide, axis=-2, keepdims=True)).reshape(-1, objectives))
    return Geometry(
        effective_rank=statistics.effective_rank,
        correlation=from_numpy(statistics.correlation, scores),
        spread=from_numpy(statistics.spread, scores),
        shares=simplex_shares(scores, concentration=concentration),
        expected_max=set_reward(wide, concentration=concentration),
        best_single=best_single(wide, concentration=concentration),
    )


@dataclass(frozen=True)
class Columns:
    """How the objectives vary together: the first three attributes of `Geometry`."""

    effective_rank: float
    correlation: Floats
    spread: Floats


def columns(centred: Floats) -> Columns:
    """Describe the columns of a matrix (rows, D) of scores less the mean of their problem."""
    spread_D = np.sqrt(np.mean(centred**2, axis=0))
    scale_DD = np.outer(spread_D, spread_D)
    varies_DD = scale_DD > 1e-12
    covariance_DD = centred.T @ centred / len(centred)
    correlation_DD = np.divide(covariance_DD, scale_DD, out=np.zeros_like(scale_DD), where=varies_DD)
    return Columns(_effective_rank(covariance_DD), correlation_DD, spread_D)


def _effective_rank(covariance_DD: Floats) -> float:
    singular_values = np.sqrt(np.maximum(np.linalg.eigvalsh(covariance_DD), 0.0))
    if singular_values.max() <= 1e-9:
        return 0.0
    shares = singular_values / singular_values.sum()
    shares = shares[shares > 1e-6]  # less is rounding: a square root of 1e-16
    return float(np.exp(-np.sum(shares * np.log(shares))))


def best_single(scores: ArrayLike, *, target: ArrayLike | None = None, concentration: Concentration = 1.0) -> Array:
    """Expected score E[w]·r of the one answer that is best under a weighting, (..., n, D) → (...).

    Args:
        scores: of the answers.
        target: the weighting, (D,); E[w] by default. Answers that are equally good under it count with their mean.
        concentration: of the distribution of w.
    """
    scores = as_pools(scores)
    xp, wide = namespace(scores), widen(scores)
    values = wide @ from_numpy(expected_weights(shape(scores)[-1], concentration), scores)
    if target is None:
        return xp.max(values, axis=-1)
    under_target = wide @ from_numpy(np.asarray(target, dtype=np.float64), scores)
    best = widen(under_target >= xp.max(under_target, axis=-1, keepdims=True) - 1e-12)
    return xp.sum(values * best, axis=-1) / xp.sum(best, axis=-1)


def simplex_shares(scores: ArrayLike, *, concentration: Concentration = 1.0) -> Array:
    """Share of weightings under which each answer is best, ties shared, (..., n, D) → (..., n)."""
    scores = as_pools(scores)
    batch, (answers, objectives) = shape(scores)[:-2], shape(scores)[-2:]
    points_DK = directions(objectives, concentration).T
    shares = []
    for pool_nD in to_numpy(widen(scores)).reshape(-1, answers, objectives):
        values_nK = pool_nD @ points_DK
        wins_nK = values_nK >= values_nK.max(axis=0) - _TIE
        shares.append((wins_nK / wins_nK.sum(axis=0)).mean(axis=1))
    return from_numpy(np.asarray(shares).reshape(*batch, answers), scores)
