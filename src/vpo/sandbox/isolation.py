"""Isolation backends: bubblewrap, Landlock, or none. Each says how to start a process in it and what it lacks here."""

import marshal
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from typing import Any, ClassVar

from vpo.sandbox import inside
from vpo.sandbox.inside import landlock
from vpo.sandbox.seccomp import filter_program, supported
from vpo.sandbox.verdicts import Limits, Program

INSIDE = Path(inside.__file__).parent
PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
# Without site-packages; the hash seed is fixed, since programs print sets.
OPTIONS = ("-S", "-s", "-B", "-X", "utf8")
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "PATH": "/usr/bin", "HOME": "/tmp", "TMPDIR": "/tmp"}
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
NOBODY = "65534"
PRINTED_BEYOND = 1 << 20  # bytes that a test may print beyond its limit, so that it is seen to exceed it
START_SECONDS = 30.0  # for bwrap to start: a machine may be busy
END_SECONDS = 30.0  # for bwrap to exit after all that is inside it, on a busy machine
CREDENTIALS = struct.Struct("3i")  # process, user, group: what the kernel says of a sender
NAMESPACES = ("user", "cgroup", "ipc", "uts", "net", "pid", "mnt")  # in /proc/PID/ns; the first allows the others


@dataclass(frozen=True)
class Namespaces:
    """Namespaces that a sandboxed process enters.

    Attributes:
        files: their descriptors, in the order in which they are entered.
        process: what keeps them.
    """

    files: list[int]
    process: "subprocess.Popen[bytes]"


class Isolation(ABC):
    """One way to isolate a process from the machine."""

    name: str
    install: str  # what to do where it is missing
    more_limits: ClassVar[dict[str, int]] = {}  # of its processes, by the names in `resource`

    @abstractmethod
    def missing(self) -> str:
        """What this machine lacks for it; empty where it may work."""

    def namespaces(self, limits: Limits, errors: int, files: ExitStack) -> Namespaces | None:
        """Make the namespaces of one program, if any.

        Args:
            limits: of the program.
            errors: the file that errors are written to.
            files: ends them.
        """
        return None

    def confinement(self) -> Any:
        """How the process confines itself before it runs the program: arguments of `landlock.confine`, or None."""
        return None

    def request(self, program: Program, limits: Limits) -> bytes:
        """What is sent to a sandboxed process at its start: the program and its limits."""
        mega = 1 << 20
        rlimits = {
            "RLIMIT_AS": limits.memory_mb * mega,
            "RLIMIT_CPU": limits.processor_seconds,
            "RLIMIT_FSIZE": max(limits.disk_mb * mega, limits.output_bytes + PRINTED_BEYOND),
            "RLIMIT_NOFILE": 64,
            "RLIMIT_CORE": 0,
            **self.more_limits,
        }
        return marshal.dumps((program.source, program.entry, rlimits, self.confinement()))


class Bubblewrap(Isolation):
    """Its own namespaces for everything, a read-only system, a small tmpfs, and the seccomp filter."""

    name = "bubblewrap"
    install = "install bubblewrap (apt-get install bubblewrap, or your system's package of that name)"
    more_limits: ClassVar[dict[str, int]] = {"RLIMIT_NPROC": 64}

    def missing(self) -> str:
        """The program bwrap, or the numbers of this machine's system calls."""
        if shutil.which("bwrap") is None:
            return "bwrap is not installed"
        return "" if supported() else "the system calls of this kind of machine are not known"

    def namespaces(self, limits: Limits, errors: int, files: ExitStack) -> Namespaces | None:
        """Let bwrap make them, for a process that does nothing; that of the program joins it."""
        ours, theirs = socket.socketpair()
        files.callback(ours.close)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with theirs:
            process = subprocess.Popen(
                self.command(limits),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=errors,
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        files.callback(end_namespaces, process)
        pid = _echo(ours, process)
        entered = []
        for name in NAMESPACES:
            if not os.path.samefile(f"/proc/{pid}/ns/{name}", f"/proc/self/ns/{name}"):
                entered.append(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC))
                files.callback(os.close, entered[-1])
        return Namespaces(entered, process)

    def confinement(self) -> Any:
        """The seccomp filter: files are a matter of the namespaces."""
        return None, filter_program(own_limits=True)

    def command(self, limits: Limits) -> list[str]:
        """bwrap with everything mounted that the program may see."""
        cat = shutil.which("cat")
        assert cat is not None
        devices = [word for path in DEVICES for word in ("--dev-bind", path, path)]
        return [
            *bubblewrapped(ENVIRONMENT),
            *devices,
            *("--ro-bind", os.path.realpath(cat), "/cat"),
            *("--size", str(limits.disk_mb << 20), "--tmpfs", "/tmp"),
            *("--chdir", "/tmp", "--remount-ro", "/", "/cat"),
        ]


def bubblewrapped(environment: Mapping[str, str]) -> list[str]:
    """bwrap with namespaces of its own, no rights, and the files of the system and of Python, read-only."""
    bwrap = shutil.which("bwrap")
    assert bwrap is not None
    words = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    words += ["--uid", NOBODY, "--gid", NOBODY, "--hostname", "sandbox"]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    for path in SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        else:
            words += ["--ro-bind-try", path, path]
    if not sys.base_prefix.startswith("/usr/"):
        words += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    return words


def end_namespaces(process: "subprocess.Popen[bytes]") -> None:
    """End bwrap and all that is in its namespaces, and wait until nothing of it is left.

    The first process inside is killed, with which all others end, and bwrap reaps it. If bwrap was killed while it
    started, its process group also holds the process that it had begun and not yet tied to its own life.
    """
    if process.poll() is None:
        with suppress(OSError, subprocess.TimeoutExpired):
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for child in children:
                os.kill(int(child), SIGKILL)
            if children:
                process.wait(timeout=END_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, SIGKILL)
    process.wait()


def _echo(connection: socket.socket, process: "subprocess.Popen[bytes]") -> int:
    """Wait until the process inside answers, when everything is mounted; its id."""
    ending = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        poll.register(ending, select.POLLIN)  # if bwrap is killed, what it has begun may keep the connection open
        with suppress(BrokenPipeError):
            connection.sendall(b"x")
        if connection.fileno() not in dict(poll.poll(START_SECONDS * 1000)):
            raise OSError("bwrap did not start")
        data, messages, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(CREDENTIALS.size))
    finally:
        os.close(ending)
    if not data:
        raise OSError("bwrap ended while it started")
    return int(CREDENTIALS.unpack(messages[0][2])[0])


class Unisolated(Isolation):
    """A separate process with limits, and nothing more."""

    name = "none"
    install = ""

    def missing(self) -> str:
        """Nothing: it works everywhere."""
        return ""


class Landlock(Unisolated):
    """No files but the system's, nothing to write to, and the seccomp filter; namespaces are the machine's."""

    name = "landlock"
    install = "a Linux kernel of 5.13 or later with Landlock and seccomp is needed"

    def missing(self) -> str:
        """Landlock in the kernel, or the numbers of this machine's system calls."""
        if not supported():
            return "the system calls of this kind of machine are not known"
        return "" if landlock.version() else "the kernel has no Landlock"

    def confinement(self) -> Any:
        """The folders that may be read, the devices, and the seccomp filter."""
        readable = [path for path in (*SYSTEM, sys.base_prefix) if os.path.exists(path)]
        return (readable, list(DEVICES)), filter_program(own_limits=False)


ISOLATIONS: dict[str, Isolation] = {each.name: each for each in (Bubblewrap(), Landlock(), Unisolated())}
SAFE = ("bubblewrap", "landlock")
