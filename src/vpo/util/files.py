"""Files and folders that appear whole or not at all, and what is noted in them."""

import errno
import fcntl
import importlib.util
import json
import math
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from vpo.util.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[str]:
    """Give the name of a temporary file beside a path; it takes the path's place if nothing is raised."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())  # a temporary file is private
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)  # pyarrow has removed it, where the disk is full
        raise


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside a path; it gets the path's name if nothing is raised. It must be free."""
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        for file in temporary.rglob("*"):  # safetensors makes private ones
            file.chmod((0o777 if file.is_dir() else 0o666) & ~_umask())
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def storable(text: str) -> str:
    """Return a text that UTF-8 can hold: a model may write half of a pair of surrogates."""
    return text.encode("utf-8", "backslashreplace").decode()


def append_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to a JSONL file in one write, so that a process that is killed leaves whole lines."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    left = memoryview(text.encode("utf-8", "backslashreplace"))
    with open(path, "ab", buffering=0) as file:
        while left:  # a disk that fills up takes a part
            left = left[file.write(left) :]


def differing(one: Any, other: Any, name: str = "") -> str:
    """Return where plain data differs from other plain data, such as "scorers.0.model"; nothing where it does not.

    Numbers that differ by less than a thousandth are the same: models compute a little differently on every machine.
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        pairs = [(key, one.get(key), other.get(key)) for key in dict.fromkeys([*one, *other])]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        pairs = [(str(place), *pair) for place, pair in enumerate(zip(one, other, strict=True))]
    elif isinstance(one, float) or isinstance(other, float):
        numbers = isinstance(one, int | float) and isinstance(other, int | float)
        return "" if numbers and math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-6) else name
    else:
        return "" if one == other else name
    found = (differing(left, right, f"{name}.{key}" if name else key) for key, left, right in pairs)
    return next((each for each in found if each), "")


def module_of(path: str | Path, name: str) -> ModuleType:
    """Return a Python file of a user's as a module of some name. What it raises is for the caller to say."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def whole_lines(path: Path) -> list[str]:
    """Return the lines of a log that `append_rows` wrote, without one that is half written; none without a file."""
    return [line.decode() for line in path.read_bytes().split(b"\n")[:-1]] if path.is_file() else []


def write_text(path: Path, text: str) -> None:
    """Write a text file whole."""
    with replacing(path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file whole."""
    write_text(path, json.dumps(data, indent=2) + "\n")


def command_line() -> str:
    """Return the command that is running, to be noted with what it makes."""
    return shlex.join([Path(sys.argv[0]).stem.replace("__main__", "vpo"), *sys.argv[1:]])


def now() -> str:
    """Return the time, to be noted with what is made."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Hold a folder, refusing where another process does."""
    with open(folder / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder}: another process is {what}") from None
        yield


def free_bytes(folder: Path) -> int:
    """Return the room on the disk where a folder is, or would be."""
    place = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    return shutil.disk_usage(place).free


class DiskFullError(InputError):
    """There is no room for what was to be written."""


@contextmanager
def disk_full(folder: Path, hint: str) -> Iterator[None]:
    """Turn whatever a full disk makes others raise into one line with a hint."""
    try:
        yield
    except Exception as error:
        # torch and safetensors raise errors of their own.
        numbered = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if numbered or "No space left" in str(error) or free_bytes(folder) == 0:
            raise DiskFullError(f"{folder}: the disk is full: {hint}") from error
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
