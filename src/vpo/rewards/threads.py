"""Concurrent calls in threads, each with a time limit."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

MAX_WAIT = 3600.0  # seconds per wait: the system refuses to wait for years


def run_with_limits(
    calls: Sequence[Callable[[], None]], limits: Sequence[float], *, concurrent: int
) -> list[threading.Thread | None]:
    """Run calls; the result holds for each the thread that still hangs, or None where it ended in time.

    Python cannot end a thread from outside: one that hangs keeps running in the background, as a daemon.

    Args:
        calls: what to run; they raise nothing.
        limits: seconds per call, from its start.
        concurrent: calls in parallel, not counting those that hang.
    """
    ended: SimpleQueue[int] = SimpleQueue()
    waiting = deque(range(len(calls)))
    running: dict[int, tuple[threading.Thread, float]] = {}  # thread and deadline by the index of the call
    hanging: list[threading.Thread | None] = [None] * len(calls)

    def run(index: int) -> None:
        try:
            calls[index]()
        finally:
            ended.put(index)

    while waiting or running:
        while waiting and len(running) < concurrent:
            index = waiting.popleft()
            thread = threading.Thread(target=run, args=(index,), daemon=True)
            running[index] = (thread, time.monotonic() + limits[index])
            thread.start()
        deadline = min(deadline for _, deadline in running.values())
        try:
            running.pop(ended.get(timeout=min(MAX_WAIT, max(0.0, deadline - time.monotonic()))), None)
        except Empty:
            for index, (thread, deadline) in list(running.items()):
                if deadline <= time.monotonic():
                    hanging[index] = thread
                    del running[index]
    return hanging
