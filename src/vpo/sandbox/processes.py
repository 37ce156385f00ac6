"""A program in its sandbox, as the judge sees it: started, given one input after the other, watched, ended."""

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from vpo.sandbox.clock import ProcessClock
from vpo.sandbox.inside.status import STATUS
from vpo.sandbox.isolation import CREDENTIALS, START_SECONDS, Isolation, Namespaces
from vpo.sandbox.verdicts import Limits, Program, Status, Verdict
from vpo.sandbox.zygote import Zygote

CLOSED_SECONDS = 1.0  # within which a process that closed its channel must have exited
END_SECONDS = 5.0  # within which a process that is killed has ended
LINGER_SECONDS = 0.02  # within which threads that have returned are gone
RESTART_SECONDS = 0.02  # that a start after the first is charged for: about what it costs
TICK = 0.02  # seconds between two looks at a running program
CHUNK = 1 << 16
LONGEST_NOTE = 4096  # bytes of a line on the channel that holds no value


class StartError(Exception):
    """A process that could not be started, or that was killed by something other than its program."""


class _EndedError(Exception):
    """The process exited in the middle of a test."""


class TimeLeft(NamedTuple):
    """Seconds that a test may take: charged (`vpo.sandbox.clock`), and by the wall clock."""

    charged: float
    wall: float


