"""What is run, on what, within which bounds, and what became of it."""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Any

from vpo.util.errors import InputError


@dataclass(frozen=True)
class Program:
    """Source that nobody trusts.

    Attributes:
        source: Python.
        entry: the function to call, or "Class.method"; without one the program reads standard input and prints.
    """

    source: str
    entry: str | None = None


@dataclass(frozen=True)
class Case:
    """One test: what goes in, and what must come out, which the program never sees.

    Attributes:
        given: the arguments, a tuple; or the text on standard input.
        expected: the value that must be returned; or the text that must be printed.
        atol: how far a number may be off; None for as good as equal.
        by: how the two are compared: "value" (or "text", where there is no entry), "set" (order and repetition do not
            count), "zero" (any zero of the polynomial of these coefficients, given lowest power first).
    """

    given: tuple[Any, ...] | str
    expected: Any
    atol: float | None = None
    by: str = "value"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a program may use. Seconds are of the wall, as a loop that sleeps blocks a worker too.

    Attributes:
        test_seconds: for each test.
        seconds: for all tests of a program together; those that it leaves no time for are not run.
        memory_mb: of address space.
        output_bytes: of what a test prints, or returns.
        disk_mb: of its private temporary folder.
    """

    test_seconds: float = 4.0
    seconds: float = 20.0
    memory_mb: int = 512
    output_bytes: int = 1_000_000
    disk_mb: int = 16

    def __post_init__(self) -> None:
        """Refuse limits within which nothing can run."""
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise InputError(f"{name} must be a number above 0, not {value!r}")

    @property
    def processor_seconds(self) -> int:
        """How much processor time a program has, whatever its threads do with it."""
        return ceil(self.seconds) + 1


class Outcome(StrEnum):
    """What became of a test."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"  # the program's time was up
    ERROR = "infrastructure error"  # not the program's doing: nothing is known of it


@dataclass(frozen=True)
class Verdict:
    """What became of a test, and why.

    Attributes:
        outcome: one of four.
        reason: of a failure: "wrong answer", "exception", "timeout", "memory" or "forbidden".
        detail: a short text for people.
    """

    outcome: Outcome
    reason: str = ""
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether the test was passed."""
        return self.outcome is Outcome.PASSED


@dataclass(frozen=True)
class Output:
    """What a program made of one input: a value, or what it printed; or why there is nothing."""

    value: Any = None
    failure: Verdict | None = None

    @property
    def ok(self) -> bool:
        """Whether the program came to an end."""
        return self.failure is None


def shown(text: str, most: int = 200) -> str:
    """Return the beginning of a candidate's text as one that can be printed and written to any file."""
    return "".join(each if each.isprintable() else " " for each in text[:most])
