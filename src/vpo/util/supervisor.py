"""Runs a command, and ends every process that it started: a script, ``supervisor.py PARENT COMMAND…``.

PARENT is the process id of what starts it. If that process ends, however it ends, all processes are killed. Once the
command has ended, what it left behind is terminated, and killed after `GRACE` seconds. The supervisor ends last, with
the command's exit code or signal. Orphans become its children (`PR_SET_CHILD_SUBREAPER`), so a process group or session
of their own does not hide them: Ray's daemons and workers have both. Descriptors that it inherits, such as of a lock,
stay open until then.

It is run by its path and imports nothing of this package, so that it starts fast. Its signals are blocked, from before
it starts, and waited for, so that none is lost at any time. Without `prctl`, which is Linux's, only the command itself
is ended.
"""

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

GRACE = 10.0  # seconds
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
WATCHED = (*FORWARDED, signal.SIGCHLD)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # of prctl


def main(parent: int, command: list[str]) -> int:
    """Run the command; its exit code, the number of its signal negated, or -9 where the parent ended."""
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, exit codes are lost
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the line above
        return -signal.SIGKILL
    child = _started(command)
    code = None
    while code is None and os.getppid() == parent:
        number = signal.sigwait(WATCHED)
        if number == signal.SIGINT:
            os.killpg(child, number)  # as a terminal does: shells wait for their child to end by it
        elif number in FORWARDED and os.getppid() == parent:
            os.kill(child, number)
        code = _reaped().get(child)
    _end_children(parent)
    return -signal.SIGKILL if code is None else code


def _started(command: list[str]) -> int:
    """Start the command, which is killed if this process is; its process id."""
    supervisor = os.getpid()
    child = os.fork()
    if child:
        with suppress(OSError):  # the child has done so, and runs the command
            os.setpgid(child, child)  # before a signal is sent to the group
        return child
    try:
        os.setpgid(0, 0)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == supervisor:
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
                signal.signal(number, signal.SIG_DFL)
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # which raises
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
            os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
    finally:
        os._exit(127)


def _end_children(parent: int) -> None:
    """End all processes that are left, and wait for them: at once where the parent has ended."""
    deadline = time.monotonic() + GRACE
    terminated: set[int] = set()
    while True:
        _reaped()
        if not (left := _descendants()):
            return
        if os.getppid() != parent or time.monotonic() > deadline:
            _send(left, signal.SIGKILL)
        else:
            _send(left - terminated, signal.SIGTERM)
            terminated |= left
        signal.sigtimedwait(WATCHED, 0.1)


def _reaped() -> dict[int, int]:
    """Exit codes of the children that have ended since the last call."""
    codes: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return codes
        if pid == 0:
            return codes
        codes[pid] = os.waitstatus_to_exitcode(status)


def _descendants() -> set[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()  # the name may hold anything
        except OSError:  # it has just ended
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found: set[int] = set()
    new = children.get(os.getpid(), [])
    while new:
        found.update(new)
        new = [child for pid in new for child in children.get(pid, []) if child not in found]
    return found


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(OSError):  # it has just ended, or is another user's
            os.kill(pid, number)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _end(code: int) -> None:
    """End this process as the command ended, by the same signal too."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    _end(main(int(sys.argv[1]), sys.argv[2:]))
