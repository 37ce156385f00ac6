"""Exceptions of a user's scoring code: the reward of that answer is unknown, and training continues, for a while."""

import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

from vpo.util.errors import InputError, one_line

MOST_IN_A_ROW = 64  # answers, or sets of answers, on which the code raises: it would on all others too
SHOWN = 60  # characters of an answer


class UserErrors:
    """Counts exceptions, warns of the first of each kind, and raises after too many in a row."""

    def __init__(self, source: str) -> None:
        """Take a name of the code, for messages."""
        self.source = source
        self.in_a_row = self.uncounted = 0
        self.last = ""  # the last exception, in words
        self._warned: set[str] = set()

    def passed(self) -> None:
        """Note an answer that was scored."""
        self.in_a_row = 0

    def raised(self, error: Exception, answers: Sequence[str | None]) -> None:
        """Note an exception on one answer, or on a set of which one is to blame.

        An `InputError` is a message to the user that training cannot continue, and is raised again.
        """
        if isinstance(error, InputError):
            raise error
        self.in_a_row += 1
        self.uncounted += 1
        kind, text = _described(error)
        self.last = f"{self.source} raised {text}"
        shown = " | ".join(repr(answer[:SHOWN]) for answer in answers if answer is not None)
        if self.in_a_row >= MOST_IN_A_ROW:
            raise InputError(
                f"{self.source} raised on {self.in_a_row} answers in a row, last {text} on {shown}"
            ) from error
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(
                f"{self.source} raised {text} on {shown}: the reward is unknown, and the rollout is left out; "
                "vpo/raised counts these",
                stacklevel=6,
            )

    def counted(self) -> dict[str, tuple[float, int]]:
        """How many exceptions there were since the last call, for the log."""
        count, self.uncounted = self.uncounted, 0
        return {"raised": (count, 0)}


def _described(error: Exception) -> tuple[str, str]:
    """The type of an exception with the line that raised it, and both with its message."""
    frames = traceback.extract_tb(error.__traceback__)
    line = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    name = type(error).__name__
    return f"{name} {line}", f"{name}: {one_line(error)} ({line})"
