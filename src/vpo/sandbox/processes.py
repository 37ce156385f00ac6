"""Runs a program on its inputs: one process for all of them, and a new one after each test that ended it."""

import json
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from vpo.sandbox.inside.values import UnpackError, unpack
from vpo.sandbox.isolation import ENVIRONMENT, Isolation
from vpo.sandbox.seccomp import filter_program, supported
from vpo.sandbox.verdicts import Limits, Output, Program, Status, Verdict, printable

ATTEMPTS = 3  # of a start that fails, or of a process that is killed from outside
START_SECONDS = 30.0  # a machine may be busy
END_SECONDS = 1.0  # within which a process that closed its channel must have exited
CHUNK = 1 << 16


class StartError(Exception):
    """A process that could not be started, or that was killed by something other than its program."""


class _EndedError(Exception):
    """The process exited in the middle of a test."""


class _TooMuchError(Exception):
    """The program returned or printed more than its limit."""


def run_program(program: Program, inputs: Sequence[bytes | str], limits: Limits, isolation: Isolation) -> list[Output]:
    """One output for each input. The program is started again after a test that it did not survive."""
    outputs: list[Output] = []
    left = limits.seconds
    failures = 0
    while len(outputs) < len(inputs):
        if left <= 0:
            verdict = Verdict(Status.NOT_RUN, detail=f"the {limits.seconds:g} s of the program were used up")
            return outputs + [Output(failure=verdict)] * (len(inputs) - len(outputs))
        try:
            with SandboxedProcess(program, len(outputs), inputs[len(outputs) :], limits, isolation) as process:
                try:
                    for output in process.outputs(left):
                        outputs.append(output)  # one by one: the process may be killed before the next
                finally:
                    left -= process.spent
        except (StartError, OSError) as error:
            failures += 1
            if failures == ATTEMPTS:
                verdict = Verdict(Status.ERROR, detail=str(error))
                return outputs + [Output(failure=verdict)] * (len(inputs) - len(outputs))
    return outputs


