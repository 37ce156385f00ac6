"""How many answers are scored in one call."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

BATCH = 64  # enough to keep many cores busy


def in_batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield as many items at a time as are worth one call of `Task.score_all`."""
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch
