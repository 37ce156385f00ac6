"""Isolation backends: bubblewrap, Landlock, or none. Each says how to start a process in it and what it lacks here."""

import marshal
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
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
END_SECONDS = 5.0  # for bwrap to exit after the process inside it


class Isolation(ABC):
    """One way to isolate a process from the machine."""

    name: str
    install: str  # what to do where it is missing
    more_limits: ClassVar[dict[str, int]] = {}  # of its processes, by the names in `resource`

    @abstractmethod
    def missing(self) -> str:
        """What this machine lacks for it; empty where it may work."""

    @abstractmethod
    def command(self, channel: int, given: int, seccomp: int, limits: Limits) -> list[str]:
        """The command that starts a sandboxed process.

        Args:
            channel: the file descriptor of its connection to the judge.
            given: one from which it reads the input of each test.
            seccomp: one from which the seccomp filter is read.
            limits: of the program.
        """

    def confinement(self) -> Any:
        """How the process confines itself before it runs the program: arguments of `landlock.confine`, or None."""
        return None

    def killed_from_outside(self, code: int) -> bool:
        """Whether a process that ended with this code was killed by something other than its program."""
        return code == -SIGKILL

    def end(self, process: "subprocess.Popen[bytes]") -> None:
        """Kill a sandboxed process, and wait until nothing of it is left.

        The whole process group is killed. If bwrap itself was killed while it started, the group also holds the process
        that bwrap had begun and not yet tied to its own life, which would wait for bwrap forever.
        """
        if process.returncode is None:  # after that its id may belong to another process
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)
        process.wait()

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

    def killed_from_outside(self, code: int) -> bool:
        """Whether bwrap itself was killed, which no signal from inside reaches."""
        return code < 0

    def end(self, process: "subprocess.Popen[bytes]") -> None:
        """Kill the first process inside, with which all others end, and let bwrap reap it.

        If bwrap were killed first, the process inside would be left to the first process of the machine, which in a
        container may be one that reaps nothing.
        """
        if process.returncode is None:
            with suppress(OSError, subprocess.TimeoutExpired):
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                for child in children:
                    os.kill(int(child), SIGKILL)
                if children:
                    process.wait(timeout=END_SECONDS)
        super().end(process)

    def missing(self) -> str:
        """The program bwrap, or the numbers of this machine's system calls."""
        if shutil.which("bwrap") is None:
            return "bwrap is not installed"
        return "" if supported() else "the system calls of this kind of machine are not known"

    def command(self, channel: int, given: int, seccomp: int, limits: Limits) -> list[str]:
        """bwrap with everything mounted that the program may see."""
        return [
            *self._fixed(),
            *("--size", str(limits.disk_mb << 20), "--tmpfs", "/tmp"),
            *("--chdir", "/tmp", "--remount-ro", "/", "--seccomp", str(seccomp)),
            *(PYTHON, *OPTIONS, "/inside", str(channel), str(given)),
        ]

    def _fixed(self) -> list[str]:
        bwrap = shutil.which("bwrap")
        assert bwrap is not None
        words = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
        words += ["--uid", NOBODY, "--gid", NOBODY, "--hostname", "sandbox"]
        for name, value in ENVIRONMENT.items():
            words += ["--setenv", name, value]
        for path in SYSTEM:
            if os.path.islink(path):
                words += ["--symlink", os.readlink(path), path]
            else:
                words += ["--ro-bind-try", path, path]
        if not sys.base_prefix.startswith("/usr/"):
            words += ["--ro-bind", sys.base_prefix, sys.base_prefix]
        for path in DEVICES:
            words += ["--dev-bind", path, path]
        return [*words, "--ro-bind", str(INSIDE), "/inside"]


class Unisolated(Isolation):
    """A separate process with limits, and nothing more."""

    name = "none"
    install = ""

    def missing(self) -> str:
        """Nothing: it works everywhere."""
        return ""

    def command(self, channel: int, given: int, seccomp: int, limits: Limits) -> list[str]:
        """Python itself."""
        return [PYTHON, *OPTIONS, str(INSIDE), str(channel), str(given)]


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
        return readable, list(DEVICES), filter_program(before_start=False)


ISOLATIONS: dict[str, Isolation] = {each.name: each for each in (Bubblewrap(), Landlock(), Unisolated())}
SAFE = ("bubblewrap", "landlock")
