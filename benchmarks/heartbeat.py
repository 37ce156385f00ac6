"""What code does to the process that runs it: the longest standstill of its threads, and its largest growth."""

import threading
import time
from pathlib import Path
from types import TracebackType

BEAT = 0.001  # seconds between two beats


class Heartbeat:
    """A thread that beats while a block runs.

    A standstill is the processor time that the process used between two beats: code that holds the interpreter's lock
    stops the beat, while a busy machine, which delays it too, adds none. The growth is the peak of resident memory
    that the kernel keeps, so that no moment is missed.

    Attributes:
        standstill: the longest, in seconds.
        growth: of resident memory, at its peak, in megabytes.
    """

    def __enter__(self) -> "Heartbeat":
        """Begin at the present size of the process."""
        Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is resident
        self._before = _status("VmRSS")
        self.standstill = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take the figures."""
        self._stop.set()
        self._thread.join()
        self.growth = _status("VmHWM") - self._before

    def _beat(self) -> None:
        while not self._stop.is_set():
            used, own = time.process_time(), time.thread_time()
            time.sleep(BEAT)
            others = (time.process_time() - used) - (time.thread_time() - own)
            self.standstill = max(self.standstill, others)


def _status(name: str) -> float:
    """A size of this process in megabytes, as the kernel names it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError(f"/proc/self/status has no {name}")
