"""What a process has used, read from outside: processor time, time asleep, threads."""

import os
import time
from contextlib import suppress

PROCESS_CLOCK = 2  # CPUCLOCK_SCHED of the kernel's clock ids for the processor time of a process
RUNNABLE = "RD"  # states of a thread that runs, waits for a core, or waits for the disk


class ProcessClock:
    """The time that a process is charged for: processor time of all its threads, and time in which all of them sleep.

    A process that waits for a core is not charged, so a loaded machine makes no difference; one that sleeps is, since
    it holds a worker. Sleep is found by sampling, so it is known to a tick or so.
    """

    def __init__(self, pid: int) -> None:
        """Begin at zero, with what the process has used so far."""
        self.pid = pid
        self.asleep = 0.0
        self.threads = 1
        self._processor = 0.0
        self._last = time.monotonic(), self.processor()

    def processor(self) -> float:
        """Seconds of processor time so far; of a process that has ended, the last value known."""
        with suppress(OSError):
            self._processor = time.clock_gettime((~self.pid << 3) | PROCESS_CLOCK)
        return self._processor

    @property
    def charged(self) -> float:
        """Seconds of processor time and of sleep, since the process began."""
        return self.processor() + self.asleep

    def sample(self) -> None:
        """Look at the threads: the time since the last look counts as sleep where none of them can run."""
        now, processor = time.monotonic(), self.processor()
        states = self.states()
        if states and not any(state in RUNNABLE for state in states):
            before, used = self._last
            self.asleep += max(0.0, now - before - (processor - used))
        self.threads = len(states)
        self._last = now, processor

    def finish(self, processor: float) -> None:
        """Take in what a process that has ended used in all."""
        self._processor = max(self._processor, processor)

    def begin(self) -> None:
        """Begin a test: what was slept since the last look is not charged."""
        self._last = time.monotonic(), self.processor()

    def states(self) -> str:
        """The state of each thread, one letter each; empty for a process that has ended."""
        states = ""
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                with suppress(OSError), open(f"/proc/{self.pid}/task/{thread}/stat", "rb") as file:
                    states += chr(file.read(512).rpartition(b") ")[2][0])
        return states
