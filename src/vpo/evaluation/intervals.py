"""Means over problems with their bootstrap intervals, of many columns from the same resamples."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from vpo.core.at_k import Interval, bootstrap
from vpo.core.types import Floats

K = TypeVar("K", bound=Hashable)


def intervals(columns: Mapping[K, Floats]) -> dict[K, Interval]:
    """The interval of each column of numbers, one per problem; one problem has a mean without bounds."""
    if not columns:
        return {}
    matrix_PQ = np.column_stack(list(columns.values()))
    if len(matrix_PQ) < 2:
        return {key: Interval(float(column[0]), None, None) for key, column in columns.items()}
    result = bootstrap(matrix_PQ)
    triples = zip(result.mean, result.low, result.high, strict=True)
    return {key: Interval(*map(float, triple)) for key, triple in zip(columns, triples, strict=True)}
