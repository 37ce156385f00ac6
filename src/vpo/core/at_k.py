"""The best of a pool of answers under a budget: best@k and pass@k."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from vpo.core.arrays import as_array, from_numpy, namespace, narrow, shape, to_numpy, widen
from vpo.core.checks import as_booleans, as_integer, check_finite, check_rank
from vpo.core.types import Array, ArrayLike, Floats
from vpo.util.errors import InputError

BLOCK = 2**18  # weights that are computed at a time, so that all k of a large pool take little memory
KEPT = 2**14  # the most weights of a table that is kept


def best_at_k(scores: ArrayLike, k: int | Sequence[int]) -> Array:
    """Expected best of k answers sampled without replacement, (..., n) → (...).

    Exact, with no shuffling: Σ_i C(i−1, k−1) / C(n, k) · s_(i), the scores s sorted upward.

    Args:
        scores: a number for each answer of the pool.
        k: the sample size, 1 ≤ k ≤ n. Several in one call, (..., n) → (..., len(k)), cost one sort.
    """
    return _best_at_k(scores, k, "scores")


def pass_at_k(solved: ArrayLike, k: int | Sequence[int]) -> Array:
    """Probability that k answers sampled without replacement include one that solves, (..., n) → (...).

    Args:
        solved: true for each answer of the pool that solves its problem.
        k: the sample size, 1 ≤ k ≤ n, or several.
    """
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
    xp = namespace(values)
    in_order = xp.sort(widen(values), axis=-1)
    width = max(1, BLOCK // answers)
    blocks = [ks[start : start + width] for start in range(0, len(ks), width)] or [()]
    parts = [in_order @ from_numpy(_order_weights(answers, block), values) for block in blocks]
    best = narrow(parts[0] if len(parts) == 1 else xp.concat(parts, axis=-1), values)
    return best if many else best[..., 0]


def _order_weights(n: int, ks: tuple[int, ...]) -> Floats:
    """As `_compute_order_weights`; small ones, which are used again and again, are kept."""
    return _kept_order_weights(n, ks) if n * len(ks) <= KEPT else _compute_order_weights(n, ks)


@lru_cache(maxsize=256)
def _kept_order_weights(n: int, ks: tuple[int, ...]) -> Floats:
    return _compute_order_weights(n, ks)


def _compute_order_weights(n: int, ks: tuple[int, ...]) -> Floats:
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
    """Mean score of answer 1: a set-trained policy that stops there, (..., N, M) → (...).

    Args:
        scores: a number for each of M answers of N generations.
    """
    scores = _sets(scores)
    return narrow(namespace(scores).mean(widen(scores)[..., 0], axis=-1), scores)


def best_of_set(scores: ArrayLike) -> Array:
    """Mean over generations of the best answer in each, reported as `set`, (..., N, M) → (...).

    Args:
        scores: a number for each of M answers of N generations.
    """
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
