"""What the true scores may be where a judge or verifier errs."""

import numpy as np

from vpo.core.arrays import as_array, to_numpy
from vpo.core.checks import as_integer, check_finite, check_rank
from vpo.core.types import ArrayLike, Floats
from vpo.util.errors import InputError


def possible_scores(scores: ArrayLike, *, error: float, size: int = 64, seed: int = 0) -> Floats:
    """Score vectors that may be the true ones, equally likely, (n, D) → (size, n, D).

    The model: each score is the true one, r, with probability 1 − error, and else its opposite, 1 − r, independently.
    Before it is judged, an answer is good (r above 1/2) on an objective with probability p; of the share h of the
    answers that are judged good, p = (h − error) / (1 − 2·error). By Bayes' rule a score above 1/2 is then right with
    probability (1 − error)·p / ((1 − error)·p + error·(1 − p)): one that hardly any answer has is most likely an error.

    Args:
        scores: of different answers to one problem, in [0, 1]. Copies of an answer would count as independent.
        error: the probability that a score is wrong, 0 or more and below 1/2.
        size: how many readings.
        seed: of the errors that are drawn.
    """
    scores = as_array(scores, "scores")
    check_rank(scores, "scores", "n, D", batched=False)
    check_finite(scores, "scores")
    scores_nD = to_numpy(scores).astype(np.float64)
    if not 0 <= error < 0.5:
        raise InputError(f"error must be 0 or more and below 0.5, not {error}")
    if scores_nD.size and (scores_nD.min() < 0 or scores_nD.max() > 1):
        outside = scores_nD[(scores_nD < 0) | (scores_nD > 1)][0]
        raise InputError(f"scores must lie in 0..1 for a judge that errs, and hold {outside:g}")
    wrong_nD = 1 - _right(scores_nD, error)
    # Stratified: each score is wrong in just its share of the readings, in an order of its own.
    levels_SnD = np.broadcast_to(
        ((np.arange(as_integer(size, "size", 1)) + 0.5) / size)[:, None, None], (size, *wrong_nD.shape)
    )
    levels_SnD = np.random.default_rng(seed).permuted(levels_SnD, axis=0)
    readings_SnD: Floats = np.where(levels_SnD < wrong_nD, 1 - scores_nD, scores_nD)
    return readings_SnD


def _right(scores_nD: Floats, error: float) -> Floats:
    """The probability that each score is the true one."""
    good_nD = np.where(scores_nD == 0.5, 0.5, scores_nD > 0.5)
    # An answer more that is half good: no share of few answers is certain.
    answers = len(scores_nD) + 1
    share_D = (good_nD.sum(axis=0) + 0.5) / answers
    prior_D = np.clip((share_D - error) / (1 - 2 * error), 0.5 / answers, 1 - 0.5 / answers)
    prior_nD = good_nD * prior_D + (1 - good_nD) * (1 - prior_D)  # that an answer is as it was judged
    right_nD: Floats = (1 - error) * prior_nD / ((1 - error) * prior_nD + error * (1 - prior_nD))
    return right_nD
