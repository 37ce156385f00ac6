"""Calls in threads, some at once, each within a time: one that hangs is left behind, and nothing waits for it."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

LONGEST_WAIT = 3600.0  # seconds at a time: to wait for a year at once is refused by the system


def run_within(
    calls: Sequence[Callable[[], None]], seconds: Sequence[float], *, concurrent: int
) -> list[threading.Thread | None]:
    """Run calls, and return for each the thread that it still hangs in, or None where it ended in time.

    Threads cannot be ended from outside. One that hangs goes on beside what follows, and ends with the process.

    Args:
        calls: what to run; they raise nothing.
        seconds: that each may take, from when it begins.
        concurrent: how many run at once, not counting those that hang.
    """
    ended: SimpleQueue[int] = SimpleQueue()
    waiting = deque(range(len(calls)))
    running: dict[int, tuple[threading.Thread, float]] = {}
    hanging: list[threading.Thread | None] = [None] * len(calls)

    def run(place: int) -> None:
        try:
            calls[place]()
        finally:
            ended.put(place)

    while waiting or running:
        while waiting and len(running) < concurrent:
            place = waiting.popleft()
            thread = threading.Thread(target=run, args=(place,), daemon=True)
            running[place] = (thread, time.monotonic() + seconds[place])
            thread.start()
        nearest = min(deadline for _, deadline in running.values())
        try:
            running.pop(ended.get(timeout=min(LONGEST_WAIT, max(0.0, nearest - time.monotonic()))), None)
        except Empty:
            for place, (thread, deadline) in list(running.items()):
                if deadline <= time.monotonic():
                    hanging[place] = thread
                    del running[place]
    return hanging
