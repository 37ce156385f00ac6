"""A small process that forks a judge for each program, and a reader for sources.

It is started once by each process that judges programs (`vpo.sandbox.client`), and imports the standard library and
this package alone, so that a fork takes a millisecond or two. It sees no program and no test: the caller talks to the
judge over a connection of its own. Judges end with it, and it ends with its caller.
"""

import ctypes
import json
import marshal
import os
import pickle
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from vpo.sandbox import frames
from vpo.sandbox.budget import limited
from vpo.sandbox.isolation import ENVIRONMENT
from vpo.sandbox.judging import Job, Result, judge
from vpo.sandbox.sources import form
from vpo.sandbox.zygote import Zygote

DIE_WITH_PARENT, ADOPT_ORPHANS = 1, 36  # of linux/prctl.h
FORK_SECONDS = 5.0  # within which a fork that fails for lack of processes is tried again
MESSAGE_BYTES = 1 << 16  # of the message that asks for a judge: its kind, and the environment of programs
BATCH = 256  # results in one message
FORM_SECONDS, FORM_MB = 1.0, 512  # for a source: processor time, memory
KILLED_FIRST = b"800"  # to the kernel, when memory runs out


def serve(control: socket.socket, caller: int) -> None:
    """Fork a process for each connection that arrives, until the caller has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    _prctl(ADOPT_ORPHANS, 1)  # what a killed sandbox leaves is reaped here too
    with suppress(OSError), open("/proc/self/oom_score_adj", "wb") as file:
        file.write(KILLED_FIRST)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    zygote: Zygote | None = None
    while os.getppid() == caller:
        if not poll.poll(1000):
            continue
        message, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 1)
        if not message:
            return
        connection = socket.socket(fileno=descriptors[0])
        kind, environment = message[:1], marshal.loads(message[1:])
        if kind == frames.JOB and (zygote is None or not zygote.alive or environment != ENVIRONMENT):
            if zygote is not None:
                zygote.close()
            ENVIRONMENT.clear()
            ENVIRONMENT.update(environment)
            zygote = Zygote()
        if _fork() == 0:
            control.close()
            _work(WORK[kind], connection, zygote)
        connection.close()


def _fork() -> int:
    """Fork; -1 where no further process can be had for a while. The caller then sees its connection closed."""
    server, deadline, pause = os.getpid(), time.monotonic() + FORK_SECONDS, 0.01
    while True:
        try:
            child = os.fork()
            break
        except OSError:
            if time.monotonic() > deadline:
                return -1
            time.sleep(pause)
            pause *= 2
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _prctl(DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)
    return child


def _work(work: "Work", connection: socket.socket, zygote: Zygote | None) -> None:
    code = 1
    try:
        work(connection, zygote)
        code = 0
    except frames.ClosedError:
        pass
    finally:
        os._exit(code)


@dataclass
class _Report:
    """Sends results, several in one message: the caller is woken as seldom as can be."""

    connection: socket.socket
    results: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        self.results.append(result)
        if len(self.results) == BATCH or result.data:
            self.flush()

    def flush(self) -> None:
        rows = [(each.verdict.status, each.verdict.reason, each.verdict.detail, each.spent) for each in self.results]
        data = self.results[-1].data if self.results else b""
        kind = frames.OUTPUT if data else frames.RESULTS
        if rows:
            frames.send(self.connection, kind, json.dumps(rows).encode() + b"\n" + data)
        self.results.clear()

    def before_reading(self) -> None:
        self.flush()
        frames.send(self.connection, frames.READING)


def _judge(connection: socket.socket, zygote: Zygote | None) -> None:
    """Judge the one program that the caller sends."""
    assert zygote is not None
    job: Job = pickle.loads(frames.receive(connection)[1])
    report = _Report(connection)
    for result in judge(job, zygote, limited, report.before_reading):
        report.add(result)
    report.flush()


def _read_sources(connection: socket.socket, zygote: Zygote | None) -> None:
    """Send the form of each source. A source that takes too much ends the process, unless it is the first.

    A process that has read others may lack the memory that a new one has, and the form must not depend on that.
    """
    frames.send(connection, frames.FORM)
    fresh = True
    while True:
        source = frames.receive(connection)[1].decode("utf-8", "surrogatepass")
        try:
            with limited(FORM_SECONDS, FORM_MB):
                result = form(source)
        except BaseException:
            if not fresh:
                return
            result = None
        frames.send(connection, frames.FORM, (result or "").encode())
        fresh = False


Work = Callable[[socket.socket, Zygote | None], None]
WORK: dict[bytes, Work] = {frames.JOB: _judge, frames.SOURCE: _read_sources}


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
