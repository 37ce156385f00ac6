"""Runs a whole process behind a wall: one that needs packages, subprocesses and temporary files.

`Sandbox` runs one bare Python function and judges it from outside. An evaluator of somebody's with the program that it
evaluates needs more, and has it here, in bubblewrap:

- no network, no process but its own, no environment, no capabilities, no further namespaces;
- of files the system's, Python's with its packages, and the folders that are named, all read-only; a private /tmp and
  /dev/shm of limited size, deleted with it. Nothing else of the machine can be read, and nothing of it written;
- limits on memory and on the number of processes, of all of them together, sampled every 50 ms; eight times as many
  processes and threads are a limit of the kernel's (`process_limits`). Time limits are by the wall clock. At its end,
  or at that of the caller, everything that it has started is killed.

What it says comes as lines on its standard output, of limited length; what it prints on standard error is kept in part.

Its seccomp filter refuses few calls (`seccomp.REFUSED`): it covers less than `Sandbox` against bugs of the kernel.
"""

import os
import select
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

from vpo.sandbox.isolation import ISOLATIONS, bubblewrapped, end_namespaces
from vpo.sandbox.process_limits import control_group, joining, limited
from vpo.sandbox.seccomp import refusing_program, supported
from vpo.util.errors import InputError, one_line

TICK = 0.05  # seconds between two looks at a running process
CHUNK = 1 << 16
ERRORS = 4000  # bytes of standard error that are kept, the last ones
START_SECONDS = 60.0  # for a process to start on a busy machine
END_SECONDS = 5.0  # for a process that says no more to exit
TASKS = 8  # processes and threads that may be there for each process that may
WORK = "/tmp/work"


class WallError(Exception):
    """A process that did not say what was asked of it: it took too long or too much, or it ended. Says why."""


@dataclass(frozen=True)
class WallLimits:
    """What a process may use, with all that it starts.

    Attributes:
        memory_mb: of its own memory, without files.
        disk_mb: of /tmp.
        processes: how many.
        line_bytes: of a line that it says.
    """

    memory_mb: int = 4096
    disk_mb: int = 512
    processes: int = 128
    line_bytes: int = 1 << 20


