"""Hostile programs as data: what each tries, and what shows that it succeeds against a plain runner."""

import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.sandbox.plain import HANGS, Plain
from tests.sandbox.world import World

HIDDEN = 918_273_645  # the expected value of programs that do not know it
DONE = "done"  # the expected value of programs that return it where they succeed


def passes(plain: Plain, world: World) -> bool:
    """Whether a plain runner counts the program as right."""
    return plain.passed


def exits_well(plain: Plain, world: World) -> bool:
    """Whether a grader that goes by the exit code counts the program as right."""
    return plain.code == 0


def breaks_grader(plain: Plain, world: World) -> bool:
    """Whether a plain runner ends without a result, which it takes for an error that is not the program's."""
    return plain.report is None


def changes_files(plain: Plain, world: World) -> bool:
    """Whether a file outside is no longer what it was."""
    return world.changed()


def calls(plain: Plain, world: World) -> bool:
    """Whether a listener outside was called."""
    return world.heard()


def harms(plain: Plain, world: World) -> bool:
    """Whether another process was ended."""
    return world.neighbour is not None and world.neighbour.wait(HANGS) != 0


@dataclass(frozen=True)
class Attack:
    """One hostile program.

    Attributes:
        name: of the test.
        tries: what it must not achieve.
        source: the program, with words such as @SECRET@ for what `World` knows.
        expected: the expected value of its one test.
        input: of its one test.
        entry: its function; None where it reads standard input.
        succeeded: whether it succeeded against a plain runner.
        reasons: for which the sandbox may fail it.
        limits: of the sandbox, where they matter.
        privileged: whether it succeeds only where the plain runner is root's.
        refused: whether a machine may refuse it to every process.
        machine: the only kind of machine that it is written for.
    """

    name: str
    tries: str
    source: str
    expected: Any = HIDDEN
    input: Any = (1,)
    entry: str | None = "answer"
    succeeded: Callable[[Plain, World], bool] = passes
    reasons: tuple[str, ...] = ("wrong answer", "exception", "forbidden")
    limits: dict[str, Any] = field(default_factory=dict)
    privileged: bool = False
    refused: bool = False
    machine: str = ""


# System calls by name: their numbers on x86_64 and aarch64, and arguments that do no harm where the call is allowed.
# fmt: off
KERNEL: dict[str, tuple[int, int, str]] = {
    "ptrace": (101, 117, "99, -1, 0, 0"), "unshare": (272, 97, "0"), "setns": (308, 268, "-1, 0"),
    "mount": (165, 40, "0, 0, 0, 0, 0"), "pivot_root": (155, 41, "0, 0"), "chroot": (161, 51, "0"),
    "keyctl": (250, 219, "0, -3, 0"), "add_key": (248, 217, "0, 0, 0, 0, 0"), "bpf": (321, 280, "-1, 0, 0"),
    "io_uring_setup": (425, 425, "1, 0"), "userfaultfd": (323, 282, "0"), "perf_event_open": (298, 241, "0,0,-1,-1,0"),
    "init_module": (175, 105, "0, 0, 0"), "memfd_create": (319, 279, "0, 0"), "setuid": (105, 146, "os.getuid()"),
    "setgid": (106, 144, "os.getgid()"), "prctl": (157, 167, "3, 0, 0, 0, 0"), "personality": (135, 92, "0xffffffff"),
    "pidfd_open": (434, 434, "os.getpid(), 0"), "kill": (62, 129, "os.getpid(), 0"),
    "tgkill": (234, 131, "os.getpid(), os.getpid(), 0"), "rt_sigqueueinfo": (129, 138, "os.getpid(), 0, 0"),
    "timer_create": (222, 107, "0, 0, 0"), "shmget": (29, 194, "0, 0, 0"), "msgget": (68, 186, "1, 0"),
    "semget": (64, 190, "1, 0, 0"), "mq_open": (240, 180, "0, 0, 0, 0"), "inotify_init1": (294, 26, "-1"),
    "open_by_handle_at": (304, 265, "-1, 0, 0"), "process_vm_writev": (311, 271, "os.getpid(), 0, 0, 0, 0, 0"),
    "sched_setaffinity": (203, 122, "0, 0, 0"), "setpriority": (141, 140, "0, 0, 0"),
    "sethostname": (170, 161, "0, -1"),
    "seccomp": (317, 277, "99, 0, 0"), "socket": (41, 198, "1, 1, 0"), "sendmsg": (46, 211, "-1, 0, 0"),
    "capset": (126, 91, "0, 0"), "fchmod": (91, 52, "-1, 0"), "fchown": (93, 55, "-1, 0, 0"),
    "truncate": (76, 45, "0, 0"), "utimensat": (280, 88, "-1, 0, 0, 0"), "mknodat": (259, 33, "-1, 0, 0, 0"),
    "vmsplice": (278, 75, "-1, 0, 0, 0"), "clone3": (435, 435, "0, 0"), "execveat": (322, 281, "-1, 0, 0, 0, 0"),
    "flock": (73, 32, "-1, 0"), "mincore": (27, 232, "1, 0, 0"), "getsockname": (51, 204, "-1, 0, 0"),
    "connect": (42, 203, "-1, 0, 0"), "bind": (49, 200, "-1, 0, 0"),
}
# fmt: on
REACH = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def answer(_):
    result = libc.syscall({number}, {arguments})
    return "done" if result >= 0 or ctypes.get_errno() not in {refusals} else "refused"
"""
X32 = 0x40000000


def kernel_attacks() -> list[Attack]:
    """Programs that make one system call each, by its number."""
    column = 1 if platform.machine() == "aarch64" else 0
    attacks = []
    for name, (*numbers, arguments) in KERNEL.items():
        # The filter answers ENOSYS to clone3, so that libraries call clone.
        refusals = "(errno.EPERM, errno.ENOSYS)" if name == "clone3" else "(errno.EPERM,)"
        source = REACH.format(number=numbers[column], arguments=arguments, refusals=refusals)
        attacks.append(Attack(f"call_{name}", f"to reach the kernel's {name}", source, DONE, refused=True))
    for name, (number, arguments) in {"socket": (41, "1, 1, 0"), "kill": (62, "os.getpid(), 0")}.items():
        source = REACH.format(number=X32 + number, arguments=arguments, refusals="(errno.EPERM,)")
        tries = f"to reach the kernel's {name} by its number of the x32 interface"
        attacks.append(Attack(f"x32_{name}", tries, source, DONE, refused=True, machine="x86_64"))
    return attacks
