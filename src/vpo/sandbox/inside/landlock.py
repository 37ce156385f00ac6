"""Confines this process: Landlock for files where there are no namespaces, seccomp for everything else."""

import ctypes
import os
import struct

NO_NEW_PRIVILEGES, SECCOMP, FILTER, DIE_WITH_PARENT = 38, 22, 2, 1
CREATE, ADD, RESTRICT = 444, 445, 446  # the same numbers on every architecture
VERSION_FLAG, PATH_BENEATH = 1, 1
CAPABILITIES = 0x20080522  # version 3 of capset
EXECUTE, WRITE, READ, READ_DIRECTORY = 1 << 0, 1 << 1, 1 << 2, 1 << 3
# The number of file rights that each version of Landlock knows, from version 1 on.
RIGHTS = (13, 14, 15, 15, 16)

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def version() -> int:
    """The kernel's version of Landlock, 0 without it."""
    return max(0, int(_libc.syscall(CREATE, None, 0, VERSION_FLAG)))


def confine(files: tuple[list[str], list[str]] | None, program: bytes) -> None:
    """Take all capabilities from this process, and let it make the system calls of a filter.

    Args:
        files: the folders that it may read, and the devices that it may use; None to leave files as they are.
        program: the filter.
    """
    _call("prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _call("prctl", DIE_WITH_PARENT, 9, 0, 0, 0)
    if files is not None:
        _restrict_files(*files)
    # Root would keep capabilities, which limits do not bind. Two records of three words each, all zero.
    _call("capset", struct.pack("Ii", CAPABILITIES, 0), bytes(24))
    seccomp = _Program(len(program) // 8, program)
    _call("prctl", SECCOMP, FILTER, ctypes.byref(seccomp), 0, 0)


def _restrict_files(readable: list[str], devices: list[str]) -> None:
    """Let this process read some folders, use some devices, and write nowhere else."""
    known = version()
    if not known:
        raise OSError("this kernel has no Landlock")
    rights = (1 << RIGHTS[min(known, len(RIGHTS)) - 1]) - 1
    ruleset = _Ruleset(rights, 0, 0)
    rules = _call("syscall", CREATE, ctypes.byref(ruleset), ctypes.c_size_t(8), 0)
    for path in readable:
        _allow(rules, path, EXECUTE | READ | READ_DIRECTORY)
    for path in devices:
        _allow(rules, path, READ | WRITE)
    _call("syscall", RESTRICT, rules, 0)
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    if not os.path.isdir(path):
        rights &= EXECUTE | READ | WRITE
    rule = _Beneath(rights, descriptor)
    _call("syscall", ADD, rules, PATH_BENEATH, ctypes.byref(rule), 0)
    os.close(descriptor)


def _call(name: str, *arguments: object) -> int:
    result: int = getattr(_libc, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result
