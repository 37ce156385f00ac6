"""Closed forms and brute force that the library is tested against, written for clarity."""

from fractions import Fraction
from itertools import combinations, pairwise
from math import comb

import numpy as np
from scipy.stats import beta


def set_reward_of_two_objectives(rewards_M2, alpha=(1.0, 1.0)):
    """Integrate the upper envelope of the M lines t·a + (1−t)·b, t ~ Beta(α1, α2), piece by piece."""
    lines = [(b, a - b) for a, b in np.asarray(rewards_M2, dtype=float)]  # intercept, slope
    crossings = {0.0, 1.0}
    for (b1, s1), (b2, s2) in combinations(lines, 2):
        if s1 != s2 and 0 < (t := (b2 - b1) / (s1 - s2)) < 1:
            crossings.add(t)
    edges = sorted(crossings)
    mean = alpha[0] / sum(alpha)
    total = 0.0
    for low, high in pairwise(edges):
        middle = (low + high) / 2
        intercept, slope = max(lines, key=lambda line: line[0] + line[1] * middle)
        mass = beta.cdf(high, *alpha) - beta.cdf(low, *alpha)
        moment = mean * (beta.cdf(high, alpha[0] + 1, alpha[1]) - beta.cdf(low, alpha[0] + 1, alpha[1]))
        total += intercept * mass + slope * moment
    return total


def set_reward_of_two_answers(one_D, other_D):
    """E[w·b] + E[(w·c)_+], c = a − b, w uniform: the second term is (1/D)·[c_1, …, c_D] x_+^D.

    The divided difference is computed exactly, in fractions; equal nodes take its confluent form, in which
    the n-th derivative of x_+^D over n! is C(D, n) x_+^(D−n).
    """
    a = [Fraction(float(x)) for x in one_D]
    b = [Fraction(float(x)) for x in other_D]
    degree = len(a)
    nodes = sorted(x - y for x, y in zip(a, b, strict=True))
    table = [max(node, Fraction(0)) ** degree for node in nodes]
    for order in range(1, degree):
        table = [
            (table[i + 1] - table[i]) / (nodes[i + order] - nodes[i])
            if nodes[i + order] != nodes[i]
            else comb(degree, order) * max(nodes[i], Fraction(0)) ** (degree - order)
            for i in range(degree - order)
        ]
    return float(sum(b) / degree + table[0] / degree)


def best_at_k(scores, k):
    """Average the best over all subsets of k."""
    return float(np.mean([max(subset) for subset in combinations(scores, k)]))


def max_at_k_weights(rewards, k):
    """s_g: the mean over all subsets of k rollouts of (their best if g is among them, else 0), centred."""
    subsets = list(combinations(range(len(rewards)), k))
    s = [sum(max(rewards[i] for i in subset) for subset in subsets if g in subset) for g in range(len(rewards))]
    return np.asarray(s) / len(subsets) - np.mean(s) / len(subsets)


def best_set(values_nC, k):
    """The largest mean over the columns of the best of k rows, over all sets of k."""
    return max(float(values_nC[list(rows)].max(axis=0).mean()) for rows in combinations(range(len(values_nC)), k))
