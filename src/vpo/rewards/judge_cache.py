"""What a judge has said, on disk: shared by threads and processes, whole after a kill."""

import json
import sqlite3
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from vpo.util.errors import InputError

FILE = "judge.sqlite"
PATIENCE = 10.0  # seconds for others to finish what they write
PART = 500  # keys of one query
TABLE = "CREATE TABLE IF NOT EXISTS scores (key TEXT PRIMARY KEY, numbers TEXT NOT NULL) WITHOUT ROWID"


class Cache:
    """Scores by key, in an SQLite file of a folder on a local disk.

    A cache that cannot be read or written any more, on a full disk for one, is done without, with a warning.
    """

    def __init__(self, folder: str | Path) -> None:
        """Take the folder; it is made where it is missing."""
        self.path = Path(folder) / FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._connected()):
                pass
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"cache {folder} cannot be used: {error}") from None

    @contextmanager
    def opened(self) -> Iterator["Book"]:
        """Give what is in the cache, to the thread that asks."""
        try:
            connection = self._connected()
        except sqlite3.Error as error:
            _without(self.path, error)
            connection = sqlite3.connect(":memory:")
            connection.execute(TABLE)
        with closing(connection):
            yield Book(self.path, connection)

    def _connected(self) -> sqlite3.Connection:
        """Return a connection, whose log is written ahead: a kill in the middle of a write undoes that write alone."""
        deadline = time.monotonic() + PATIENCE
        while True:
            connection = sqlite3.connect(self.path, timeout=PATIENCE)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(TABLE)
                return connection
            except sqlite3.Error as error:
                connection.close()
                # Where several make the file at once, SQLite does not wait by itself.
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


class Book:
    """An open cache."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """Take the connection."""
        self.path, self.connection = path, connection

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the scores of those keys that are known, as far as nobody spoilt them."""
        wanted, found = list(keys), {}
        try:
            for start in range(0, len(wanted), PART):
                part = wanted[start : start + PART]
                marks = ", ".join("?" * len(part))
                for key, numbers in self.connection.execute(
                    f"SELECT key, numbers FROM scores WHERE key IN ({marks})", part
                ):
                    with suppress(ValueError, TypeError):
                        found[key] = json.loads(numbers)
        except sqlite3.Error as error:
            _without(self.path, error)
        return found

    def put(self, scores: Mapping[str, list[float]]) -> None:
        """Keep scores."""
        rows = [(key, json.dumps(numbers)) for key, numbers in scores.items()]
        try:
            with self.connection:
                self.connection.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            _without(self.path, error)


def _without(path: Path, error: Exception) -> None:
    warnings.warn(f"{path}: the judge goes on without its cache: {error}", stacklevel=2)
