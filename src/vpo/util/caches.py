"""Files in the user's cache folder. A cache is never needed: whatever fails there is as if nothing had been kept."""

import os
import tempfile
from pathlib import Path


def cache_folder(name: str) -> Path | None:
    """The folder for one kind of data, which need not exist; None where the user has no home.

    It is under XDG_CACHE_HOME, by default ~/.cache, as for other programs.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # to be ignored, says the specification
        try:
            base = Path.home() / ".cache"
        except RuntimeError:
            return None
    return base / "vpo" / name


def read_cached(path: Path) -> bytes | None:
    """The bytes of a file, None where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def write_cached(path: Path, data: bytes) -> None:
    """Write a file, complete or not at all, with its folder. Several processes may write the same one.

    It is not synced: a reader must tell a damaged file.
    """
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:  # a folder that cannot be written, a full disk
        if temporary:
            Path(temporary).unlink(missing_ok=True)
