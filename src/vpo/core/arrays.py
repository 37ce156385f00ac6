"""numpy arrays and torch tensors: recognise them, convert to float64 and back."""

from typing import Any

import array_api_compat
import numpy as np

from vpo.core.types import Array, ArrayLike, Namespace
from vpo.util.errors import InputError

_namespaces: dict[type, Namespace] = {}


def as_array(value: ArrayLike, name: str) -> Array:
    """A numpy array or torch tensor as it is; anything else (lists, numbers) as a numpy array."""
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


def namespace(array: Array) -> Namespace:
    """The array API namespace of `array`, cached by type: looking it up takes longer than summing a group's rewards."""
    xp = _namespaces.get(type(array))
    if xp is None:
        xp = _namespaces[type(array)] = array_api_compat.array_namespace(array)
    return xp


def widen(array: Array) -> Array:
    """Convert to float64, in which everything is computed (float32 on Apple's GPUs, which have no float64)."""
    xp = namespace(array)
    on_mps = getattr(array_api_compat.device(array), "type", None) == "mps"
    return xp.astype(array, xp.float32 if on_mps else xp.float64, copy=False)


def narrow(array: Array, like: Array) -> Array:
    """Convert a computed array to the precision of the input: float64 (or integers) stay, less is float32.

    Half precision becomes float32: bfloat16 has three digits, too few to rank rewards by.
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
    """A numpy array as the type of array that `like` is, on its device."""
    xp = namespace(like)
    if array.dtype == np.float64:  # the widest type of the device of `like`
        return xp.asarray(array, dtype=widen(like).dtype, device=array_api_compat.device(like))
    return xp.asarray(array, device=array_api_compat.device(like))


def shape(array: Array) -> tuple[int, ...]:
    """The shape as plain integers, whatever the array type."""
    return tuple(int(size) for size in array.shape)
