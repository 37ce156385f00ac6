"""A log that is being written: what was appended to it since it was last read."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

LAST_STEP = 10**12  # a larger number is no step: no run gets there, and a page cannot draw it exactly


class LogTail:
    """Reads the rows that a growing JSONL file got since the last call; a line is read once it is complete.

    A resumed run replaces its logs by shorter ones. So the end of what was read is compared each time, and a file in
    which it is not there any more is read from its start.

    Attributes:
        damaged: how many lines were no rows, and were skipped.
        written: time of the last write, in seconds since 1970; None without a file.
    """

    def __init__(self, path: Path, most: int | None = None) -> None:
        """Set the file, which need not exist yet, and how many bytes to read at most: older lines are skipped."""
        self.path, self.most = path, most
        self.damaged = 0
        self.written: float | None = None
        self._offset, self._last = 0, b""

    def read(self) -> tuple[bool, Iterator[dict[str, Any]]]:
        """Whether the file begins anew, and the new rows of it. Iterate over them before the next call."""
        try:
            file = open(self.path, "rb")  # noqa: SIM115  # `_rows` closes it
        except OSError:
            anew, self.written = self._offset > 0, None
            self._offset, self._last = 0, b""
            return anew, iter(())
        status = os.fstat(file.fileno())
        self.written = status.st_mtime
        anew = not self._continues(file, status.st_size)
        if anew:
            self._offset, self._last, self.damaged = 0, b"", 0
        return anew, self._rows(file, status.st_size)

    def _continues(self, file: BinaryIO, size: int) -> bool:
        if size < self._offset:
            return False
        file.seek(self._offset - len(self._last))
        return file.read(len(self._last)) == self._last

    def _rows(self, file: BinaryIO, size: int) -> Iterator[dict[str, Any]]:
        with file:
            skipping = self.most is not None and size - self._offset > self.most
            if self.most is not None and skipping:
                self._offset = size - self.most
            file.seek(self._offset)
            while self._offset < size and (line := file.readline()).endswith(b"\n"):
                self._offset += len(line)
                self._last = line[-4096:]
                if skipping:
                    skipping = False  # the first line is the end of one that began earlier
                elif (row := _row(line)) is not None:
                    yield row
                else:
                    self.damaged += 1


def _row(line: bytes) -> dict[str, Any] | None:
    """The row of a line; None for one that is not an object with the number of a step."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    step = row.get("step") if isinstance(row, dict) else None
    return row if isinstance(step, int) and 0 <= step <= LAST_STEP else None
