"""Runs a program on its inputs: one start for all of them, and another after each that ends it."""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vpo.sandbox.inside.values import UnpackError, unpack
from vpo.sandbox.seccomp import filter_program, supported
from vpo.sandbox.verdicts import Limits, Outcome, Output, Program, Verdict
from vpo.sandbox.walls import ENVIRONMENT, Wall

ATTEMPTS = 3  # of a start that fails, or that somebody kills
START_SECONDS = 30.0  # a machine may be busy
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
        reading, writing = os.pipe2(os.O_CLOEXEC)
        request = _memory(self.wall.request(self.program, self.first, self.given, self.limits))
        filtering = _memory(filter_program(before_start=True) if supported() else b"")
        self.channel, self.printed = reading, _memory(b"")
        try:
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
        except BaseException:
            os.close(self.channel)
            os.close(self.printed)
            raise
        finally:
            for number in (writing, request, filtering):
                os.close(number)
        self.poll = select.poll()
        self.poll.register(self.channel, select.POLLIN)
        return self

    def __exit__(self, *error: object) -> None:
        """End it, whatever it is at."""
        self.process.kill()
        self.process.wait()
        os.close(self.channel)
        os.close(self.printed)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def run(self, outputs: list[Output], total: int, left: float) -> None:
        """Take in what it makes of each input, until it has made all or is over."""
        if not self._until_line(START_SECONDS) or self._take_line() != b'["ready"]':
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
        while b"\n" not in self.lines:
            wait = deadline - time.monotonic()
            if wait <= 0 or not self.poll.poll(wait * 1000):
                self.going_on = False
                return False
            data = os.read(self.channel, CHUNK)
            if not data:
                raise _EndedError
            self.lines += data
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
                return Output(unpack(content) if self.program.entry else self._text(int(content)))
        except (ValueError, TypeError, RecursionError, UnpackError):
            self.going_on = False
            return _failed("forbidden", "what it wrote is not a result")
        return _failed(what if what in ("memory", "forbidden") else "exception", str(content)[:200])

    def _text(self, end: int) -> str:
        """Return what was printed since the test before."""
        length = end - self.read_to
        if length > self.limits.output_bytes:
            raise _TooMuchError
        data = os.pread(self.printed, max(0, length), self.read_to)
        self.read_to = end
        return data.decode("utf-8", "replace")

    def _ended(self) -> Output:
        """Return what a test is worth in which the candidate ended."""
        self.going_on = False
        try:
            code = self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return _failed("forbidden", "it closed its channel")
        if self.wall.killed_from_outside(code):
            raise StartError("the sandbox was killed from outside")
        if code == 0 and self.program.entry is None:
            return Output(self._text(os.fstat(self.printed).st_size))
        number = -code if code < 0 else code - 128
        if number == signal.SIGXCPU:
            return _failed("timeout", "its processor time was used up")
        if number == signal.SIGKILL:
            return _failed("memory", "it was killed")
        known = number in set(signal.Signals)
        how = f"by {signal.Signals(number).name}" if known else f"with exit code {code}"
        return _failed("exception", f"it ended {how} in the middle of the test")

    def _why_not_started(self) -> str:
        self.process.kill()
        assert self.process.stderr is not None
        text = self.process.stderr.read(2000).decode("utf-8", "replace").strip()
        return " ".join(text.split())[-300:] or "it did not start in time"


def _timeout(limits: Limits, remaining: float) -> Output:
    seconds = min(limits.test_seconds, max(0.0, remaining))
    return _failed("timeout", f"longer than {seconds:.3g} s")


def _failed(reason: str, detail: str) -> Output:
    return Output(failure=Verdict(Outcome.FAILED, reason, detail))


def _memory(data: bytes) -> int:
    """Return a file descriptor from which data can be read, which never was on a disk."""
    number: Any = os.memfd_create("vpo", os.MFD_CLOEXEC)
    os.write(number, data)
    os.lseek(number, 0, os.SEEK_SET)
    return int(number)
