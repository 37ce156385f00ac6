"""The caller's side of the judges: starts their server, sends jobs, and collects results without a thread.

What arrives from a judge is small: a verdict has a status and short texts. A judge that dies while it reads an output
has failed that output's test; one that dies otherwise, or cannot be started, is an infrastructure error.
"""

import atexit
import hashlib
import json
import marshal
import os
import pickle
import select
import socket
import subprocess
import time
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any

from vpo.sandbox import frames
from vpo.sandbox.isolation import ENVIRONMENT, PYTHON
from vpo.sandbox.judging import ATTEMPTS, Job, Result
from vpo.sandbox.verdicts import Limits, Output, Status, Verdict

RESULT_BYTES = 4096  # of one result without an output
PATIENCE = 300.0  # seconds beyond the limits of a program, after which its judge hangs
SEND_SECONDS = 60.0  # within which a judge takes its job
SOURCE_SECONDS = 60.0  # within which the form of a source arrives, on a machine that is very busy
# The packages are registered without their __init__, which import numpy and more.
BOOTSTRAP = """
import os, socket, sys, types
for name, path in (("vpo", sys.argv[1]), ("vpo.sandbox", sys.argv[1] + "/sandbox")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from vpo.sandbox import server
server.serve(socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3]))
"""


class _Server:
    """The server of this process: started when it is first needed, and again where it has died."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.control: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def connect(self, kind: bytes) -> socket.socket:
        """A connection to a new judge or reader."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                message = kind + marshal.dumps(ENVIRONMENT)
                try:
                    socket.send_fds(self._running(), [message], [theirs.fileno()])
                except (BrokenPipeError, ConnectionResetError):
                    self.stop()
                    socket.send_fds(self._running(), [message], [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        return ours

    def stop(self) -> None:
        """End the server and all its judges."""
        with self.lock:
            if self.control is not None:
                self.control.close()
            if self.process is not None:
                self.process.kill()
                self.process.wait()
            self.control = self.process = None

    def forget(self) -> None:
        """In a forked process: leave the server to the process that started it."""
        if self.control is not None:
            self.control.close()
        if self.process is not None:
            self.process.returncode = 0  # it is no child of this process
        self.__init__()  # type: ignore[misc]  # the lock may be held by a thread that this process does not have

    def _running(self) -> socket.socket:
        with self.lock:
            if self.control is None:
                control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    package = str(Path(__file__).parent.parent)
                    command = [PYTHON, "-I", "-S", "-c", BOOTSTRAP, package, str(theirs.fileno()), str(os.getpid())]
                    self.process = subprocess.Popen(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        env={"LANG": "C.UTF-8", "PATH": os.environ.get("PATH", "/usr/bin")},
                        cwd="/",
                        pass_fds=(theirs.fileno(),),
                        start_new_session=True,  # Ctrl-C is for the caller
                    )
                self.control = control
            return self.control


_server = _Server()
atexit.register(_server.stop)
os.register_at_fork(after_in_child=_server.forget)


@dataclass
class _Exchange:
    """One job, with the judges that it takes."""

    job: Job
    results: list[Result] = field(default_factory=list)
    failures: int = 0  # judges that died, or that could not be started
    reading: bool = False  # whether the judge said that it begins to read an output
    deaths_reading: int = 0  # of the present output
    connection: socket.socket | None = None
    deadline: float = 0.0

    @property
    def done(self) -> bool:
        return len(self.results) == len(self.job.cases)

    def start(self) -> None:
        """Send what is left of the job to a new judge."""
        self.reading = False
        spent = self.results[-1].spent if self.results else 0.0
        job = replace(self.job, first=len(self.results), spent=spent, parsed=not self.failures and not self.results)
        self.deadline = time.monotonic() + Limits.wall_seconds(job.limits.seconds) + PATIENCE
        try:
            self.connection = _server.connect(frames.JOB)
            self.connection.settimeout(SEND_SECONDS)
            frames.send(self.connection, frames.JOB, pickle.dumps(job))
        except (OSError, frames.ClosedError) as error:
            self.fail(str(error))

    def receive(self) -> None:
        """Take in one message."""
        assert self.connection is not None
        left = len(self.job.cases) - len(self.results)
        outputs = 0 if self.job.compared else 8 * self.job.limits.output_bytes
        try:
            kind, content = frames.receive(self.connection, RESULT_BYTES * left + outputs)
        except frames.ClosedError as error:
            self.fail(str(error))
            return
        self.reading = kind == frames.READING
        if not self.reading:
            header, _, data = content.partition(b"\n")
            for status, reason, detail, spent in json.loads(header):
                self.results.append(Result(Verdict(Status(status), reason, detail), spent, data))
            self.deaths_reading = 0
        if self.done:
            self.close()

    def fail(self, problem: str) -> None:
        """Go on with a new judge; after some attempts, the test that is read has failed, or all are unknown."""
        self.close()
        if self.reading:
            self.deaths_reading += 1
            if self.deaths_reading == 2:  # one death may have had another cause
                spent = (self.results[-1].spent if self.results else 0.0) + self.job.limits.test_seconds
                detail = "its output takes too much time or memory to read"
                self.results.append(Result(Verdict(Status.FAILED, "memory", detail), spent))
                self.deaths_reading = 0
        else:
            self.failures += 1
        if self.failures == ATTEMPTS:
            unknown = Result(Verdict(Status.ERROR, detail=f"the judge could not be run: {problem}"))
            self.results += [unknown] * (len(self.job.cases) - len(self.results))
        if not self.done:
            self.start()

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def judge_all(jobs: Sequence[Job], slots: BoundedSemaphore) -> list[list[Result]]:
    """The results of each job, in order.

    Args:
        jobs: the programs.
        slots: how many are judged at a time; several threads may share them.
    """
    exchanges = [_Exchange(job) for job in jobs]
    waiting = deque(each for each in exchanges if not each.done)
    active: list[_Exchange] = []
    try:
        while waiting or active:
            while waiting and slots.acquire(blocking=not active):
                active.append(waiting.popleft())
                active[-1].start()
            _receive_some(active)
            for each in [each for each in active if each.done]:
                active.remove(each)
                slots.release()
    finally:
        for each in active:
            each.close()
            slots.release()
    return [each.results for each in exchanges]


def _receive_some(active: list[_Exchange]) -> None:
    poll = select.poll()
    by_descriptor = {each.connection.fileno(): each for each in active if each.connection is not None}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    if by_descriptor:
        for descriptor, _ in poll.poll(1000):
            by_descriptor[descriptor].receive()
    for each in active:
        if each.connection is not None and time.monotonic() > each.deadline:
            each.fail("it does not answer")


def verdicts(results: Sequence[Result]) -> list[Verdict]:
    """The verdict of each result, with the seconds of its test."""
    spent = [0.0, *(result.spent for result in results)]
    return [
        replace(result.verdict, seconds=max(0.0, after - before))
        for result, (before, after) in zip(results, pairwise(spent), strict=True)
    ]


def outputs(results: Sequence[Result]) -> list[Output]:
    """The output of each result of a job that is not compared."""
    return [Output(_value(each)) if each.verdict.passed else Output(failure=each.verdict) for each in results]


def _value(result: Result) -> Any:
    return marshal.loads(result.data)


class _Reader:
    """The one reader of sources of this process."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.connection: socket.socket | None = None

    def form(self, source: str) -> str | None:
        data = source.encode("utf-8", "surrogatepass")
        deaths, failures, problem = 0, 0, ""
        with self.lock:
            while deaths < 2 and failures < ATTEMPTS:
                try:
                    fresh = self.connection is None
                    connection = self.connection or self._connect()
                except (OSError, frames.ClosedError) as error:
                    failures += 1
                    problem = str(error)
                    continue
                try:
                    frames.send(connection, frames.SOURCE, data)
                    return frames.receive(connection, RESULT_BYTES)[1].decode() or None
                except frames.ClosedError:
                    self.forget()
                    deaths += fresh  # one that has read other sources may have less memory left than a new one
        if deaths == 2:
            return None
        warnings.warn(f"programs are told apart by their text, since none can be parsed: {problem}", stacklevel=3)
        return hashlib.sha256(data).hexdigest()

    def _connect(self) -> socket.socket:
        connection = _server.connect(frames.SOURCE)
        connection.settimeout(SOURCE_SECONDS)
        try:
            frames.receive(connection, RESULT_BYTES)  # it has started
        except frames.ClosedError:
            connection.close()
            raise
        self.connection = connection
        return connection

    def forget(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def forget_lock(self) -> None:
        """In a forked process: the lock may be held by a thread that this process does not have."""
        self.forget()
        self.lock = Lock()


_reader = _Reader()
os.register_at_fork(after_in_child=_reader.forget_lock)


def program_form(source: str) -> str | None:
    """The same hash for programs that differ in layout, comments and docstrings only; None for what is not Python.

    It is None as well for a source that takes more than a second of processor time or half a gigabyte to parse.
    """
    return _reader.form(source)
