"""Runs a program on its inputs: one start for all of them, and another after each that ends it."""

import json
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from vpo.sandbox.inside.values import UnpackError, unpack
from vpo.sandbox.seccomp import filter_program, supported
from vpo.sandbox.verdicts import Limits, Outcome, Output, Program, Verdict, shown
from vpo.sandbox.walls import ENVIRONMENT, Wall

ATTEMPTS = 3  # of a start that fails, or that somebody kills
START_SECONDS = 30.0  # a machine may be busy
END_SECONDS = 1.0  # within which what closed its channel is over
CHUNK = 1 << 16


class StartError(Exception):
    """A candidate that could not be started, or was killed by nothing of its own doing."""


class _EndedError(Exception):
    """A candidate that is over, in the middle of a test."""


class _TooMuchError(Exception):
    """A candidate that returns or prints more than it may."""


def run_candidate(program: Program, given: Sequence[bytes | str], limits: Limits, wall: Wall) -> list[Output]:
    """Return what a program makes of each input. It is started anew after a test that it did not survive."""
    outputs: list[Output] = []
    left = limits.seconds
    failures = 0
    while len(outputs) < len(given):
        if left <= 0:
            verdict = Verdict(Outcome.NOT_RUN, detail=f"the {limits.seconds:g} s of the program were used up")
            return outputs + [Output(failure=verdict)] * (len(given) - len(outputs))
        try:
            with Candidate(program, len(outputs), given[len(outputs) :], limits, wall) as candidate:
                try:
                    candidate.run(outputs, len(given), left)
                finally:
                    left -= candidate.spent
        except (StartError, OSError) as error:
            failures += 1
            if failures == ATTEMPTS:
                verdict = Verdict(Outcome.ERROR, detail=str(error))
                return outputs + [Output(failure=verdict)] * (len(given) - len(outputs))
    return outputs


