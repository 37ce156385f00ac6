"""Numbers from outside: JSON has NaN, Infinity and integers of any size."""

import math
from numbers import Real
from typing import Any


def finite(value: Any) -> float | None:
    """A number or boolean as a float; None for anything else, and for what no float can hold."""
    if not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