@dataclass
class SandboxedProcess:
    """A started program, seen from outside the sandbox."""

    program: Program
    first: int  # number of the first input
    inputs: Sequence[bytes | str]
    limits: Limits
    isolation: Isolation
    spent: float = 0.0  # seconds, of the tests so far
    alive: bool = True  # whether it can run further tests
    lines: bytearray = field(default_factory=bytearray)
    read_to: int = 0  # how much of what it printed belongs to the tests before

    def __enter__(self) -> "SandboxedProcess":
        """Start the process."""
        with ExitStack() as ours, ExitStack() as theirs:
            self.channel, writing = os.pipe2(os.O_CLOEXEC)
            ours.callback(os.close, self.channel)
            theirs.callback(os.close, writing)
            request = _memory_file(self.isolation.request(self.program, self.first, self.inputs, self.limits), theirs)
            seccomp = _memory_file(filter_program(before_start=True) if supported() else b"", theirs)
            self.printed = _memory_file(b"", ours)
            self.process = subprocess.Popen(
                self.isolation.command(writing, seccomp, self.limits),
                stdin=request,
                stdout=subprocess.DEVNULL if self.program.entry else self.printed,
                stderr=subprocess.PIPE,
                env=ENVIRONMENT,
                cwd="/",
                pass_fds=(writing, seccomp),
                start_new_session=True,
            )
            self.files = ours.pop_all()
        self.poll = select.poll()
        self.poll.register(self.channel, select.POLLIN)
        with suppress(OSError):  # a kernel before 5.3, or too many open files
            # If bwrap is killed while it starts, the process that it began keeps the channel open.
            ending = os.pidfd_open(self.process.pid)
            self.files.callback(os.close, ending)
            self.poll.register(ending, select.POLLIN)
        return self

    def __exit__(self, *error: object) -> None:
        """End the process, whatever it is doing."""
        self.isolation.end(self.process)
        self.files.close()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def outputs(self, left: float) -> Iterator[Output]:
        """Yield the output for each input, until all are done or the process has ended.

        Args:
            left: seconds that all of it may take.
        """
        try:
            started = self._wait_for_line(START_SECONDS) and self._take_line() == b'["ready"]'
        except _EndedError:
            started = False
        if not started:
            raise StartError(self._start_problem())
        began = time.monotonic()
        for number in range(self.first, self.first + len(self.inputs)):
            output = self._output(number, left - (time.monotonic() - began))
            self.spent = time.monotonic() - began
            yield output
            if not self.alive:
                return

    def _output(self, number: int, left: float) -> Output:
        seconds = max(0.0, min(self.limits.test_seconds, left))
        try:
            try:
                in_time = self._wait_for_line(seconds)
            except _EndedError:
                return self._ended()
            return self._read_result(number) if in_time else _failed("timeout", f"longer than {seconds:.3g} s")
        except _TooMuchError:
            self.alive = False
            return _failed("wrong answer", f"output of more than {self.limits.output_bytes:,} bytes")

    def _wait_for_line(self, seconds: float) -> bool:
        """Read until a line is complete; False where that takes longer than `seconds`."""
        deadline = time.monotonic() + seconds
        complete = b"\n" in self.lines
        while not complete:
            wait = deadline - time.monotonic()
            if wait <= 0 or not (ready := self.poll.poll(wait * 1000)):
                self.alive = False
                return False
            data = os.read(self.channel, CHUNK) if self.channel in dict(ready) else b""
            if not data:
                raise _EndedError
            self.lines += data
            complete = b"\n" in data  # searching all of `lines` would take quadratic time where bytes come singly
            if len(self.lines) > self.limits.output_bytes + CHUNK:
                raise _TooMuchError
        return True

    def _take_line(self) -> bytes:
        line, _, rest = bytes(self.lines).partition(b"\n")
        self.lines = bytearray(rest)
        return line

    def _read_result(self, number: int) -> Output:
        """The output that a line holds. The line may be forged by the program, so it counts as an output at most."""
        line = self._take_line()
        try:
            test, kind, content = json.loads(line)
            if test != number or not isinstance(kind, str):
                raise ValueError
            if kind == "returned":
                return Output(unpack(content) if self.program.entry else self._text(content))
            if not isinstance(content, str):
                raise ValueError
        except (ValueError, TypeError, RecursionError, UnpackError):
            self.alive = False
            return _failed("forbidden", "its line on the channel is not a result")
        return _failed(kind if kind in ("memory", "forbidden") else "exception", printable(content))

    def _text(self, end: Any) -> str:
        """What was printed since the test before."""
        if not isinstance(end, int) or end < self.read_to:
            raise ValueError
        length = end - self.read_to
        if length > self.limits.output_bytes:
            raise _TooMuchError
        data = os.pread(self.printed, length, self.read_to)
        self.read_to = end
        return data.decode("utf-8", "replace")

    def _ended(self) -> Output:
        """The output of a test in which the process exited."""
        self.alive = False
        used = self._wait_for_exit(END_SECONDS)
        if used is None:
            return _failed("forbidden", "it closed its channel")
        code = self.process.returncode
        number = -code if code < 0 else code - 128
        # A program that ignores SIGXCPU is killed a second later. That is its own fault, not a kill from outside.
        used_up = used.ru_utime + used.ru_stime >= self.limits.processor_seconds
        if number == signal.SIGXCPU or (number == signal.SIGKILL and used_up):
            return _failed("timeout", "its processor time was used up")
        if self.isolation.killed_from_outside(code):
            raise StartError("the sandbox was killed from outside")
        if code == 0 and self.program.entry is None:
            return self._all_printed()
        if number == signal.SIGKILL:
            return _failed("memory", "it was killed")
        known = number in set(signal.Signals)
        how = f"by {signal.Signals(number).name}" if known else f"with exit code {code}"
        return _failed("exception", f"it ended {how} in the middle of the test")

    def _all_printed(self) -> Output:
        try:
            return Output(self._text(os.fstat(self.printed).st_size))
        except ValueError:
            return _failed("forbidden", "it truncated what it had printed")

    def _wait_for_exit(self, seconds: float) -> resource.struct_rusage | None:
        """The resources that the process used; None where it still runs after `seconds`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended, status, used = os.wait4(self.process.pid, os.WNOHANG)
            if ended:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                return used
            time.sleep(0.002)
        return None

    def _start_problem(self) -> str:
        self.isolation.end(self.process)
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)  # nothing is left that would write to it, or close it
        text = (self.process.stderr.read(2000) or b"").decode("utf-8", "replace").strip()
        return " ".join(text.split())[-300:] or "it did not start in time"


def _failed(reason: str, detail: str) -> Output:
    return Output(failure=Verdict(Status.FAILED, reason, detail))


def _memory_file(data: bytes, files: ExitStack) -> int:
    """A descriptor of a file in memory that holds the data; `files` closes it."""
    descriptor: int = os.memfd_create("vpo", os.MFD_CLOEXEC)
    files.callback(os.close, descriptor)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
