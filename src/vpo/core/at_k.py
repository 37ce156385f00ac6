"""The best of a pool of answers under a budget: best@k, pass@k, and intervals over problems."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from vpo.core.arrays import as_array, from_numpy, namespace, narrow, shape, to_numpy, widen
from vpo.core.checks import as_booleans, as_integer, check_finite, check_rank
from vpo.core.types import Array, ArrayLike, Floats
from vpo.util.errors import InputError


def best_at_k(scores: ArrayLike, k: int | Sequence[int]) -> Array:
    """Expected best of k answers sampled without replacement, (..., n) → (...).

    Exact, with no shuffling: Σ_i C(i−1, k−1) / C(n, k) · s_(i), the scores s sorted upward.

    Args:
        scores: a number for each answer of the pool.
        k: the sample size, 1 ≤ k ≤ n. Several in one call, (..., n) → (..., len(k)), cost one sort.
    """
    return _best_at_k(scores, k, "scores")


def pass_at_k(solved: ArrayLike, k: int | Sequence[int]) -> Array:
    """Probability that k answers sampled without replacement include one that solves, (..., n) → (...)."""
    solved = as_array(solved, "solved")
    check_rank(solved, "solved", "n", batched=True)
    return _best_at_k(widen(as_booleans(solved, "solved", solved, shape(solved))), k, "solved")


def _best_at_k(values: ArrayLike, k: int | Sequence[int], name: str) -> Array:
    values = as_array(values, name)
    check_rank(values, name, "n", batched=True)
    check_finite(values, name)
    answers = shape(values)[-1]
    if answers == 0:
        raise InputError(f"{name} must hold 1 or more answers, not 0")
    many = isinstance(k, Iterable)
    ks = tuple(as_integer(each, "k") for each in (k if isinstance(k, Iterable) else [k]))
    for each in ks:
        if not 1 <= each <= answers:
            raise InputError(f"k must lie in 1..{answers}, the size of the pool, not {each}")
    in_order = namespace(values).sort(widen(values), axis=-1)
    best = narrow(in_order @ from_numpy(_order_weights(answers, ks), values), values)
    return best if many else best[..., 0]


@lru_cache(maxsize=256)
def _order_weights(n: int, ks: tuple[int, ...]) -> Floats:
    """Probability that the i-th smallest of n is the largest of a sample of k, (n, len(ks))."""
    k_row = np.asarray(ks, dtype=np.float64)[None, :]
    rank = np.arange(n, 1, -1, dtype=np.float64)[:, None]  # n, n−1, …, 2
    # C(i−2, k−1) / C(i−1, k−1) = (i−k) / (i−1), from the largest, whose probability is k/n, downward.
    ratios = np.vstack([k_row / n, np.maximum(rank - k_row, 0) / (rank - 1)])
    weights: Floats = np.cumprod(ratios, axis=0)[::-1].astype(np.float64)
    return weights


def best_at_tokens(scores: ArrayLike, tokens: ArrayLike, budgets: Sequence[float]) -> Array:
    """Expected best of the generations that a token budget affords, (N,), (N,) → (len(budgets),).

    k generations cost k times the mean tokens; between two integers k the value is interpolated, from 0 for
    no tokens. A budget beyond all N generations has the value of all of them.

    Args:
        scores: the best score in each generation of one problem.
        tokens: the tokens of each of those generations.
        budgets: numbers of tokens.
    """
    scores = as_array(scores, "scores")
    check_rank(scores, "scores", "N", batched=False)
    costs_N = to_numpy(as_array(tokens, "tokens"))
    if costs_N.shape != shape(scores) or not (costs_N > 0).all():
        raise InputError(f"tokens must be greater than 0 for each of {shape(scores)[0]} generations, not {costs_N}")
    if min(budgets, default=0) < 0:
        raise InputError(f"budgets must be 0 or more tokens, not {min(budgets)}")
    affordable = np.minimum(np.asarray(budgets, dtype=np.float64) / costs_N.mean(), len(costs_N))
    ks = sorted({int(k) for k in (*np.floor(affordable), *np.ceil(affordable)) if k >= 1})
    values = [0.0, *to_numpy(best_at_k(scores, ks))] if ks else [0.0]
    return narrow(from_numpy(np.interp(affordable, [0, *ks], values), scores), scores)


def first(scores: ArrayLike) -> Array:
    """Mean score of answer 1: a set-trained policy that stops there, (..., N, M) → (...)."""
    scores = _sets(scores)
    return narrow(namespace(scores).mean(widen(scores)[..., 0], axis=-1), scores)


def best_of_set(scores: ArrayLike) -> Array:
    """Mean over generations of the best answer in each, reported as `set`, (..., N, M) → (...)."""
    scores = _sets(scores)
    xp = namespace(scores)
    return narrow(xp.mean(xp.max(widen(scores), axis=-1), axis=-1), scores)


def _sets(scores: ArrayLike) -> Array:
    scores = as_array(scores, "scores")
    check_rank(scores, "scores", "N, M", batched=True)
    if 0 in shape(scores)[-2:]:
        raise InputError(f"scores must hold 1 or more generations of 1 or more answers, not {shape(scores)}")
    check_finite(scores, "scores")
    return scores


@dataclass(frozen=True)
class Interval:
    """A mean over problems and its confidence interval. The three are floats, or arrays of one shape."""

    mean: Any
    low: Any
    high: Any

    @property
    def certain(self) -> bool:
        """Whether the interval, of one number, excludes 0; a mean without an interval does not."""
        return self.low is not None and bool(self.low > 0 or self.high < 0)


def bootstrap(values: ArrayLike, *, resamples: int = 5000, confidence: float = 0.95, seed: int = 0) -> Interval:
    """The mean over problems and its percentile bootstrap interval, (P,) → numbers, (P, q) → (q,).

    For two methods on the same problems, pass the differences ``a - b``: that is the paired interval.
    """
    values = as_array(values, "values")
    if values.ndim not in (1, 2):
        raise InputError(f"values must be of rank 1 or 2, (P) or (P, q), not of shape {shape(values)}")
    check_finite(values, "values")
    problems = shape(values)[0]
    if problems < 2:
        raise InputError(f"values must hold 2 or more problems for an interval, not {problems}")
    if 0 in shape(values):
        raise InputError(f"values must hold 1 or more columns, not shape {shape(values)}")
    as_integer(resamples, "resamples", 1)
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, not {confidence}")
    from scipy.stats import bootstrap as resample  # slow to import

    wide = to_numpy(values).astype(np.float64)
    batch = max(1, 2**22 // wide.size)  # resamples held in memory at a time
    result = resample(
        (wide,),
        np.mean,
        axis=0,
        n_resamples=resamples,
        batch=batch,
        confidence_level=confidence,
        method="percentile",
        rng=seed,
    ).confidence_interval
    parts = (wide.mean(axis=0), result.low, result.high)
    if values.ndim == 1:
        return Interval(*(float(part) for part in parts))
    return Interval(*(from_numpy(part, values) for part in parts))