@dataclass
class Candidate:
    """One started program, from the judge's side."""

    program: Program
    first: int
    given: Sequence[bytes | str]
    limits: Limits
    wall: Wall
    spent: float = 0.0
    going_on: bool = True  # whether it can make more of its inputs
    lines: bytearray = field(default_factory=bytearray)
    read_to: int = 0  # how much of what it printed belongs to the tests before

    def __enter__(self) -> "Candidate":
        """Start it."""
        with ExitStack() as ours, ExitStack() as theirs:
            self.channel, writing = os.pipe2(os.O_CLOEXEC)
            ours.callback(os.close, self.channel)
            theirs.callback(os.close, writing)
            request = _memory(self.wall.request(self.program, self.first, self.given, self.limits), theirs)
            filtering = _memory(filter_program(before_start=True) if supported() else b"", theirs)
            self.printed = _memory(b"", ours)
            self.process = subprocess.Popen(
                self.wall.command(writing, filtering, self.limits),
                stdin=request,
                stdout=subprocess.DEVNULL if self.program.entry else self.printed,
                stderr=subprocess.PIPE,
                env=ENVIRONMENT,
                cwd="/",
                pass_fds=(writing, filtering),
                start_new_session=True,
            )
            self.files = ours.pop_all()
        self.poll = select.poll()
        self.poll.register(self.channel, select.POLLIN)
        with suppress(OSError):  # of a kernel before 5.3, or of too many open files
            # Were bwrap killed while it starts, what it began would keep the channel open.
            ending = os.pidfd_open(self.process.pid)
            self.files.callback(os.close, ending)
            self.poll.register(ending, select.POLLIN)
        return self

    def __exit__(self, *error: object) -> None:
        """End it, whatever it is at."""
        self.wall.end(self.process)
        self.files.close()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def run(self, outputs: list[Output], total: int, left: float) -> None:
        """Take in what it makes of each input, until it has made all or is over."""
        try:
            started = self._until_line(START_SECONDS) and self._take_line() == b'["ready"]'
        except _EndedError:
            started = False
        if not started:
            raise StartError(self._why_not_started())
        began = time.monotonic()
        while len(outputs) < total:
            remaining = left - (time.monotonic() - began)
            try:
                in_time = self._until_line(max(0.0, min(self.limits.test_seconds, remaining)))
                found = self._result(len(outputs)) if in_time else _timeout(self.limits, remaining)
            except _EndedError:
                found = self._ended()
            except _TooMuchError:
                self.going_on = False
                found = _failed("wrong answer", f"more than {self.limits.output_bytes:,} bytes came out")
            self.spent = time.monotonic() - began
            outputs.append(found)
            if not self.going_on:
                return

    def _until_line(self, seconds: float) -> bool:
        """Read until a line is there, and return whether it came in time."""
        deadline = time.monotonic() + seconds
        found = b"\n" in self.lines
        while not found:
            wait = deadline - time.monotonic()
            if wait <= 0 or not (ready := self.poll.poll(wait * 1000)):
                self.going_on = False
                return False
            data = os.read(self.channel, CHUNK) if self.channel in dict(ready) else b""
            if not data:
                raise _EndedError
            self.lines += data
            found = b"\n" in data  # to search all lines would take the square of time where bytes come one by one
            if len(self.lines) > self.limits.output_bytes + CHUNK:
                raise _TooMuchError
        return True

    def _take_line(self) -> bytes:
        line, _, rest = bytes(self.lines).partition(b"\n")
        self.lines = bytearray(rest)
        return line

    def _result(self, number: int) -> Output:
        """Return what a line says of a test. It is the candidate's word, and good for nothing but an output."""
        line = self._take_line()
        try:
            said, what, content = json.loads(line)
            if said != number or not isinstance(what, str):
                raise ValueError
            if what == "returned":
                return Output(unpack(content) if self.program.entry else self._text(content))
            if not isinstance(content, str):
                raise ValueError
        except (ValueError, TypeError, RecursionError, UnpackError):
            self.going_on = False
            return _failed("forbidden", "what it wrote is not a result")
        return _failed(what if what in ("memory", "forbidden") else "exception", shown(content))

    def _text(self, end: Any) -> str:
        """Return what was printed since the test before."""
        if not isinstance(end, int) or end < self.read_to:
            raise ValueError
        length = end - self.read_to
        if length > self.limits.output_bytes:
            raise _TooMuchError
        data = os.pread(self.printed, length, self.read_to)
        self.read_to = end
        return data.decode("utf-8", "replace")

    def _ended(self) -> Output:
        """Return what a test is worth in which the candidate ended."""
        self.going_on = False
        used = self._wait(END_SECONDS)
        if used is None:
            return _failed("forbidden", "it closed its channel")
        code = self.process.returncode
        number = -code if code < 0 else code - 128
        # What ignores SIGXCPU is killed a second later: its own doing, which must not look like somebody else's.
        used_up = used.ru_utime + used.ru_stime >= self.limits.processor_seconds
        if number == signal.SIGXCPU or (number == signal.SIGKILL and used_up):
            return _failed("timeout", "its processor time was used up")
        if self.wall.killed_from_outside(code):
            raise StartError("the sandbox was killed from outside")
        if code == 0 and self.program.entry is None:
            return self._printed_to_the_end()
        if number == signal.SIGKILL:
            return _failed("memory", "it was killed")
        known = number in set(signal.Signals)
        how = f"by {signal.Signals(number).name}" if known else f"with exit code {code}"
        return _failed("exception", f"it ended {how} in the middle of the test")

    def _printed_to_the_end(self) -> Output:
        try:
            return Output(self._text(os.fstat(self.printed).st_size))
        except ValueError:
            return _failed("forbidden", "it took back what it had printed")

    def _wait(self, seconds: float) -> resource.struct_rusage | None:
        """Return what it used once it is over, nothing where it goes on."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended, status, used = os.wait4(self.process.pid, os.WNOHANG)
            if ended:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                return used
            time.sleep(0.002)
        return None

    def _why_not_started(self) -> str:
        self.wall.end(self.process)
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)  # nobody is left who would write, or close it
        text = (self.process.stderr.read(2000) or b"").decode("utf-8", "replace").strip()
        return " ".join(text.split())[-300:] or "it did not start in time"


def _timeout(limits: Limits, remaining: float) -> Output:
    seconds = min(limits.test_seconds, max(0.0, remaining))
    return _failed("timeout", f"longer than {seconds:.3g} s")


def _failed(reason: str, detail: str) -> Output:
    return Output(failure=Verdict(Outcome.FAILED, reason, detail))


def _memory(data: bytes, files: ExitStack) -> int:
    """Return a file descriptor, closed with others, from which data can be read that never was on a disk."""
    number: int = os.memfd_create("vpo", os.MFD_CLOEXEC)
    files.callback(os.close, number)
    os.write(number, data)
    os.lseek(number, 0, os.SEEK_SET)
    return number
