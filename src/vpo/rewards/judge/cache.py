"""Scores of a judge on disk: shared by threads and processes, intact after a kill."""

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
LOCK_TIMEOUT = 10.0  # seconds to wait for other writers
QUERY_KEYS = 500  # keys per query
TABLE = "CREATE TABLE IF NOT EXISTS scores (key TEXT PRIMARY KEY, numbers TEXT NOT NULL) WITHOUT ROWID"


class JudgeCache:
    """Scores by key, in an SQLite file of a folder on a local disk.

    Where the file cannot be read or written later, as on a full disk, the judge continues without, with a warning.
    """

    def __init__(self, folder: str | Path) -> None:
        """Open the cache of a folder, which is created if it is missing."""
        self.path = Path(folder) / FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._connect()):
                pass
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"cache {folder} cannot be used: {error}") from None

    @contextmanager
    def open(self) -> Iterator["CacheConnection"]:
        """Connect, for use in the calling thread."""
        try:
            connection = self._connect()
        except sqlite3.Error as error:
            _warn(self.path, error)
            connection = sqlite3.connect(":memory:")
            connection.execute(TABLE)
        with closing(connection):
            yield CacheConnection(self.path, connection)

    def _connect(self) -> sqlite3.Connection:
        """Connect in WAL mode: a kill in the middle of a write undoes that write alone."""
        deadline = time.monotonic() + LOCK_TIMEOUT
        while True:
            connection = sqlite3.connect(self.path, timeout=LOCK_TIMEOUT)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(TABLE)
                return connection
            except sqlite3.Error as error:
                connection.close()
                # SQLite's own timeout does not cover several processes that create the file concurrently.
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


class CacheConnection:
    """An open cache."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """Take the connection, and the path for warnings."""
        self.path, self.connection = path, connection

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """Values of the keys that are known; rows that are not JSON are skipped."""
        keys, values = list(keys), {}
        try:
            for start in range(0, len(keys), QUERY_KEYS):
                part = keys[start : start + QUERY_KEYS]
                marks = ", ".join("?" * len(part))
                for key, numbers in self.connection.execute(
                    f"SELECT key, numbers FROM scores WHERE key IN ({marks})", part
                ):
                    with suppress(ValueError, TypeError):
                        values[key] = json.loads(numbers)
        except sqlite3.Error as error:
            _warn(self.path, error)
        return values

    def put(self, scores: Mapping[str, list[float]]) -> None:
        """Save scores in one transaction."""
        rows = [(key, json.dumps(numbers)) for key, numbers in scores.items()]
        try:
            with self.connection:
                self.connection.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            _warn(self.path, error)


def _warn(path: Path, error: Exception) -> None:
    warnings.warn(f"{path}: the judge continues without its cache: {error}", stacklevel=2)
