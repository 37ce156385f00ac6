"""Points of the simplex: the weightings w ~ Dir(α) of the objectives.

`directions` is the fixed set that the set reward averages over; `dirichlet` draws at random from a seed.
"""

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from vpo.core.checks import as_integer
from vpo.core.types import Floats
from vpo.util.errors import InputError

Concentration: TypeAlias = float | Sequence[float]

# Worst error of the set reward in an adversarial search against the closed form, M = 2, rewards in [0,1]:
# 1e-4 at D = 3, 1e-3 at D = 5, 3e-3 at D = 16. 512 points double it, and miss 5e-3 at D = 16.
DEFAULT_SIZE = 1024
LEAST_ALPHA, LARGEST_ALPHA = 1e-6, 1e6


def check_concentration(concentration: Concentration) -> None:
    """Refuse an α that is not greater than 0, or beyond what the quantiles of Beta are good for."""
    values = np.asarray(concentration, dtype=np.float64)
    if not (np.isfinite(values) & (values > 0)).all():
        raise InputError(f"concentration must be finite and greater than 0, not {concentration}")
    if values.min() < LEAST_ALPHA or values.max() > LARGEST_ALPHA:
        raise InputError(f"concentration must lie in {LEAST_ALPHA:g}..{LARGEST_ALPHA:g}, not {concentration}")


def alphas(dimensions: int, concentration: Concentration = 1.0) -> tuple[float, ...]:
    """The Dirichlet parameters, one per objective, from a number or one number per objective."""
    as_integer(dimensions, "dimensions", 1)
    check_concentration(concentration)
    values = np.atleast_1d(np.asarray(concentration, dtype=np.float64))
    if values.shape not in ((1,), (dimensions,)):
        raise InputError(f"concentration must be a number or {dimensions} numbers, not of shape {values.shape}")
    return tuple(np.broadcast_to(values, (dimensions,)).tolist())


def expected_weights(dimensions: int, concentration: Concentration = 1.0) -> Floats:
    """E[w] for w ~ Dir(α), (D,)."""
    alpha_D = np.asarray(alphas(dimensions, concentration))
    mean_D: Floats = alpha_D / alpha_D.sum()
    return mean_D


def directions(dimensions: int, concentration: Concentration = 1.0, *, size: int = DEFAULT_SIZE) -> Floats:
    """A fixed low-discrepancy set of points for Dir(α), (size, dimensions), read-only and cached.

    Sobol points, mapped to the simplex by stick-breaking, then corrected so that their mean is exactly
    E[w]: every linear function, and so every set of one answer, is integrated without error.

    Args:
        dimensions: D, the number of objectives.
        concentration: α, a number or one per objective.
        size: how many points, a power of two. One objective has one direction, whatever the size.
    """
    if as_integer(size, "size", 1) & (size - 1):
        raise InputError(f"size must be a power of two (Sobol points are balanced only there), not {size}")
    return _directions(alphas(dimensions, concentration), size)


@lru_cache(maxsize=64)
def _directions(alpha: tuple[float, ...], size: int) -> Floats:
    alpha_D = np.asarray(alpha)
    points_KD = _with_mean(_stick_breaking(alpha_D, size), alpha_D / alpha_D.sum())
    points_KD.flags.writeable = False
    return points_KD


def _stick_breaking(alpha_D: Floats, size: int) -> Floats:
    """Break off one Beta-distributed share after the other: the inverse Rosenblatt transform of Dir(α)."""
    if len(alpha_D) == 1:
        return np.ones((1, 1))
    from scipy.special import betaincinv
    from scipy.stats import qmc  # slow to import

    sobol = qmc.Sobol(len(alpha_D) - 1, scramble=False).random_base2(int(math.log2(size)))
    uniform_KD = sobol + 0.5 / size  # the middle of each cell, away from 0 and 1
    later_alphas = np.cumsum(alpha_D[::-1])[::-1][1:]
    shares_KD = betaincinv(alpha_D[:-1], later_alphas, uniform_KD)
    ones = np.ones((size, 1))
    rest_KD = np.cumprod(np.hstack([ones, 1 - shares_KD]), axis=1)
    points_KD: Floats = rest_KD * np.hstack([shares_KD, ones])
    return points_KD


def _with_mean(points_KD: Floats, mean_D: Floats) -> Floats:
    """Move points of the simplex, little and within it, until their mean is `mean_D` to the last digit."""
    # Scaling columns and rows in turn (Sinkhorn) distorts least, and has all but converged after 20 rounds.
    points_KD = np.maximum(points_KD, np.finfo(np.float64).tiny)
    for _ in range(20):
        points_KD = points_KD * (mean_D / points_KD.mean(axis=0))
        points_KD = points_KD / points_KD.sum(axis=1, keepdims=True)
    # A contraction towards one point finishes: the least for which that point lies within the simplex.
    means_D = points_KD.mean(axis=0)
    contraction = max(0.0, float(np.max(1 - mean_D / means_D)))
    moved_KD: Floats = (1 - contraction) * points_KD + np.maximum(mean_D - (1 - contraction) * means_D, 0.0)
    return moved_KD


def dirichlet(
    dimensions: int,
    concentration: Concentration = 1.0,
    *,
    size: int,
    seed: int | str | Sequence[int | str],
) -> Floats:
    """Draw w ~ Dir(α), (size, dimensions), from a seed alone.

    A seed of several parts, such as ``(seed, step, problem)``, gives each combination a stream of its own,
    so that a draw depends on its seed and never on how many draws came before.
    """
    as_integer(size, "size", 1)
    parts = list(seed) if isinstance(seed, Sequence) and not isinstance(seed, str) else [seed]
    parts = [part if isinstance(part, str) else as_integer(part, "seed") for part in parts]
    digest = hashlib.blake2b(repr(parts).encode()).digest()
    generator = np.random.default_rng(int.from_bytes(digest))
    return generator.dirichlet(alphas(dimensions, concentration), size)
