"""The values that go in and out of a sandbox: program, test case, limits, output and verdict."""

from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil
from typing import Any

from vpo.util.errors import InputError


@dataclass(frozen=True)
class Program:
    """Untrusted source.

    Attributes:
        source: Python.
        entry: the function to call, or "Class.method"; without one the program reads standard input and prints.
    """

    source: str
    entry: str | None = None


@dataclass(frozen=True)
class Case:
    """One test case: an input, and the expected output, which the program never sees.

    Attributes:
        input: the arguments, a tuple; or the text on standard input.
        expected: the value that must be returned; or the text that must be printed.
        atol: absolute tolerance for numbers; None for the defaults of `vpo.sandbox.comparing`.
        compare: how output and expected output are compared: "value" (or "text", where there is no entry), "equal"
            (Python's ==), "set" (order and repetition do not count), "zero" (any zero of the polynomial whose
            coefficients the input holds, lowest power first), "anything" (it need only return); and as published judges
            do: "evalplus", "livecodebench", "livecodebench_text".
        also: further outputs that are accepted.
    """

    input: tuple[Any, ...] | str
    expected: Any
    atol: float | None = None
    compare: str = "value"
    also: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a program may use.

    Seconds are processor time of all threads, and time asleep, since a program that sleeps holds a worker. Waiting for
    a core costs nothing, so a busy machine fails no program. The wall clock is a second limit, ten times as large.

    Attributes:
        test_seconds: for each test.
        seconds: for all tests of a program together; tests that come after that are not run.
        memory_mb: address space.
        output_bytes: of what a test prints, or returns.
        disk_mb: size of the private temporary folder.
        threads: at the same time.
    """

    test_seconds: float = 4.0
    seconds: float = 20.0
    memory_mb: int = 512
    output_bytes: int = 1_000_000
    disk_mb: int = 16
    threads: int = 16

    def __post_init__(self) -> None:
        """Refuse limits within which nothing can run."""
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise InputError(f"{name} must be a number above 0, not {value!r}")

    @staticmethod
    def wall_seconds(seconds: float) -> float:
        """What the wall clock allows for a number of charged seconds, on a machine that is very busy."""
        return 10.0 * seconds + 10.0

    @property
    def processor_seconds(self) -> int:
        """Processor time of all threads of a program together."""
        return ceil(self.seconds) + 1


class Status(StrEnum):
    """The result of a test case."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"  # the program's time was used up
    ERROR = "infrastructure error"  # not the program's fault: whether it would pass is unknown


@dataclass(frozen=True)
class Verdict:
    """The result of a test case, and why.

    Attributes:
        status: one of four.
        reason: of a failure: "wrong answer", "exception", "timeout", "memory" or "forbidden".
        detail: a short text for people.
        seconds: that the test took: processor time, and time asleep. No part of what makes two verdicts equal.
    """

    status: Status
    reason: str = ""
    detail: str = ""
    seconds: float = field(default=0.0, compare=False)

    @property
    def passed(self) -> bool:
        """Whether the status is PASSED."""
        return self.status is Status.PASSED


@dataclass(frozen=True)
class Output:
    """What a program returned or printed for one input; or the verdict on why it did neither."""

    value: Any = None
    failure: Verdict | None = None


def printable(text: str, longest: int = 200) -> str:
    """The beginning of a program's text, safe to print and to write to any file."""
    return "".join(character if character.isprintable() else " " for character in text[:longest])
