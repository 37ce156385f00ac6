"""Manifests: a file in a folder, written last, that holds the size and the hash of every other file.

Where a manifest exists, the folder is on disk: files and folders are synced before it is written. It holds a hash of
itself, so that damage to it is not taken for damage to the other files. Hidden files are no part of it: nothing loads
them, and file systems and desktops leave some.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from vpo.util.files import sync, write_text

ALGORITHM = "sha256"  # in one thread 1.5 GB/s on a CPU with instructions for it, twice as fast as blake2b
THREADS = 4  # files that are hashed at a time: hashing releases the GIL


def write_manifest(folder: Path, name: str, facts: Mapping[str, Any]) -> None:
    """Write all files of a folder through to the disk, then its manifest, which holds some facts too."""
    files = _files(folder, name)
    folders = {folder.parent, *(path.parent for path in files.values()), folder}
    for path in (*files.values(), *folders):
        sync(path)
    with ThreadPoolExecutor(THREADS) as threads:
        described = list(threads.map(size_and_hash, files.values()))
    content = {**facts, "files": dict(zip(files, described, strict=True))}
    write_text(folder / name, json.dumps({**content, ALGORITHM: _hash_of(content)}, indent=1) + "\n")
    sync(folder)


def manifest_damage(folder: Path, name: str, facts: Mapping[str, Any]) -> list[str]:
    """In words, each way in which a folder differs from what `write_manifest` wrote; empty for a folder that is whole.

    Args:
        folder: its path.
        name: of the manifest in it.
        facts: that the manifest must hold.
    """
    try:
        text = (folder / name).read_bytes()
    except OSError as error:
        return [f"{name} cannot be read ({error.strerror})"]
    if not text:
        return [f"{name} is empty, and holds no hashes"]
    content = _parsed(text)
    if content is None:
        return [f"{name} is damaged"]
    for fact, value in facts.items():
        if content.get(fact) != value:
            return [f"{name} is that of {fact} {content.get(fact)}"]
    expected: dict[str, Any] = content["files"]
    with ThreadPoolExecutor(THREADS) as threads:
        found = threads.map(lambda file: _damage(folder / file, expected[file]), expected)
        damage = [f"{file} {each}" for file, each in zip(expected, found, strict=True) if each is not None]
    return damage + [f"{file} was added" for file in _files(folder, name) if file not in expected]


def _files(folder: Path, manifest: str) -> dict[str, Path]:
    """The files of a folder and its subfolders by their relative names, in order, without hidden ones."""
    paths = [Path(parent) / name for parent, _, names in os.walk(folder) for name in names]
    files = {path.relative_to(folder).as_posix(): path for path in sorted(paths)}
    return {
        name: path
        for name, path in files.items()
        if name != manifest and not any(part.startswith(".") for part in name.split("/"))
    }


def size_and_hash(path: Path) -> dict[str, Any]:
    """What a manifest holds of a file."""
    with open(path, "rb") as file:
        return {"size": path.stat().st_size, ALGORITHM: hashlib.file_digest(file, ALGORITHM).hexdigest()}


def begins_with(path: Path, expected: Mapping[str, Any]) -> bool:
    """Whether a file exists and begins with what `size_and_hash` once described: it may have grown since."""
    hashed, left = hashlib.new(ALGORITHM), int(expected["size"])
    try:
        with open(path, "rb") as file:
            while left and (part := file.read(min(left, 1 << 20))):
                hashed.update(part)
                left -= len(part)
    except OSError:
        return False
    return left == 0 and hashed.hexdigest() == expected[ALGORITHM]


def manifest_facts(folder: Path, name: str) -> dict[str, Any]:
    """The facts that were written into a manifest, which must be whole."""
    content = _parsed((folder / name).read_bytes())
    assert content is not None
    return content


def _damage(path: Path, expected: Mapping[str, Any]) -> str | None:
    """What is wrong with a file; the cheap checks first."""
    try:
        if not path.exists():
            return "is missing"
        if not path.is_file():  # to open a pipe would wait for ever
            return "is not a file"
        if (size := path.stat().st_size) != expected["size"]:
            return f"has {size:,} bytes of {expected['size']:,}"
        return None if size_and_hash(path) == expected else "has other contents"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _parsed(text: bytes) -> dict[str, Any] | None:
    """The contents of a manifest; None where it does not match its own hash."""
    try:
        content = json.loads(text)
        own: str = content.pop(ALGORITHM)
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return None
    return content if own == _hash_of(content) else None


def _hash_of(content: Mapping[str, Any]) -> str:
    return hashlib.new(ALGORITHM, json.dumps(content, sort_keys=True).encode()).hexdigest()