class WalledProcess:
    """A process behind the wall, or without it where `walled` is false; a context manager, which ends it."""

    def __init__(
        self,
        command: Sequence[str],
        readable: Sequence[str],
        limits: WallLimits,
        *,
        walled: bool = True,
        stop: threading.Event | None = None,
    ) -> None:
        """Nothing is started yet.

        Args:
            command: its words.
            readable: files and folders that it may read.
            limits: of it.
            walled: whether it is confined; if not it has all rights of the user, in a folder of its own.
            stop: ends it, from another thread.
        """
        self.command, self.readable, self.limits, self.walled = command, readable, limits, walled
        self.stop = stop or threading.Event()
        self._said, self._errors = bytearray(), bytearray()

    def __enter__(self) -> Self:
        """Start it. The thread that does must wait for it: it ends with that thread."""
        self.folder = None if self.walled else tempfile.mkdtemp(prefix="vpo-")
        folder = self.folder or WORK
        environment = {
            **{"LANG": "C.UTF-8", "HOME": folder, "TMPDIR": "/tmp" if self.walled else folder},
            **{"PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        }
        words, filters = list(self.command), None
        with ExitStack() as cleanup:
            if self.walled:
                tasks = TASKS * self.limits.processes
                group = cleanup.enter_context(control_group(tasks))
                filters = cleanup.enter_context(_filter_file())
                walled = walled_command(limited(words, tasks, group), self.readable, self.limits, environment, filters)
                words = joining(walled, group)
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd="/" if self.walled else folder,
                start_new_session=True,
                pass_fds=() if filters is None else (filters,),
            )
            self._cleanup = cleanup.pop_all()  # where it did not start, nothing is left
        return self

    def __exit__(self, *error: object) -> None:
        """End it with all that it started."""
        if self.walled:
            end_namespaces(self.process)
        else:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        self._cleanup.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def errors(self) -> str:
        """The end of what it printed on standard error."""
        return self._errors.decode("utf-8", "replace").strip()

    def send(self, data: bytes) -> None:
        """Write to its standard input, and close that. It must read it before it does anything else."""
        assert self.process.stdin is not None
        with suppress(OSError):  # it has ended, as `line` will say
            self.process.stdin.write(data)
            self.process.stdin.close()

    def line(self, seconds: float) -> bytes:
        """The next line that it says, within so many seconds; raises `WallError` where there is none."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        said, printed = self.process.stdout.fileno(), self.process.stderr.fileno()
        poll = select.poll()
        poll.register(said, select.POLLIN)
        poll.register(printed, select.POLLIN)
        deadline, looked = time.monotonic() + seconds, 0.0
        while b"\n" not in self._said:
            ready = [descriptor for descriptor, _ in poll.poll(TICK * 1000)]
            if printed in ready and not self._keep_errors(printed):
                poll.unregister(printed)
            if said in ready:
                data = os.read(said, CHUNK)
                if not data:
                    raise WallError(self._how_it_ended())
                self._said += data
                if len(self._said) > self.limits.line_bytes and b"\n" not in self._said:
                    raise WallError(f"its result is longer than {self.limits.line_bytes:,} bytes")
            now = time.monotonic()
            if now - looked >= TICK:
                looked = now
                self._look()
                if now > deadline:
                    raise WallError(f"not done within {seconds:g} s")
        line, _, rest = bytes(self._said).partition(b"\n")
        self._said = bytearray(rest)
        return line

    def _keep_errors(self, descriptor: int) -> bool:
        data = os.read(descriptor, CHUNK)
        self._errors = (self._errors + data)[-ERRORS:]
        return bool(data)

    def _look(self) -> None:
        """Raise where it must end: it is stopped, or uses more than its limits."""
        if self.stop.is_set():
            raise WallError("stopped")
        count = memory = shared = 0
        for pid in _family(self.process.pid, self.limits.processes + 2):  # with the two of bwrap
            count += 1
            own, mapped = _memory(pid)
            memory, shared = memory + own, max(shared, mapped)  # several may map the same
        if count > self.limits.processes:
            raise WallError(f"more than {self.limits.processes} processes")
        if memory + shared > self.limits.memory_mb << 20:
            raise WallError(f"more than {self.limits.memory_mb} MB of memory")

    def _how_it_ended(self) -> str:
        try:
            code = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        detail = f": {one_line(self.errors[-200:])}" if self.errors else ""
        return f"its process ended early (exit code {code}){detail}"


@contextmanager
def _filter_file() -> Iterator[int | None]:
    """A descriptor of the seccomp filter, as bwrap reads it; None where the machine's system calls are not known."""
    if not supported():
        yield None
        return
    with tempfile.TemporaryFile() as file:
        file.write(refusing_program())
        file.seek(0)
        yield file.fileno()


def walled_command(
    command: Sequence[str],
    readable: Sequence[str],
    limits: WallLimits,
    environment: dict[str, str],
    filters: int | None = None,
) -> list[str]:
    """The words of bwrap that run a command behind the wall, with the descriptor of a seccomp filter."""
    disk = str(limits.disk_mb << 20)
    words = [*bubblewrapped(environment), "--unshare-user", "--disable-userns"]
    words += [] if filters is None else ["--seccomp", str(filters)]
    words += ["--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin", "/sbin"]
    words += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    words += ["--size", disk, "--tmpfs", "/dev/shm", "--size", disk, "--tmpfs", "/tmp"]
    for path in dict.fromkeys([*_python_folders(), *readable]):
        words += ["--ro-bind", path, path]
    return [*words, "--dir", WORK, "--chdir", WORK, "--remount-ro", "/", *command]


def _python_folders() -> list[str]:
    """The folders of this environment of Python that the system's do not hold."""
    folders = [sys.prefix, *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    return [folder for folder in folders if not folder.startswith("/usr/") and os.path.isdir(folder)]


def _family(pid: int, most: int) -> Iterator[int]:
    """A process and all below it, up to a number of them."""
    waiting = [pid]
    while waiting and most > 0:
        process = waiting.pop()
        most -= 1
        yield process
        for task in _tasks(process):
            with suppress(OSError):  # it has ended
                waiting += map(int, (task / "children").read_text().split())


def _tasks(pid: int) -> list[Path]:
    """The folders of a process's threads; none once it has ended."""
    try:
        return [Path(f"/proc/{pid}/task/{name}") for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _memory(pid: int) -> tuple[int, int]:
    """Bytes of memory of a process that are no file's: its own, and shared; by any thread, since one may have ended."""
    for task in _tasks(pid):
        with suppress(OSError, ValueError):  # it has ended
            fields = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
            if "RssAnon" in fields:
                own, shared = (int(fields[name].split()[0]) << 10 for name in ("RssAnon", "RssShmem"))
                return own, shared
    return 0, 0


@cache
def wall_problem() -> str:
    """Why the wall does not work on this machine; empty where a process ran behind it."""
    if shutil.which("bwrap") is None:
        return "bwrap is not installed"
    with WalledProcess([sys.executable, "-I", "-c", "print('works', flush=True)"], [], WallLimits()) as process:
        try:
            process.line(START_SECONDS)
        except WallError as error:
            return str(error)
    return ""


def has_wall(*, unsafe: bool) -> bool:
    """Whether processes run behind the wall here; raises where they cannot, unless `unsafe`."""
    problem = wall_problem()
    if problem and not unsafe:
        raise InputError(
            f"untrusted programs cannot be isolated on this machine (bubblewrap: {problem}): "
            f"{ISOLATIONS['bubblewrap'].install}, or run them without isolation by unsafe=True, --set unsafe=true"
        )
    return not problem
