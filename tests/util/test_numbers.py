"""Numbers from outside."""

from fractions import Fraction

import numpy as np
import pytest

from vpo.util.numbers import finite


@pytest.mark.parametrize("value", [3, -2.5, True, Fraction(1, 4), np.float32(0.5), np.int64(7), 10**308])
def test_numbers_and_booleans_are_floats(value):
    assert finite(value) == float(value)
    assert type(finite(value)) is float


@pytest.mark.parametrize(
    "value",
    [None, "1", [], 1j, float("nan"), float("inf"), -(10**400), Fraction(10**400)],
    ids=lambda value: str(value)[:5],
)
def test_anything_else_is_none(value):
    assert finite(value) is None
