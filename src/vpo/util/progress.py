"""Progress of what takes longer than two seconds: a progress bar on a terminal, a line now and then in a log."""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Generic, TypeVar

T = TypeVar("T")

BAR_SECONDS = 2.0  # until a progress bar is shown
LINE_SECONDS = 30.0  # between two lines


def progress(items: Iterable[T], label: str, total: int | None = None) -> Iterable[T]:
    """Yield `items`, and show on standard error how many are done."""
    shown: Iterable[T] = progress_bar(label, total, items)
    return shown


def progress_bar(label: str, total: int | None, items: Iterable[Any] | None = None) -> Any:
    """A progress bar of tqdm; `ProgressLines` where standard error is no terminal."""
    if not sys.stderr.isatty():
        return ProgressLines(label, total, () if items is None else items)
    from tqdm import tqdm

    return tqdm(items, desc=label, total=total, delay=BAR_SECONDS, leave=False)


class ProgressLines(Generic[T]):
    """The part of tqdm's interface that is used here, as a line every half a minute; nothing on what takes less."""

    def __init__(self, label: str, total: int | None, items: Iterable[T]) -> None:
        """Set a label, how many items there are to do (None: unknown), and the items to yield, if any."""
        self.label, self.items = label, items
        self.total = len(items) if total is None and isinstance(items, Sized) else total
        self.done, self.note = 0, ""
        self.began = self.last_line = time.monotonic()

    def __iter__(self) -> Iterator[T]:
        """Yield the items; each is done when the next is requested."""
        for item in self.items:
            yield item
            self.update()

    def __enter__(self) -> "ProgressLines[T]":
        """The object to update."""
        return self

    def __exit__(self, *error: object) -> None:
        """Write nothing more."""

    def update(self) -> None:
        """Count one more item as done."""
        self.done += 1
        now = time.monotonic()
        if now - self.last_line >= LINE_SECONDS:
            self.last_line = now
            of = "" if self.total is None else f" of {self.total:,}"
            note = f", {self.note}" if self.note else ""
            print(f"{self.label}: {self.done:,}{of} in {now - self.began:,.0f} s{note}", file=sys.stderr, flush=True)

    def set_postfix_str(self, note: str) -> None:
        """Set a note for the next lines."""
        self.note = note
