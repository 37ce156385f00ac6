"""Limits for a piece of work on hostile data, in a process that may be ended."""

import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager


class OverBudgetError(BaseException):
    """A piece of work takes too long. No `Exception`, so that nothing between catches it."""


@contextmanager
def limited(seconds: float, megabytes: int) -> Iterator[None]:
    """Limit what a block uses: processor time, and memory beyond what the process has now.

    A block that is too slow is interrupted between two steps of Python by `OverBudgetError`; one that is stuck in a
    single step has its process ended a little later. One that needs more memory meets a `MemoryError`.
    """
    memory = resource.getrlimit(resource.RLIMIT_AS)
    processor = resource.getrlimit(resource.RLIMIT_CPU)
    handler = signal.signal(signal.SIGPROF, _interrupt)
    try:
        _limit(resource.RLIMIT_AS, _address_space() + (megabytes << 20), memory)
        _limit(resource.RLIMIT_CPU, int(time.process_time() + seconds) + 2, processor)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_CPU, processor)
        resource.setrlimit(resource.RLIMIT_AS, memory)
        signal.signal(signal.SIGPROF, handler)


def _interrupt(*_: object) -> None:
    raise OverBudgetError


def _limit(kind: int, value: int, present: tuple[int, int]) -> None:
    """Lower a soft limit, which can be raised again."""
    bounds = [value, *(each for each in present if each != resource.RLIM_INFINITY)]
    resource.setrlimit(kind, (min(bounds), present[1]))


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
