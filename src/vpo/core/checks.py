"""Checks of arguments: each raises an `InputError` that names the argument, the value and the bound."""

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from vpo.core.arrays import as_array, from_numpy, namespace, shape, to_numpy, widen
from vpo.core.types import Array, ArrayLike
from vpo.util.errors import InputError

# Sums and squares of such numbers still fit into float32.
LARGEST = 1e30


def as_integer(value: Any, name: str, low: int | None = None) -> int:
    """Refuse booleans, floats and integers below `low`; numpy integers become int."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise InputError(f"{name} must be an integer, not {value!r}")
    if low is not None and value < low:
        raise InputError(f"{name} must be {low} or more, not {value}")
    return int(value)


def check_rank(array: Array, name: str, axes: str, *, batched: bool) -> None:
    """Refuse an array whose rank does not fit `axes`, such as "M, D"; `batched` allows leading axes."""
    need = axes.count(",") + 1
    if array.ndim == need or (batched and array.ndim > need):
        return
    form = f"(..., {axes})" if batched else f"({axes})"
    bound = f"{need} or more" if batched else f"{need}"
    raise InputError(f"{name} must be of rank {bound}, {form}, not rank {array.ndim} with shape {shape(array)}")


def check_finite(array: Array, name: str) -> None:
    """Refuse NaN, infinities and numbers beyond 1e30, naming the first."""
    xp = namespace(array)
    fine = xp.abs(widen(array)) <= LARGEST
    if not xp.all(fine):
        index = tuple(int(i) for i in np.argwhere(~to_numpy(fine))[0])
        element = f"{name}[{', '.join(map(str, index))}]" if index else name
        value = float(array[index])
        bound = f"at most {LARGEST:g} in size" if math.isfinite(value) else "finite"
        raise InputError(f"{name} must be {bound}: {element} is {value}")


def check_weights(weights: Array, name: str) -> None:
    """Refuse rows (the last axis) that are not points of the simplex: finite, ≥ 0 and of sum 1."""
    array = to_numpy(weights).astype(np.float64, copy=False)
    check_finite(array, name)
    if array.size and array.min() < 0:
        raise InputError(f"{name} must not be negative, and holds {array.min():g}")
    sums = np.atleast_1d(array.sum(axis=-1))
    worst = int(np.abs(sums - 1).argmax()) if sums.size else 0
    if sums.size and not math.isclose(sums[worst], 1.0, abs_tol=1e-6):
        row = f"row {worst}" if array.ndim > 1 else "it"
        raise InputError(f"{name} must sum to 1 over the objectives, and {row} sums to {sums[worst]:.9g}")


def as_booleans(value: ArrayLike, name: str, like: Array, expected: Sequence[int]) -> Array:
    """`value` as a boolean array of the type of `like`, refusing another shape or numbers other than 0 and 1."""
    array = to_numpy(as_array(value, name))
    if array.shape != tuple(expected):
        raise InputError(f"{name} must have shape {tuple(expected)}, not {array.shape}")
    others = array[(array != 0) & (array != 1)]
    if others.size:
        raise InputError(f"{name} must be true or false (1 or 0) everywhere, and holds {others.flat[0]:g}")
    return from_numpy(array.astype(np.bool_), like)


def as_pools(scores: ArrayLike) -> Array:
    """`scores` as an array of pools, (..., n, D), refusing empty ones and numbers that are not finite."""
    scores = as_array(scores, "scores")
    check_rank(scores, "scores", "n, D", batched=True)
    if 0 in shape(scores):
        raise InputError(f"scores must hold 1 or more pools, answers and objectives, not shape {shape(scores)}")
    check_finite(scores, "scores")
    return scores
