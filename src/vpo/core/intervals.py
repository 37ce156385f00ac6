"""Means over problems with confidence intervals that stay honest for few problems and rare successes.

A bootstrap knows only what it saw: 30 zeros give [0, 0], although 30 problems miss a success rate of 2% more often than
not. So each end of the interval is a Bayesian bootstrap (the mean under weights from a flat Dirichlet distribution) of
the values and one more observation: at the greatest possible value for the upper end, at the least for the lower end
(Gaffke 2005; Learned-Miller and Thomas 2019, arXiv:1905.06208). For values of 0 and 1 this is the Clopper-Pearson
interval. Where all of 30 values are x, the upper end is x + 0.116 · (greatest − x).

An observation at the bound is too pessimistic where many different values were seen, such as small differences between
two models. With j values above the median, one more of these exceeds all that were seen with probability 1 / (j + 1).
So the observation for the upper end is the largest value plus (greatest − largest) / (j + 1); likewise the lower one.
With many problems and different values this is the bootstrap. `benchmarks/intervals.py` measures coverage and width.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vpo.core.arrays import as_array, from_numpy, shape, to_numpy
from vpo.core.checks import as_integer, check_finite
from vpo.core.types import ArrayLike, Floats
from vpo.util.errors import InputError

BLOCK = 2**22  # weights in memory at a time


@dataclass(frozen=True)
class Interval:
    """A mean over problems and its confidence interval. The three are floats, or arrays of one shape.

    Attributes:
        mean: over the problems.
        low: the lower end.
        high: the upper end.
    """

    mean: Any
    low: Any
    high: Any

    @property
    def certain(self) -> bool:
        """Whether the interval, of one number, excludes 0; a mean without an interval does not."""
        return self.low is not None and bool(self.low > 0 or self.high < 0)


def bootstrap(
    values: ArrayLike,
    *,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """The mean over problems and its interval, (P,) → numbers, (P, q) → (q,).

    For two methods on the same problems, pass the differences ``a - b``: that is the paired interval.

    Args:
        values: one number per problem, or a row of numbers.
        bounds: the least and the greatest possible value, numbers or (q,): (0, 1) for scores. By default (−1, 1), which
            is right for differences of scores and cautious for scores; where values lie beyond that, their range.
        resamples: how many weightings of the problems are sampled.
        confidence: that the interval contains the mean over all problems that might have been drawn.
        seed: of the weightings.
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
    values_PQ = to_numpy(values).astype(np.float64).reshape(problems, -1)
    if bounds is None:
        bounds = (-1.0, 1.0) if np.abs(values_PQ).max() <= 1 else (values_PQ.min(), values_PQ.max())
    lower_Q, upper_Q = (np.broadcast_to(np.asarray(bound, dtype=np.float64), values_PQ.shape[1:]) for bound in bounds)
    if not (np.isfinite([lower_Q, upper_Q]).all() and (lower_Q <= upper_Q).all()):
        raise InputError(f"bounds must be finite, the lower one first, not {bounds}")
    low_Q, high_Q = _ends(values_PQ, lower_Q, upper_Q, resamples, (1 - confidence) / 2, seed)
    parts = (values_PQ.mean(axis=0), low_Q, high_Q)
    if values.ndim == 1:
        return Interval(*(float(part[0]) for part in parts))
    return Interval(*(from_numpy(part, values) for part in parts))


def _ends(
    values_PQ: Floats, lower_Q: Floats, upper_Q: Floats, resamples: int, tail: float, seed: int
) -> tuple[Floats, Floats]:
    """The lower and the upper end of the interval of each column."""
    problems = len(values_PQ)
    rng = np.random.default_rng(seed)
    least_Q, median_Q, most_Q = values_PQ.min(axis=0), np.median(values_PQ, axis=0), values_PQ.max(axis=0)
    rounding_Q = 1e-9 * np.maximum(1.0, np.abs(median_Q))
    below_Q = (values_PQ < median_Q - rounding_Q).sum(axis=0)
    above_Q = (values_PQ > median_Q + rounding_Q).sum(axis=0)
    lower_Q = least_Q - np.maximum(least_Q - lower_Q, 0) / (below_Q + 1)
    upper_Q = most_Q + np.maximum(upper_Q - most_Q, 0) / (above_Q + 1)
    # The weight of the further observation is independent of the others' shares of the rest: sample it stratified.
    strata_B = (rng.permutation(resamples) + 0.5) / resamples
    further_B1 = 1 - (1 - strata_B[:, None]) ** (1 / problems)
    rows = max(1, BLOCK // problems)
    means = []
    for start in range(0, resamples, rows):
        weights_BP = rng.standard_exponential((min(rows, resamples - start), problems))
        means.append(weights_BP @ values_PQ / weights_BP.sum(axis=1, keepdims=True))
    seen_BQ = np.concatenate(means) * (1 - further_B1)
    low_Q: Floats = np.quantile(seen_BQ + further_B1 * lower_Q, tail, axis=0, method="hazen")
    high_Q: Floats = np.quantile(seen_BQ + further_B1 * upper_Q, 1 - tail, axis=0, method="hazen")
    # Rounding must put neither an end beyond what is possible, nor the mean of equal values outside.
    mean_Q = values_PQ.mean(axis=0)
    return np.minimum(np.maximum(low_Q, lower_Q), mean_Q), np.maximum(np.minimum(high_Q, upper_Q), mean_Q)
