"""The k answers of a pool that are best together: a greedy cover of the weightings.

The value of a set S is f(S) = E_w[max_{i ∈ S} w·r_i], its set reward. f never falls as answers are added, and an answer
adds the less the more there are: f is monotone and submodular. So the greedy choice, which adds the answer with the
largest gain again and again, has at least 1 − 1/e of the value of the best k answers where rewards are 0 or more
(Nemhauser, Wolsey and Fisher 1978), and the first answer is the best single one. For the same reason

    f(best k) ≤ f(S) + the k largest gains f(S ∪ {i}) − f(S)        for every set S,

which bounds the best k answers without a search for them.
"""

from dataclasses import dataclass

import numpy as np

from vpo.core.arrays import as_array, from_numpy, shape, to_numpy
from vpo.core.checks import as_integer, check_finite, check_rank
from vpo.core.set_reward import direction_columns
from vpo.core.simplex import Concentration
from vpo.core.types import Array, ArrayLike, Floats
from vpo.util.errors import InputError

# Gains this close are equal, and the preference decides.
_TIE = 1e-12


@dataclass(frozen=True)
class Cover:
    """Answers in the order in which they were chosen: the first j of them are the choice of j.

    Attributes:
        order: (k,), indices of the answers.
        values: (k,), the value of the first answer, of the first two, ….
        bounds: (k,), no set of 1, 2, … answers has a greater value.
    """

    order: Array
    values: Array
    bounds: Array


def greedy_cover(
    rewards: ArrayLike,
    k: int,
    *,
    concentration: Concentration = 1.0,
    directions: ArrayLike | None = None,
    preference: ArrayLike | None = None,
) -> Cover:
    """Choose k answers whose best is good under every weighting, (n, D) → k indices.

    Args:
        rewards: score vectors of the answers. Where they are uncertain, (S, n, D): S scenarios of them that are equally
            likely, such as those of `possible_scores`; the choice is the one that is good on average over both.
        k: how many, 1..n.
        concentration: α of the Dirichlet distribution of weightings, a number or one per objective. 1 is uniform.
        directions: weightings (K, D) to average over instead of the fixed set; of one row, the weighting that counts.
        preference: (n,), which of the answers to choose that add the same, such as nothing: the largest, and of equal
            ones the first. By default the mean score.
    """
    rewards = as_array(rewards, "rewards")
    if rewards.ndim != 3:
        check_rank(rewards, "rewards", "n, D", batched=False)
    if 0 in shape(rewards):
        raise InputError(f"rewards must hold 1 or more answers and objectives, not shape {shape(rewards)}")
    check_finite(rewards, "rewards")
    answers = shape(rewards)[-2]
    if not 1 <= as_integer(k, "k") <= answers:
        raise InputError(f"k must lie in 1..{answers}, the number of answers, not {k}")
    points_DK = to_numpy(direction_columns(rewards, concentration, directions))
    scenarios_SnD = to_numpy(rewards).astype(np.float64).reshape(-1, *shape(rewards)[-2:])
    values_nC = np.moveaxis(scenarios_SnD @ points_DK, 1, 0).reshape(answers, -1)
    preference_n = None if preference is None else to_numpy(as_array(preference, "preference"))
    if preference_n is not None and preference_n.shape != (answers,):
        raise InputError(f"preference must have shape ({answers},), not {preference_n.shape}")
    cover = cover_columns(values_nC, k, preference_n=preference_n)
    return Cover(*(from_numpy(part, rewards) for part in (cover.order, cover.values, cover.bounds)))


def cover_columns(
    values_nC: Floats, k: int, *, weights_C: Floats | None = None, preference_n: Floats | None = None
) -> Cover:
    """Choose k rows of a matrix, greedily, for a large mean over the columns of the largest of the rows.

    Args:
        values_nC: such as the score of each answer under each weighting, or its similarity to each answer.
        k: how many rows, 1..n.
        weights_C: of the columns, of sum 1; by default equal.
        preference_n: as that of `greedy_cover`.
    """
    columns = values_nC.shape[1]
    weights_C = np.full(columns, 1 / columns) if weights_C is None else weights_C
    means_n = values_nC @ weights_C
    preference_n = means_n if preference_n is None else preference_n
    order: list[int] = []
    values: list[float] = []
    bounds_k = _first_bounds(values_nC, weights_C, means_n, k)
    best_C: Floats = np.empty(0)
    gains_n = means_n
    for _ in range(k):
        chosen = _largest(gains_n, preference_n, order)
        best_C = np.maximum(best_C, values_nC[chosen]) if order else values_nC[chosen]
        order.append(chosen)
        values.append(float(best_C @ weights_C))
        gains_n = np.maximum(values_nC - best_C, 0.0) @ weights_C
        bounds_k = np.minimum(bounds_k, values[-1] + np.cumsum(np.sort(gains_n)[::-1][:k]))
    return Cover(np.asarray(order), np.asarray(values), np.maximum(bounds_k, values))  # less is rounding


def _first_bounds(values_nC: Floats, weights_C: Floats, means_n: Floats, k: int) -> Floats:
    """Bounds before anything is chosen: all answers; one answer; of values of 0 or more, the sum of the k largest."""
    bounds_k: Floats = np.full(k, values_nC.max(axis=0) @ weights_C)
    largest_k = np.sort(means_n)[::-1][:k]
    if values_nC.min() >= 0:
        bounds_k = np.minimum(bounds_k, np.cumsum(largest_k))
    bounds_k[0] = largest_k[0]
    return bounds_k


def _largest(gains_n: Floats, preference_n: Floats, chosen: list[int]) -> int:
    """The answer with the largest gain that is not chosen yet; of those with the same, the preferred one."""
    free_n = np.ones(len(gains_n), dtype=np.bool_)
    free_n[chosen] = False
    highest = gains_n[free_n].max()
    equal_n = free_n & (gains_n >= highest - _TIE * max(1.0, abs(highest)))
    return int(np.argmax(np.where(equal_n, preference_n, -np.inf)))
