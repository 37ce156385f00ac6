"""Seccomp filters. The first: the system calls that a Python program needs and that affect nothing outside its process.

All others fail with EPERM: no process is started or signalled, nothing mounted, traced or loaded. The one kind of
socket is a pair that is connected to itself, which asyncio needs; no call gives a socket an address, or sends to one.
No call takes or sees a lock on a file, or asks which pages of a file are in memory: programs share the system's files,
and would signal to each other.

The second is for processes with packages and subprocesses of their own: it refuses some calls that those do not need.
"""

import errno
import platform
import struct
from functools import cache

# Name → its number on x86_64 and on aarch64, which lacks the calls that newer ones replaced.
# fmt: off
CALLS: dict[str, tuple[int, int | None]] = {
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "pwrite64": (18, 68), "preadv": (295, 69), "pwritev": (296, 70), "open": (2, None), "openat": (257, 56),
    "openat2": (437, 437), "creat": (85, None), "close": (3, 57), "close_range": (436, 436), "stat": (4, None),
    "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291), "poll": (7, None),
    "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72), "lseek": (8, 62), "mmap": (9, 222),
    "mprotect": (10, 226), "munmap": (11, 215), "mremap": (25, 216), "madvise": (28, 233), "brk": (12, 214),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigsuspend": (130, 133), "rt_sigtimedwait": (128, 137), "sigaltstack": (131, 132), "access": (21, None),
    "faccessat": (269, 48), "faccessat2": (439, 439), "pipe": (22, None), "pipe2": (293, 59), "dup": (32, 23),
    "dup2": (33, None), "dup3": (292, 24), "nanosleep": (35, 101), "clock_nanosleep": (230, 115),
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "gettimeofday": (96, 169), "time": (201, None),
    "times": (100, 153), "getitimer": (36, 102), "setitimer": (38, 103), "alarm": (37, None), "pause": (34, None),
    "getpid": (39, 172), "gettid": (186, 178), "getppid": (110, 173), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148), "getresgid": (120, 150),
    "getgroups": (115, 158), "getpgid": (121, 155), "getpgrp": (111, None), "getsid": (124, 156), "uname": (63, 160),
    "fsync": (74, 82), "fdatasync": (75, 83), "ftruncate": (77, 46), "getdents": (78, None),
    "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "rename": (82, None),
    "renameat": (264, 38), "renameat2": (316, 276), "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None),
    "link": (86, None), "linkat": (265, 37), "unlink": (87, None), "unlinkat": (263, 35), "symlink": (88, None),
    "symlinkat": (266, 36), "readlink": (89, None), "readlinkat": (267, 78), "umask": (95, 166),
    "getrlimit": (97, 163), "getrusage": (98, 165), "sysinfo": (99, 179), "futex": (202, 98),
    "set_tid_address": (218, 96), "set_robust_list": (273, 99), "get_robust_list": (274, 100), "rseq": (334, 293),
    "exit": (60, 93), "exit_group": (231, 94), "restart_syscall": (219, 128), "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123), "sched_getparam": (143, 121), "sched_getscheduler": (145, 120),
    "getpriority": (140, 141), "getrandom": (318, 278), "membarrier": (324, 283), "epoll_create": (213, None),
    "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None), "epoll_pwait": (281, 22),
    "eventfd2": (290, 19), "eventfd": (284, None), "arch_prctl": (158, None), "statfs": (137, 43),
    "fstatfs": (138, 44), "copy_file_range": (326, 285), "sendfile": (40, 71), "fadvise64": (221, 223),
    "fallocate": (285, 47), "msync": (26, 227), "wait4": (61, 260), "getcpu": (309, 168),
    "recvfrom": (45, 207),
}
# fmt: on
# Refused by the second filter: keys of the session, which no namespace has of its own; memory of no process; ways to
# look into other processes, and into the kernel.
# fmt: off
REFUSED: dict[str, tuple[int, int]] = {
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "memfd_create": (319, 279),
    "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
}
# fmt: on
# Calls that are allowed or not by their arguments.
CLONE, CLONE3, FCNTL, IOCTL, PRLIMIT, SETRLIMIT = (56, 220), (435, 435), (72, 25), (16, 29), (302, 261), (160, 164)
SOCKETPAIR, SENDTO = (53, 199), (44, 206)

