"""Checks, before any work, that its results can be written."""

import os
import tempfile
from pathlib import Path

from vpo.util.errors import InputError


def check_folder(path: str | Path, *files: str) -> None:
    """Raise where files cannot be written into a folder. Neither need exist; parents that are missing can be made.

    Args:
        path: of the folder.
        files: names of the files.
    """
    folder = Path(path)
    _check_writable(folder, _nearest(folder.absolute(), path))
    for name in files:
        if (folder / name).is_dir():
            raise InputError(f"{folder / name} is a folder, and a file is to be written there: choose another --out")


def check_file(path: str | Path) -> None:
    """Raise where a file cannot be written; its folder must exist."""
    file = Path(path)
    nearest = _nearest(file.absolute(), path)
    if nearest == file.absolute() and nearest.is_dir():
        raise InputError(f"{path} is a folder, and a file is to be written there: choose another --out")
    if nearest not in (file.absolute(), file.absolute().parent):
        raise InputError(f"{path}: no such folder: {file.parent}")
    _check_writable(file, file.absolute().parent)


def _nearest(path: Path, shown: str | Path) -> Path:
    """The path, or the nearest of its parents that exists."""
    for each in (path, *path.parents):
        try:
            each.stat()
        except (FileNotFoundError, NotADirectoryError):
            if each.is_symlink():
                raise InputError(f"{shown}: {each} is a link to nothing: choose another --out") from None
        except OSError as error:  # a name that is too long, no permission
            raise InputError(f"{shown}: {error.strerror}: choose another --out") from None
        else:
            return each
    return Path(path.anchor)


def _check_writable(path: Path, folder: Path) -> None:
    """Raise where no file can be made in an existing folder."""
    if not folder.is_dir():
        raise InputError(f"{path}: {folder} is not a folder: choose another --out")
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".vpo.")
        os.close(handle)
        os.unlink(temporary)
    except OSError as error:
        raise InputError(f"{path}: {folder} cannot be written to ({error.strerror}): choose another --out") from None
