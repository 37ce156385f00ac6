"""Scores of a judge on disk: shared by threads and processes, intact after a kill.

Two tables. ``scores`` holds the numbers of each key. The first score of a key stays, and every process uses it.
``claims`` says which call is requesting the score of a key, so that others wait for it instead of requesting it too. A
claim ends with its process, and expires unless it is renewed, so that a process that dies or hangs blocks nobody.
"""

import json
import os
import sqlite3
import time
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from vpo.util.errors import InputError

FILE = "judge.sqlite"
LOCK_TIMEOUT = 10.0  # seconds to wait for other writers
QUERY_KEYS = 500  # keys per query
CLAIM_SECONDS = 6.0  # until a claim that is not renewed expires
RENEW_SECONDS = 1.0
TABLES = (
    "CREATE TABLE IF NOT EXISTS scores (key TEXT PRIMARY KEY, numbers TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID",
)


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
        """Connect, for use in the calling thread. At the end its claims are released."""
        try:
            connection = self._connect()
        except sqlite3.Error as error:
            _warn(self.path, error)
            connection = sqlite3.connect(":memory:")
            _create_tables(connection)
        with closing(connection):
            cache = CacheConnection(self.path, connection)
            try:
                yield cache
            finally:
                cache.release_all()

    def _connect(self) -> sqlite3.Connection:
        """Connect in WAL mode: a kill in the middle of a write undoes that write alone."""
        deadline = time.monotonic() + LOCK_TIMEOUT
        while True:
            connection = sqlite3.connect(self.path, timeout=LOCK_TIMEOUT)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                _create_tables(connection)
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
        self._owner = f"{os.getpid()} {uuid.uuid4().hex}"
        self._claimed_at = 0.0  # time of the last claim or renewal

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """Values of the keys that are known; None for a row that is not JSON."""
        try:
            return {key: _decoded(text) for key, text in self._select("key, numbers", "scores", keys)}
        except sqlite3.Error as error:
            _warn(self.path, error)
            return {}

    def put(self, scores: Mapping[str, list[float]]) -> dict[str, Any]:
        """Save scores, and return the stored ones: another process may have been first. Releases their claims."""
        rows = [(key, json.dumps(numbers)) for key, numbers in scores.items()]
        try:
            with self._transaction():
                self.connection.executemany("INSERT OR IGNORE INTO scores VALUES (?, ?)", rows)
                self._delete_claims(scores)
                return self.get(scores)
        except sqlite3.Error as error:
            _warn(self.path, error)
            return dict(scores)

    def discard(self, values: Mapping[str, Any]) -> None:
        """Remove the rows of keys that still hold these values, which are damaged."""
        try:
            with self._transaction():
                stored = self.get(values)
                # As text, since NaN differs from itself.
                damaged = [(key,) for key, value in stored.items() if json.dumps(value) == json.dumps(values[key])]
                self.connection.executemany("DELETE FROM scores WHERE key = ?", damaged)
        except sqlite3.Error as error:
            _warn(self.path, error)

    def claim(self, keys: Iterable[str]) -> list[str]:
        """Claim the keys that have no score and that no other call has claimed, and return them.

        Where the file cannot be written all are returned: each process then requests for itself.
        """
        keys, now = list(keys), time.time()
        try:
            with self._transaction():
                # One that would be valid for longer than any is of a clock that was set back.
                self.connection.execute("DELETE FROM claims WHERE until < ? OR until > ?", (now, now + CLAIM_SECONDS))
                owners = [owner for (owner,) in self.connection.execute("SELECT DISTINCT owner FROM claims")]
                dead = [(owner,) for owner in owners if not _is_running(int(owner.partition(" ")[0]))]
                self.connection.executemany("DELETE FROM claims WHERE owner = ?", dead)
                taken = {key for table in ("scores", "claims") for (key,) in self._select("key", table, keys)}
                free = [key for key in keys if key not in taken]
                rows = [(key, self._owner, now + CLAIM_SECONDS) for key in free]
                self.connection.executemany("INSERT INTO claims VALUES (?, ?, ?)", rows)
        except sqlite3.Error as error:
            _warn(self.path, error)
            return keys
        self._claimed_at = now
        return free

    def renew(self) -> None:
        """Extend the claims of this call; does nothing within a second of the last time."""
        now = time.time()
        if not self._claimed_at <= now < self._claimed_at + RENEW_SECONDS:
            self._claimed_at = now
            try:
                with self._transaction():
                    self.connection.execute(
                        "UPDATE claims SET until = ? WHERE owner = ?", (now + CLAIM_SECONDS, self._owner)
                    )
            except sqlite3.Error as error:
                _warn(self.path, error)

    def release(self, keys: Iterable[str]) -> None:
        """Give up the claims of this call on some keys."""
        try:
            with self._transaction():
                self._delete_claims(keys)
        except sqlite3.Error as error:
            _warn(self.path, error)

    def release_all(self) -> None:
        """Give up all claims of this call."""
        if self._claimed_at:
            try:
                with self._transaction():
                    self.connection.execute("DELETE FROM claims WHERE owner = ?", (self._owner,))
            except sqlite3.Error as error:
                _warn(self.path, error)

    def _delete_claims(self, keys: Iterable[str]) -> None:
        rows = [(self._owner, key) for key in keys]
        self.connection.executemany("DELETE FROM claims WHERE owner = ? AND key = ?", rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction that no other process writes within: what it reads is still true when it writes."""
        with self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            yield

    def _select(self, columns: str, table: str, keys: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        keys = list(keys)
        for start in range(0, len(keys), QUERY_KEYS):
            part = keys[start : start + QUERY_KEYS]
            marks = ", ".join("?" * len(part))
            yield from self.connection.execute(f"SELECT {columns} FROM {table} WHERE key IN ({marks})", part)


def _create_tables(connection: sqlite3.Connection) -> None:
    for table in TABLES:
        connection.execute(table)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:  # dead, or in another container: then a score may be requested twice, and one is kept
        return False
    except PermissionError:
        return True
    return True


def _decoded(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        return None


def _warn(path: Path, error: Exception) -> None:
    warnings.warn(f"{path}: the judge continues without its cache: {error}", stacklevel=2)