THREAD = 0x10000  # CLONE_THREAD
UNIX = 1  # AF_UNIX
# Commands of fcntl by which a file sends a signal: F_SETOWN, F_SETSIG, F_SETOWN_EX, leases, notices; F_SETPIPE_SZ,
# since the content of a pipe counts towards no memory limit; and locks: F_GETLK, F_SETLK, F_SETLKW, and those of an
# open file, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW.
REFUSED_FCNTL = (8, 10, 15, 1024, 1026, 1031, 5, 6, 7, 36, 37, 38)
# Requests of ioctl that query a file or its flags: TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX.
ALLOWED_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
ALLOW, KILL = 0x7FFF0000, 0x80000000
LOAD, EQUAL, AT_LEAST, HAS_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
X32 = 0x40000000  # the system calls of the x32 ABI have numbers from here on


def supported() -> bool:
    """Whether the numbers of this machine's system calls are known."""
    return platform.machine() in ARCHITECTURES


@cache
def filter_program(*, own_limits: bool) -> bytes:
    """The filter as the kernel takes it: BPF instructions.

    Args:
        own_limits: whether a process may lower its own limits, as some programs of contests do for the stack. One that
            is killed by a limit then looks as if it was killed from outside, except in namespaces of its own.
    """
    column, architecture = ARCHITECTURES[platform.machine()]
    plain = [number for numbers in CALLS.values() if (number := numbers[column]) is not None]
    if own_limits:
        plain.append(SETRLIMIT[column])
    refused = _return_error(errno.EPERM)
    parts = [
        [_step(LOAD, ARCHITECTURE), _step(EQUAL, architecture, 1, 0), _step(RETURN, KILL)],
        [_step(LOAD, NUMBER), _step(AT_LEAST, X32, 0, 1), refused],
        *([_step(EQUAL, number, 0, 1), _step(RETURN, ALLOW)] for number in plain),
        _if(CLONE[column], [_argument(0), _step(HAS_BIT, THREAD, 0, 1), _step(RETURN, ALLOW), refused]),
        _if(CLONE3[column], [_return_error(errno.ENOSYS)]),  # a filter cannot see its flags; libraries call clone
        _if(
            FCNTL[column],
            [_argument(1), *_any_of(REFUSED_FCNTL, refused), _step(RETURN, ALLOW)],
        ),
        _if(
            IOCTL[column],
            [_argument(1), *_any_of(ALLOWED_IOCTL, _step(RETURN, ALLOW)), _return_error(errno.ENOTTY)],
        ),
        _if(SOCKETPAIR[column], [_argument(0), _step(EQUAL, UNIX, 0, 1), _step(RETURN, ALLOW), refused]),
        _if(SENDTO[column], _null(4, refused)),
        _if(PRLIMIT[column], _null(0 if own_limits else 2, refused)),  # process 0 is itself; no new limit reads one
        [refused],
    ]
    return b"".join(step for part in parts for step in part)


@cache
def refusing_program() -> bytes:
    """The filter that refuses the calls of `REFUSED` alone, and those of other ABIs."""
    column, architecture = ARCHITECTURES[platform.machine()]
    refused = _return_error(errno.EPERM)
    return b"".join(
        [
            *(_step(LOAD, ARCHITECTURE), _step(EQUAL, architecture, 1, 0), _step(RETURN, KILL)),
            *(_step(LOAD, NUMBER), _step(AT_LEAST, X32, 0, 1), refused),
            *_any_of(tuple(numbers[column] for numbers in REFUSED.values()), refused),
            _step(RETURN, ALLOW),
        ]
    )


def _if(number: int, then: list[bytes]) -> list[bytes]:
    """Instructions for one system call; the last one decides."""
    return [_step(LOAD, NUMBER), _step(EQUAL, number, 0, len(then)), *then]


def _any_of(values: tuple[int, ...], then: bytes) -> list[bytes]:
    return [step for value in values for step in (_step(EQUAL, value, 0, 1), then)]


def _null(argument: int, otherwise: bytes) -> list[bytes]:
    """Instructions that allow a call whose argument is 0."""
    both_halves = [_argument(argument), _step(EQUAL, 0, 1, 0), otherwise]
    return [*both_halves, _argument(argument, upper=True), _step(EQUAL, 0, 1, 0), otherwise, _step(RETURN, ALLOW)]


def _argument(number: int, *, upper: bool = False) -> bytes:
    return _step(LOAD, ARGUMENTS + 8 * number + 4 * upper)


def _return_error(number: int) -> bytes:
    return _step(RETURN, 0x00050000 | number)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