@dataclass
class SandboxedProcess:
    """A started program.

    Attributes:
        program: the program.
        limits: of it.
        isolation: the backend that confines it.
        zygote: the process that it is forked from.
        again: whether it was started before; then the start counts to its time.
        alive: whether it can run further tests.
        tests: that it has run.
        spent: seconds that it is charged for, of those tests.
    """

    program: Program
    limits: Limits
    isolation: Isolation
    zygote: Zygote
    again: bool = False
    alive: bool = True
    tests: int = 0
    spent: float = 0.0
    _lines: bytearray = field(default_factory=bytearray)

    def __enter__(self) -> "SandboxedProcess":
        """Start the process, and wait until it is about to run the program."""
        with ExitStack() as ours, ExitStack() as theirs:
            self.errors = _memory_file(b"", ours)
            self.namespaces = self._make_namespaces(ours)
            self.channel, channel = _pair(ours, theirs)
            self.status, status = _pair(ours, theirs)
            self.input = _memory_file(b"", ours)
            self.printed = _memory_file(b"", ours)
            request = _memory_file(self.isolation.request(self.program, self.limits), theirs)
            given = _reopened(self.input, os.O_RDONLY, theirs)
            if self.program.entry:
                printed = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
                theirs.callback(os.close, printed)
            else:  # appending, so that printing starts at the beginning where the judge has truncated the file
                printed = _reopened(self.printed, os.O_WRONLY | os.O_APPEND, theirs)
            self.channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            files = [request, printed, self.errors, channel, given, status]
            self.zygote.fork([*files, *(self.namespaces.files if self.namespaces else ())])
            ours.callback(self._end)
            theirs.close()
            self.poll = select.poll()
            self.poll.register(self.channel, select.POLLIN)
            self.poll.register(self.status, select.POLLIN)
            self._wait_until_ready()
            self.files = ours.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        """End the process, whatever it is doing."""
        self.files.close()

    def _make_namespaces(self, files: ExitStack) -> Namespaces | None:
        try:
            return self.isolation.namespaces(self.limits, self.errors, files)
        except OSError as error:
            raise StartError(self._start_problem(str(error))) from None

    def _end(self) -> None:
        """End the process, and wait until nothing of it is left."""
        with suppress(OSError):  # it has ended
            self.status.shutdown(socket.SHUT_WR)
            self.status.settimeout(END_SECONDS)
            self.status.recv(STATUS.size)

    def run(self, number: int, data: bytes, time_left: TimeLeft, most: Callable[[], int]) -> bytes | Verdict | None:
        """The answer to one input; the verdict where there is none; None where the process ended before this test.

        The answer is a line of JSON (`vpo.sandbox.inside.runner`), and after it what the program printed.

        Args:
            number: of the test.
            data: the input.
            time_left: that the test may take.
            most: the most bytes that the program may return or print; called only for more than `CHUNK`.
        """
        before = self.spent
        try:
            if not self._send(number, data):
                return None
            result = self._wait_for_line(time_left, most) or self._take_answer(most)
        except _EndedError:
            result = self._ended(most)
        self.spent = max(before, self.clock.charged - self.base)
        self.tests += 1
        if isinstance(result, Verdict):
            self.alive = False
        if self.alive:
            self._end_if_threads_linger()
        return result

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        data = b""
        messages: list[tuple[int, int, bytes]] = []
        while not data.endswith(b"\n") and len(data) < LONGEST_NOTE:
            ready = dict(self.poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
            if self.channel.fileno() not in ready:
                break
            received, messages, _, _ = self.channel.recvmsg(LONGEST_NOTE, socket.CMSG_SPACE(CREDENTIALS.size))
            if not received:
                break
            data += received
        if data != b'["ready"]\n' or not messages:
            raise StartError(self._start_problem("it did not start in time"))
        self.channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        pid, _, _ = CREDENTIALS.unpack(messages[0][2])
        self.clock = ProcessClock(pid)
        self.base = self.clock.charged - (RESTART_SECONDS if self.again else 0.0)

    def _send(self, number: int, data: bytes) -> bool:
        """Put an input where the program reads it, and say so; False where the process ended after the last test."""
        os.ftruncate(self.input, 0)
        os.ftruncate(self.printed, 0)
        written = 0
        while written < len(data):
            written += os.pwrite(self.input, data[written : written + (1 << 30)], written)
        self.clock.begin()
        try:
            self.channel.sendall(b"%d %d\n" % (number, len(data)))
        except OSError:
            if not self.tests:
                raise _EndedError from None
            self.alive = False
            return False
        return True

    def _wait_for_line(self, time_left: TimeLeft, most: Callable[[], int]) -> Verdict | None:
        """Read until a line is complete; the verdict where that takes too long or too much."""
        began = looked = time.monotonic()
        bound = 0
        if self.program.entry is None:
            most = _length_of_note
        while True:
            ready = dict(self.poll.poll(TICK * 1000))
            if self.channel.fileno() in ready:
                data = self._receive()
                self._lines += data
                if b"\n" in data:  # searching all of `_lines` would take quadratic time where bytes come singly
                    return self._overtime(time_left)
                if len(self._lines) > CHUNK:
                    bound = bound or max(CHUNK, most())
                    if len(self._lines) > bound:
                        return _too_much(bound)
            elif ready:
                raise _EndedError
            now = time.monotonic()
            if now - looked >= TICK:
                looked = now
                self.clock.sample()
                if self.clock.threads > self.limits.threads:
                    return _failed("forbidden", f"more than {self.limits.threads} threads")
                if now - began > time_left.wall:
                    return _failed("timeout", f"longer than {time_left.wall:.3g} s on the wall clock")
                if late := self._overtime(time_left):
                    return late

    def _overtime(self, time_left: TimeLeft) -> Verdict | None:
        if self.clock.charged - self.base - self.spent <= time_left.charged:
            return None
        return _failed("timeout", f"longer than {time_left.charged:.3g} s")

    def _receive(self) -> bytes:
        try:
            data = self.channel.recv(CHUNK, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""
        except OSError:
            raise _EndedError from None
        if not data:
            raise _EndedError
        return data

    def _take_answer(self, most: Callable[[], int]) -> bytes | Verdict:
        line, end, rest = bytes(self._lines).partition(b"\n")
        self._lines.clear()
        if rest:  # one line answers one input
            return _failed("forbidden", "it wrote to the channel")
        if self.program.entry:
            return line
        printed = self._printed(most)
        return printed if isinstance(printed, Verdict) else line + end + printed

    def _printed(self, most: Callable[[], int]) -> bytes | Verdict:
        size = os.fstat(self.printed).st_size
        if size > CHUNK and size > (bound := max(CHUNK, most())):
            return _too_much(bound)
        return os.pread(self.printed, size, 0)

    def _end_if_threads_linger(self) -> None:
        """A process with threads that outlive a test is ended: they would work on in the next test."""
        deadline = time.monotonic() + LINGER_SECONDS
        while len(self.clock.states()) > 1:
            if time.monotonic() > deadline:
                self.alive = False
                return
            time.sleep(0.001)

    def _ended(self, most: Callable[[], int]) -> bytes | Verdict:
        """The result of a test in which the process exited."""
        self.alive = False
        ended = self._how_it_ended(CLOSED_SECONDS)
        if ended is None:
            return _failed("forbidden", "it closed its channel")
        code, used = ended
        # A program that ignores SIGXCPU is killed a second later. That is its own fault, not a kill from outside.
        if code == -signal.SIGXCPU or (code == -signal.SIGKILL and used >= self.limits.processor_seconds):
            return _failed("timeout", "its processor time was used up")
        if code == -signal.SIGKILL:
            # In namespaces of its own it is the kernel that kills a process alone.
            if self.namespaces is None or self.namespaces.process.poll() is not None:
                raise StartError("the sandbox was killed from outside")
            return _failed("memory", "it was killed")
        if code == 0 and self.program.entry is None:
            printed = self._printed(most)
            return printed if isinstance(printed, Verdict) else b'["exited"]\n' + printed
        known = -code in set(signal.Signals)
        how = f"by {signal.Signals(-code).name}" if known else f"with exit code {code}"
        return _failed("exception", f"it ended {how} in the middle of the test")

    def _how_it_ended(self, seconds: float) -> tuple[int, float] | None:
        """Exit code (negative for a signal) and processor time; None where it still runs after `seconds`."""
        deadline = time.monotonic() + seconds
        data = b""
        self.status.settimeout(TICK)
        while not data:
            try:
                data = self.status.recv(STATUS.size)
            except TimeoutError:
                if time.monotonic() > deadline:
                    return None
                self.clock.sample()  # one that sleeps on without its channel is charged for that
            else:
                if not data:
                    raise StartError("the process that watches the sandbox was killed from outside")
        code, used = STATUS.unpack(data)
        self.clock.finish(used)
        return os.waitstatus_to_exitcode(code), used

    def _start_problem(self, otherwise: str) -> str:
        text = os.pread(self.errors, 2000, 0).decode("utf-8", "replace").strip()
        return " ".join(text.split())[-300:] or otherwise


def _failed(reason: str, detail: str) -> Verdict:
    return Verdict(Status.FAILED, reason, detail)


def _length_of_note() -> int:
    return LONGEST_NOTE


def _too_much(most: int) -> Verdict:
    return _failed("wrong answer", f"output of more than {most:,} bytes")


def _memory_file(data: bytes, files: ExitStack) -> int:
    """A descriptor of a file in memory that holds the data; `files` closes it."""
    descriptor: int = os.memfd_create("vpo", os.MFD_CLOEXEC)
    files.callback(os.close, descriptor)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _pair(ours: ExitStack, theirs: ExitStack) -> tuple[socket.socket, int]:
    """Two connected sockets: one of this process, and the descriptor of one for the sandbox."""
    here, there = socket.socketpair()
    ours.callback(here.close)
    theirs.callback(there.close)
    return here, there.fileno()


def _reopened(descriptor: int, flags: int, files: ExitStack) -> int:
    """Another descriptor of an open file, with other rights and a position of its own."""
    again = os.open(f"/proc/self/fd/{descriptor}", flags | os.O_CLOEXEC)
    files.callback(os.close, again)
    return again
