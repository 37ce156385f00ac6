"""Means over problems with their intervals, of many columns from the same resamples."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from vpo.core.intervals import Interval, bootstrap
from vpo.core.types import Floats

K = TypeVar("K", bound=Hashable)


def intervals(columns: Mapping[K, Floats], bounds: Mapping[K, tuple[float, float]]) -> dict[K, Interval]:
    """The interval of each column of numbers, one per problem; one problem has a mean without an interval.

    Args:
        columns: to average.
        bounds: the least and the greatest number that each column could hold.
    """
    if not columns:
        return {}
    matrix_PQ = np.column_stack(list(columns.values()))
    if len(matrix_PQ) < 2:
        return {key: Interval(float(column[0]), None, None) for key, column in columns.items()}
    lower, upper = zip(*(bounds[key] for key in columns), strict=True)
    result = bootstrap(matrix_PQ, bounds=(lower, upper))
    triples = zip(result.mean, result.low, result.high, strict=True)
    return {key: Interval(*map(float, triple)) for key, triple in zip(columns, triples, strict=True)}
