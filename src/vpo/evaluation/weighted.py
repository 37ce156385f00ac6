"""Measures of a policy that is a distribution over the answers of a pool: exact, for answers drawn independently."""

from collections.abc import Sequence

import numpy as np

from vpo.core.types import Floats


def best_of_draws(probabilities_n: Floats, values_n: Floats, ks: Sequence[int]) -> Floats:
    """Expected best of k answers, for several k: Σ_i (F_i^k − F_{i−1}^k) · v_(i), F the distribution function."""
    in_order_n, below_n = _distribution(probabilities_n, values_n)
    powers_kn = below_n[None, :] ** np.asarray(ks, dtype=np.float64)[:, None]
    best_k: Floats = np.diff(powers_kn, axis=1, prepend=0.0) @ in_order_n
    return best_k


def best_of_completion(probabilities_Mn: Floats, values_n: Floats) -> float:
    """Expected best answer of one set, whose positions have distributions of their own."""
    distributions = [_distribution(each_n, values_n) for each_n in probabilities_Mn]
    below_n = np.prod([below for _, below in distributions], axis=0)
    return float(np.diff(below_n, prepend=0.0) @ distributions[0][0])


def mean_l1(probabilities_n: Floats, scores_nD: Floats) -> float:
    """Mean L1 distance between the score vectors of two answers."""
    distances_nn = np.abs(scores_nD[:, None, :] - scores_nD).sum(axis=-1)
    return float(probabilities_n @ distances_nn @ probabilities_n)


def divergence(probabilities_Mn: Floats) -> float:
    """KL from the uniform distribution, per answer."""
    answers = probabilities_Mn.shape[1]
    positive_Mn = np.maximum(probabilities_Mn, np.finfo(np.float64).tiny)
    return float((probabilities_Mn * np.log(positive_Mn * answers)).sum(axis=1).mean())


def _distribution(probabilities_n: Floats, values_n: Floats) -> tuple[Floats, Floats]:
    """The values sorted upward, and the probability of one of at most each."""
    order_n = np.argsort(values_n, kind="stable")
    below_n = np.minimum(np.cumsum(probabilities_n[order_n]), 1.0)
    below_n[-1] = 1.0
    return values_n[order_n], below_n
