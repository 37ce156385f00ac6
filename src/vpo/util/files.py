"""Files and folders that appear complete or not at all; logs, locks and disk space."""

import errno
import fcntl
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from vpo.util.errors import InputError
from vpo.util.outputs import check_folder


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of the system name a path: those of a write name no file, and others a temporary one beside it."""
    try:
        yield
    except OSError as error:
        if error.errno is None or not (error.filename is None or f".{path.name}." in str(error.filename)):
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


@contextmanager
def replacing(path: Path) -> Iterator[str]:
    """Yield the name of a temporary file beside a path. It replaces the path unless the block raises."""
    with naming(path):
        yield from _replacing(path)


def _replacing(path: Path) -> Iterator[str]:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())  # temporary files are private
        sync(Path(temporary))  # else a power cut may leave an empty file under the new name
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)  # pyarrow removes it where the disk is full
        raise


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside a new path. It is renamed to the path unless the block raises."""
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        for file in temporary.rglob("*"):  # safetensors makes private files
            file.chmod((0o777 if file.is_dir() else 0o666) & ~_umask())
            sync(file)
        sync(temporary)
        temporary.rename(path)
        sync(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def sync(path: Path) -> None:
    """Write a file, or the names in a folder, through to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if not (path.is_dir() and error.errno in (errno.EINVAL, errno.ENOTSUP)):  # some network file systems
            raise
    finally:
        os.close(handle)


def check_new(path: str | Path, hint: str = "choose another folder") -> None:
    """Raise where a path exists, since nothing is overwritten, or where it cannot be made."""
    if os.path.lexists(path):
        raise InputError(f"{path} exists: {hint}")
    check_folder(path)


def storable(text: str) -> str:
    """A text that UTF-8 can encode: a model may write half of a surrogate pair."""
    return text.encode("utf-8", "backslashreplace").decode()


def append_rows(path: Path, rows: Iterable[Any], *, sync: bool = False) -> None:
    """Append rows to a JSONL file in one write, so that a killed process leaves complete lines.

    Args:
        path: of the file, which need not exist.
        rows: as JSON-like data.
        sync: return only when the rows are on the disk, so that they survive a crash of the machine.
    """
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    left = memoryview(text.encode("utf-8", "backslashreplace"))
    with naming(path), open(path, "ab", buffering=0) as file:
        while left:  # a disk that fills up writes only a part
            left = left[file.write(left) :]
        if sync:
            os.fsync(file.fileno())


def load_module(path: str | Path, name: str) -> ModuleType:
    """Import a Python file as a module of some name. Whatever its code raises is raised."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    return module


def write_text(path: Path, text: str) -> None:
    """Write a text file, complete or not at all."""
    with replacing(path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file, complete or not at all."""
    write_text(path, json.dumps(data, indent=2) + "\n")


@contextmanager
def locked(folder: Path, action: str) -> Iterator[int]:
    """Lock a folder; raise where another process has locked it: "FOLDER: another process is ACTION (pid 12)".

    Yields the descriptor of the lock. A process that inherits it holds the lock as long as it lives.
    """
    path = folder / ".lock"
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pids = ", ".join(map(str, _opened_by(path)))
            raise InputError(f"{folder}: another process is {action}{pids and f' (pid {pids})'}") from None
        yield file.fileno()


def is_locked(folder: Path) -> bool:
    """Whether a process of this machine has locked a folder. Takes no lock; always False on systems but Linux."""
    try:
        number = (folder / ".lock").stat().st_ino
        locks = Path("/proc/locks").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    # "1: FLOCK ADVISORY WRITE 4711 fe:00:2335891 0 EOF"; an overlay shows files under another device than `stat` does.
    held = (line.split() for line in locks if " FLOCK " in line)
    return any(fields[-3].rpartition(":")[2] == str(number) for fields in held)


def _opened_by(path: Path) -> list[int]:
    """The other processes that have a file open, as far as /proc shows them."""
    name = os.path.realpath(path)
    pids = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == name:
                pids.add(int(link.parts[2]))
        except OSError:  # it has just been closed, or is another user's
            continue
    return sorted(pids - {os.getpid()})


def free_bytes(folder: Path) -> int:
    """Free space on the disk of a folder, which need not exist yet."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(existing).free


class DiskFullError(InputError):
    """The disk is full."""


@contextmanager
def disk_full(folder: Path, hint: str) -> Iterator[None]:
    """Turn whatever other packages raise on a full disk into a `DiskFullError` with a hint."""
    try:
        yield
    except Exception as error:
        # torch and safetensors raise errors of their own.
        no_space = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if no_space or "No space left" in str(error) or free_bytes(folder) == 0:
            raise DiskFullError(f"{folder}: the disk is full: {hint}") from error
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
