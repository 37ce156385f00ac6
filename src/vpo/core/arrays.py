"""What every function of the core does with its arguments: recognise, check, convert back."""

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, TypeAlias

import array_api_compat
import numpy as np

from vpo.errors import InputError

# A numpy array or a torch tensor. The two share no base class, and naming torch here would import it.
Array: TypeAlias = Any
ArrayLike: TypeAlias = Any
Namespace: TypeAlias = Any


# What sums, squares and float32 can hold with room to spare.
LARGEST = 1e30
_namespaces: dict[type, Namespace] = {}


def as_array(value: ArrayLike, name: str) -> Array:
    """Return a numpy array or torch tensor as it is, anything else (lists, numbers) as a numpy array."""
    if array_api_compat.is_torch_array(value):
        if value.dtype.is_complex:
            raise InputError(f"{name} must hold real numbers, not {value.dtype}")
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(f"{name} must be a plain array, not a masked one: pass the mask as an argument")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} must be a rectangular array of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold real numbers, not {array.dtype}")
    return array


def whole_number(value: Any, name: str, low: int | None = None) -> int:
    """Return a whole number as an int, refusing other kinds of number and one below `low`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise InputError(f"{name} must be a whole number, not {value!r}")
    if low is not None and value < low:
        raise InputError(f"{name} must be {low} or more, not {value}")
    return int(value)


def batches_by_length(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Return places in batches of like length, the longest first: less padding, and too little memory shows at once."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    return [sorted(order[start : start + size]) for start in range(0, len(order), size)]


def namespace(array: Array) -> Namespace:
    """Return the array API namespace of `array`."""
    found = _namespaces.get(type(array))
    if found is None:  # array_api_compat takes longer to find it than numpy to sum a group's rewards
        found = _namespaces[type(array)] = array_api_compat.array_namespace(array)
    return found


def widen(array: Array) -> Array:
    """Convert to float64, in which everything is computed (float32 on Apple's GPUs, which have no float64)."""
    xp = namespace(array)
    on_mps = getattr(array_api_compat.device(array), "type", None) == "mps"
    return xp.astype(array, xp.float32 if on_mps else xp.float64, copy=False)


def narrow(array: Array, like: Array) -> Array:
    """Convert a computed array to the precision of the input: float64 (or integers) stay, less is float32.

    Half precision comes back as float32: bfloat16 has three digits, too few to rank rewards by.
    """
    xp = namespace(array)
    is_short = xp.isdtype(like.dtype, "real floating") and like.dtype.itemsize < 8
    return xp.astype(array, xp.float32, copy=False) if is_short else array


def to_numpy(array: Array) -> np.ndarray[Any, Any]:
    """Copy a tensor to the CPU as a numpy array; a numpy array passes as it is."""
    if not array_api_compat.is_torch_array(array):
        return np.asarray(array)
    tensor = array.detach().cpu()
    is_half = tensor.is_floating_point() and tensor.itemsize < 4  # numpy has no bfloat16
    return np.asarray(tensor.float() if is_half else tensor)


def from_numpy(array: np.ndarray[Any, Any], like: Array) -> Array:
    """Return a numpy array as the kind of array that `like` is, on its device."""
    xp = namespace(like)
    if array.dtype == np.float64:  # the widest that the device of `like` has
        return xp.asarray(array, dtype=widen(like).dtype, device=array_api_compat.device(like))
    return xp.asarray(array, device=array_api_compat.device(like))


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
        place = f"{name}[{', '.join(map(str, index))}]" if index else name
        value = float(array[index])
        bound = f"at most {LARGEST:g} in size" if math.isfinite(value) else "finite"
        raise InputError(f"{name} must be {bound}: {place} is {value}")


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
    """Return `value` as a boolean array of the kind of `like`, refusing another shape or other numbers than 0/1."""
    array = to_numpy(as_array(value, name))
    if array.shape != tuple(expected):
        raise InputError(f"{name} must have shape {tuple(expected)}, not {array.shape}")
    others = array[(array != 0) & (array != 1)]
    if others.size:
        raise InputError(f"{name} must be true or false (1 or 0) everywhere, and holds {others.flat[0]:g}")
    return from_numpy(array.astype(np.bool_), like)


def as_pools(scores: ArrayLike) -> Array:
    """Return `scores` as an array of pools, (..., n, D), refusing empty ones and numbers that are not finite."""
    scores = as_array(scores, "scores")
    check_rank(scores, "scores", "n, D", batched=True)
    if 0 in shape(scores):
        raise InputError(f"scores must hold 1 or more pools, answers and objectives, not shape {shape(scores)}")
    check_finite(scores, "scores")
    return scores


def shape(array: Array) -> tuple[int, ...]:
    """Return the shape as plain integers."""
    return tuple(int(size) for size in array.shape)
