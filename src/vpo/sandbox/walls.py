"""The walls around a candidate: bubblewrap, Landlock, or none; how each is put up, and whether it stands here."""

import marshal
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
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
# Without site-packages; texts are hashed alike in every run, since programs print sets.
OPTIONS = ("-S", "-s", "-B", "-X", "utf8")
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "PATH": "/usr/bin", "HOME": "/tmp", "TMPDIR": "/tmp"}
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
NOBODY = "65534"
MOST_PRINTED = 128 << 20  # bytes in all tests of one start, as they lie in memory
END_SECONDS = 5.0  # for bwrap to end after what it holds


class Wall(ABC):
    """One way to keep a candidate in."""

    name: str
    install: str  # what to do where it is missing
    more_limits: ClassVar[dict[str, int]] = {}  # of its processes, by the names in `resource`

    @abstractmethod
    def missing(self) -> str:
        """Return what it lacks on this machine, nothing where it may work."""

    @abstractmethod
    def command(self, channel: int, filtering: int, limits: Limits) -> list[str]:
        """Return the command of a candidate.

        Args:
            channel: the file descriptor that it answers on.
            filtering: one that holds the seccomp filter.
            limits: of the program.
        """

    def confinement(self) -> Any:
        """Return what the candidate shuts itself in with before it runs anything."""
        return None

    def killed_from_outside(self, code: int) -> bool:
        """Return whether a candidate that ended with this code was killed by nothing of its own doing."""
        return code == -SIGKILL

    def end(self, process: "subprocess.Popen[bytes]") -> None:
        """End a candidate, and wait until nothing of it is left.

        It leads a group of processes. In it is also what bwrap has begun and not yet bound to itself, where somebody
        killed bwrap in between: that would wait for it forever.
        """
        if process.returncode is None:  # else its number may be another's by now
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)
        process.wait()

    def request(self, program: Program, first: int, given: Sequence[bytes | str], limits: Limits) -> bytes:
        """Return what a candidate is told."""
        mega = 1 << 20
        rlimits = {
            "RLIMIT_AS": limits.memory_mb * mega,
            "RLIMIT_CPU": limits.processor_seconds,
            # What it prints goes into one file.
            "RLIMIT_FSIZE": max(limits.disk_mb * mega, min(MOST_PRINTED, limits.output_bytes * (len(given) + 1))),
            "RLIMIT_NOFILE": 64,
            "RLIMIT_CORE": 0,
            **self.more_limits,
        }
        return marshal.dumps((program.source, program.entry, first, list(given), rlimits, self.confinement()))


class Bubblewrap(Wall):
    """Namespaces of its own for everything, a read-only system, a small tmpfs, and the filter."""

    name = "bubblewrap"
    install = "install bubblewrap (apt-get install bubblewrap, or your system's package of that name)"
    more_limits: ClassVar[dict[str, int]] = {"RLIMIT_NPROC": 64}

    def killed_from_outside(self, code: int) -> bool:
        """Return whether bwrap itself was killed, which no signal from inside reaches."""
        return code < 0

    def end(self, process: "subprocess.Popen[bytes]") -> None:
        """End the first process inside, with which all others go, and let bwrap reap it.

        Were bwrap killed first, the one inside would be left to the first process of the machine, and in a container
        that may be one that reaps nobody.
        """
        if process.returncode is None:
            with suppress(OSError, subprocess.TimeoutExpired):
                inside = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                for child in inside:
                    os.kill(int(child), SIGKILL)
                if inside:
                    process.wait(timeout=END_SECONDS)
        super().end(process)

    def missing(self) -> str:
        """Return what it lacks on this machine."""
        if shutil.which("bwrap") is None:
            return "bwrap is not installed"
        return "" if supported() else "the system calls of this kind of machine are not known"

    def command(self, channel: int, filtering: int, limits: Limits) -> list[str]:
        """Return the command of a candidate."""
        return [
            *self._fixed(),
            *("--size", str(limits.disk_mb << 20), "--tmpfs", "/tmp"),
            *("--chdir", "/tmp", "--remount-ro", "/", "--seccomp", str(filtering)),
            *(PYTHON, *OPTIONS, "/inside", str(channel)),
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


class Unwalled(Wall):
    """A process of its own with limits, and nothing more."""

    name = "none"
    install = ""

    def missing(self) -> str:
        """Return nothing: it works everywhere."""
        return ""

    def command(self, channel: int, filtering: int, limits: Limits) -> list[str]:
        """Return the command of a candidate."""
        return [PYTHON, *OPTIONS, str(INSIDE), str(channel)]


class Landlock(Unwalled):
    """No files but the system's, nothing to write to, and the filter; the process and network are not its own."""

    name = "landlock"
    install = "a Linux kernel of 5.13 or later with Landlock and seccomp is needed"

    def missing(self) -> str:
        """Return what it lacks on this machine."""
        if not supported():
            return "the system calls of this kind of machine are not known"
        return "" if landlock.version() else "the kernel has no Landlock"

    def confinement(self) -> Any:
        """Return the folders that may be read, the devices, and the filter."""
        readable = [path for path in (*SYSTEM, sys.base_prefix) if os.path.exists(path)]
        return readable, list(DEVICES), filter_program(before_start=False)


WALLS: dict[str, Wall] = {wall.name: wall for wall in (Bubblewrap(), Landlock(), Unwalled())}
