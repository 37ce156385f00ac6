"""Temporary signal handlers."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def handling(numbers: Sequence[signal.Signals], handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Handle some signals within the block. Only the main thread can; in others this does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler_before in previous.items():
            signal.signal(number, handler_before)
