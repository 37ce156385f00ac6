"""Feedback on what takes longer than a second or two, on standard error.

A progress bar on a terminal, a line now and then in a log, and a line on what is under way without a number.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from threading import RLock, Timer
from typing import Any, Generic, TypeVar

from vpo.util.processes import is_main
from vpo.util.text import duration

T = TypeVar("T")

WAIT_SECONDS = 1.0  # until it is said what is under way
BAR_SECONDS = 2.0  # until a progress bar, or the first line, is shown
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

    class Bar(tqdm):  # type: ignore[misc]  # tqdm is untyped
        """Appears while the first item is still under way, for which tqdm itself would wait."""

        def __init__(self) -> None:
            super().__init__(items, desc=label, total=total, delay=BAR_SECONDS, leave=False)
            self.timer = later(BAR_SECONDS, self.appear)

        def appear(self) -> None:
            self.delay = 0  # else `close` does not clear what was shown before the first update
            self.refresh()

        def close(self) -> None:
            self.timer.cancel()
            super().close()

    return Bar()


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say what is under way, such as "loading MODEL", where the block takes longer than a second."""
    timer = later(WAIT_SECONDS, lambda: say(f"vpo: {what} …"))
    try:
        yield
    finally:
        timer.cancel()


def later(seconds: float, then: Any) -> Timer:
    """Call a function after some seconds, in a thread, unless the timer is cancelled or the process ends."""
    timer = Timer(seconds, then)
    timer.daemon = True
    timer.start()
    return timer


def say(line: str) -> None:
    """Print a line on standard error, once for all processes."""
    if is_main():
        print(line, file=sys.stderr, flush=True)


class Pace:
    """How much time is left, and when a log gets its next line.

    Args:
        done: items that were done before, such as the steps of a run that is resumed.
        first: how many items have a line each, before there is one every half a minute.
    """

    def __init__(self, done: int = 0, first: int = 0) -> None:
        """Begin now."""
        self.before, self.first = done, first
        self.began = self.last_line = time.monotonic()

    def due(self, done: int, total: int | None) -> bool:
        """Whether there should be a line now: for the first items, every half a minute, and for the last item."""
        first, last = done - self.before <= self.first, done == total
        if not (first or last or time.monotonic() - self.last_line >= LINE_SECONDS):
            return False
        self.last_line = time.monotonic()
        return True

    def left(self, done: int, total: int | None) -> str:
        """The time left, such as ", about 12 min left"; empty where it is not known, or none is."""
        if total is None or not self.before < done < total:
            return ""
        seconds = (time.monotonic() - self.began) / (done - self.before)
        return f", about {duration(seconds * (total - done))} left"


class ProgressLines(Generic[T]):
    """The part of tqdm's interface that is used here, in lines: after two seconds, every half a minute, and at the end.

    What takes less than two seconds has no line.
    """

    def __init__(self, label: str, total: int | None, items: Iterable[T]) -> None:
        """Set a label, how many items there are to do (None: unknown), and the items to yield, if any."""
        self.label, self.items = label, items
        if total is None and isinstance(items, Sized) and len(items):  # without items, the block counts
            total = len(items)
        self.total = total
        self.done, self.note = 0, ""
        self.pace, self.shown, self.lock = Pace(), False, RLock()
        self.timer = later(BAR_SECONDS, self._appear)

    def __iter__(self) -> Iterator[T]:
        """Yield the items; each is done when the next is requested."""
        try:
            for item in self.items:
                yield item
                self.update()
        finally:
            self.timer.cancel()

    def __enter__(self) -> "ProgressLines[T]":
        """The object to update."""
        return self

    def __exit__(self, *error: object) -> None:
        """Write nothing more."""
        self.timer.cancel()

    def update(self) -> None:
        """Count one more item as done."""
        with self.lock:
            self.done += 1
            if self.shown and self.pace.due(self.done, self.total):
                self._write()

    def set_postfix_str(self, note: str) -> None:
        """Set a note for the next lines."""
        self.note = note

    def _appear(self) -> None:
        """Write the first line, whether or not the first item is done."""
        with self.lock:
            self.shown, self.pace.last_line = True, time.monotonic()
            self._write()

    def _write(self) -> None:
        of = "" if self.total is None else f" of {self.total:,}"
        spent, left = duration(time.monotonic() - self.pace.began), self.pace.left(self.done, self.total)
        say(f"{self.label}: {self.done:,}{of} in {spent}{left}{self.note and f', {self.note}'}")
