"""The arithmetic that turns rewards into advantages, along the first axis: the rollouts of a group."""

from vpo.core.arrays import namespace
from vpo.core.types import Array

# Added to a standard deviation before dividing by it, as TRL does.
EPSILON = 1e-4


def z_score(values: Array) -> Array:
    """(x − mean) / (std + 1e-4), with the sample std. Without spread exactly 0."""
    xp = namespace(values)
    centred = centre(values)
    return centred / (xp.std(centred, axis=0, correction=1) + EPSILON)


def centre(values: Array) -> Array:
    """x − mean; exactly 0 where all are equal."""
    xp = namespace(values)
    equal = xp.max(values, axis=0) == xp.min(values, axis=0)
    return xp.where(equal, xp.zeros_like(values), values - xp.mean(values, axis=0))
