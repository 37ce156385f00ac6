"""A bar on the terminal for anything that takes over two seconds."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def progress(items: Iterable[T], label: str, total: int | None = None) -> Iterable[T]:
    """Yield `items`, with a bar on standard error if it is a terminal and two seconds have passed."""
    from tqdm import tqdm

    bar: Iterable[T] = tqdm(items, desc=label, total=total, delay=2, leave=False, disable=None)
    return bar
