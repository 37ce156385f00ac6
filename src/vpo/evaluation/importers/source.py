"""A file or folder to import: its files, and their first rows, by which a format is detected."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from vpo.util.errors import InputError
from vpo.util.row_files import SUFFIXES, read_rows

DOCUMENT = ".json"
POOLS = tuple(f".pool{suffix}" for suffix in SUFFIXES)  # endings of what `vpo import` writes


class Source:
    """What `vpo import` was given."""

    def __init__(self, path: str | Path) -> None:
        """Refuse a path that does not exist, and a file that cannot be of any format."""
        self.path = Path(path)
        if not self.path.exists():
            raise InputError(f"no such file or folder: {path}")
        if self.path.is_file() and not self.path.name.endswith((*SUFFIXES, DOCUMENT)):
            raise InputError(f"{path}: a file to import must end in {', '.join(SUFFIXES)} or {DOCUMENT}")
        self._first_rows: dict[Path, Mapping[str, Any]] = {}
        self._documents: dict[Path, Any] = {}

    @cached_property
    def files(self) -> list[Path]:
        """The file itself, or all files of the folder, in the order of their names, but for pools."""
        if self.path.is_file():
            return [self.path]
        paths = (path for path in self.path.rglob("*") if not path.name.startswith(".") and path.is_file())
        return sorted(path for path in paths if not path.name.endswith(POOLS))

    def check_out(self, out: str | Path) -> None:
        """Refuse a pool that would replace a file to import, or that the next import of the folder would count."""
        target, source = Path(out).resolve(), self.path.resolve()
        if target == source:
            raise InputError(f"out must not be the file to import, {out}")
        if target.is_relative_to(source) and not target.name.endswith(POOLS):
            raise InputError(f"out must end in {POOLS[0]} inside the folder to import, or lie outside of it, not {out}")

    @property
    def tables(self) -> list[Path]:
        """The files of rows."""
        return [path for path in self.files if path.name.endswith(SUFFIXES)]

    @property
    def documents(self) -> list[Path]:
        """The JSON files."""
        return [path for path in self.files if path.suffix == DOCUMENT]

    def tables_with(self, *columns: str) -> list[Path]:
        """The files of rows whose first row has some columns."""
        return [path for path in self.tables if set(columns) <= self.first_row(path).keys()]

    def first_row(self, path: Path) -> Mapping[str, Any]:
        """The first row of a file; without columns where there is none."""
        if path not in self._first_rows:
            _, row = next(read_rows(path), (0, {}))
            if not isinstance(row, Mapping):
                raise InputError(f"{path}:1: a row must be an object, not {type(row).__name__}")
            self._first_rows[path] = row
        return self._first_rows[path]

    def document(self, path: Path) -> Any:
        """What a JSON file holds."""
        if path not in self._documents:
            self._documents[path] = read_document(path)
        return self._documents[path]

    def rows(self, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Each row with its file and line."""
        for line, row in read_rows(path):
            if not isinstance(row, Mapping):
                raise InputError(f"{path}:{line}: a row must be an object, not {type(row).__name__}")
            yield f"{path}:{line}", row


def check_one_model(source: Source, models: Iterable[object]) -> None:
    """Refuse a source with several models: a pool holds the answers of one.

    Args:
        source: to import.
        models: of its files, by a name or by the folder or file that each has for itself.
    """
    names = sorted(set(map(str, models)))
    if len(names) > 1:
        raise InputError(
            f"{source.path} has the results of {len(names)} models or runs, such as {names[0]} and {names[1]}: "
            "import each alone"
        )


def read_document(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: the file is not JSON ({error})") from None


def needed(row: Mapping[str, Any], name: str, where: str) -> Any:
    """A field that a row must have."""
    if row.get(name) is None:
        raise InputError(f"{where}: the row has no {name!r}; it has {', '.join(row)}")
    return row[name]


def object_in(row: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """A field that is an object; empty where the row does not have it."""
    value = row.get(name)
    if not isinstance(value, Mapping | None):
        raise InputError(f"{where}: {name} must be an object, not {type(value).__name__}")
    return value or {}


def list_in(row: Mapping[str, Any], name: str, where: str) -> list[Any]:
    """A field that is a list; empty where the row does not have it."""
    value = row.get(name)
    if not isinstance(value, list | None):
        raise InputError(f"{where}: {name} must be a list, not {type(value).__name__}")
    return value or []


def objects_in(row: Mapping[str, Any], name: str, where: str) -> list[Mapping[str, Any]]:
    """A field that is a list of objects; empty where the row does not have it."""
    values = list_in(row, name, where)
    for value in values:
        if not isinstance(value, Mapping):
            raise InputError(f"{where}: {name} must hold objects, not {type(value).__name__}")
    return values


def id_in(row: Mapping[str, Any], name: str, where: str) -> str | int:
    """A field that the row must have, a text or an integer."""
    value = needed(row, name, where)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{where}: {name} must be text or an integer, not {type(value).__name__}")
    return value
