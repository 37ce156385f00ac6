"""How far anything is that takes its time: a bar on a terminal, and in a log, where a bar would be noise, a line."""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Generic, TypeVar

T = TypeVar("T")

BAR_SECONDS = 2.0  # until a bar is shown
LINE_SECONDS = 30.0  # until a line is written, and then the next


def progress(items: Iterable[T], label: str, total: int | None = None) -> Iterable[T]:
    """Yield `items`, and show on standard error how far that is."""
    shown: Iterable[T] = bar(label, total, items)
    return shown


def bar(label: str, total: int | None, items: Iterable[Any] | None = None) -> Any:
    """Return a bar of tqdm, or on no terminal what has as much of its methods as is used here."""
    if not sys.stderr.isatty():
        return Lines(label, total, () if items is None else items)
    from tqdm import tqdm

    return tqdm(items, desc=label, total=total, delay=BAR_SECONDS, leave=False)


class Lines(Generic[T]):
    """Writes a line every half a minute, and none on what takes less."""

    def __init__(self, label: str, total: int | None, items: Iterable[T]) -> None:
        """Take what it is called, how many things there are to do, and the things that it is to yield, if any."""
        self.label, self.items = label, items
        self.total = len(items) if total is None and isinstance(items, Sized) else total
        self.done, self.note = 0, ""
        self.began = self.said = time.monotonic()

    def __iter__(self) -> Iterator[T]:
        """Yield the things, each done when the next is asked for."""
        for item in self.items:
            yield item
            self.update()

    def __enter__(self) -> "Lines[T]":
        """Return itself, to be updated."""
        return self

    def __exit__(self, *error: object) -> None:
        """Write nothing more: what was done says so itself."""

    def update(self) -> None:
        """Take note that one more is done."""
        self.done += 1
        now = time.monotonic()
        if now - self.said >= LINE_SECONDS:
            self.said = now
            of = "" if self.total is None else f" of {self.total:,}"
            note = f", {self.note}" if self.note else ""
            print(f"{self.label}: {self.done:,}{of} in {now - self.began:,.0f} s{note}", file=sys.stderr, flush=True)

    def set_postfix_str(self, note: str) -> None:
        """Take what else is worth to be told."""
        self.note = note
