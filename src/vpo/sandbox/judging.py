"""Judges one program: runs it on its inputs, and reads and compares each output as it arrives.

This runs in a process of its own (`vpo.sandbox.server`), since whatever a program returns or prints is read here. An
output is refused by its size before anything of it becomes an object: it may be some times as large as the expected
one. Reading and comparing it has a budget of processor time and of memory. What exceeds them fails that test alone.
"""

import json
import marshal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from vpo.sandbox.budget import OverBudgetError
from vpo.sandbox.comparing import agrees
from vpo.sandbox.inside.values import UnpackError, pack, unpack
from vpo.sandbox.isolation import Isolation
from vpo.sandbox.processes import SandboxedProcess, StartError, TimeLeft
from vpo.sandbox.verdicts import Case, Limits, Program, Status, Verdict, printable
from vpo.sandbox.zygote import Zygote

ATTEMPTS = 3  # of a start that fails, or of a process that is killed from outside
PAUSE = 0.2  # seconds before the second attempt, then twice as long: a limit of the user's may be reached
TIMES = 16  # an output may be so many times as large as the expected one,
BEYOND = 1 << 16  # and so many bytes larger,
SMALL = 1024  # bytes of an output that cannot end the process that reads it
MORE_NODES = 8192  # with so many values more in it
READ_SECONDS = 1.0  # of processor time for reading and comparing an output, and as much for each MB that is expected
FREE = 0.5  # share of it that is not charged to the program: what is honest takes less
READ_MB = 256  # of memory for it, and 64 times its size
RETURN_SECONDS = 0.05  # of processor time for a caller to take in 1 MB of output, in proportion for larger limits
NODES = (b"[", b"{", b",", b":")  # what separates values in JSON
ONLY_AST = 0x400  # ast.PyCF_ONLY_AST: importing ast takes long


@dataclass(frozen=True)
class Job:
    """A program and its test cases.

    Attributes:
        program: what is judged.
        cases: its inputs and expected outputs.
        limits: of the program.
        isolation: the backend that confines it.
        compared: whether outputs are compared; otherwise they are returned.
        first: index of the first case to judge.
        spent: seconds that the program was charged for in the cases before it.
        parsed: whether the source is read here, so that one that is not Python need not be started.
    """

    program: Program
    cases: list[Case]
    limits: Limits
    isolation: Isolation
    compared: bool = True
    first: int = 0
    spent: float = 0.0
    parsed: bool = True


@dataclass(frozen=True)
class Result:
    """The result of one case.

    Attributes:
        verdict: passed, where outputs are not compared, says that there is one.
        spent: seconds that the program was charged for until then.
        data: the output as `marshal` writes it, where outputs are not compared.
    """

    verdict: Verdict
    spent: float = 0.0
    data: bytes = b""


Budget = Callable[[float, int], AbstractContextManager[None]]


def no_budget(seconds: float, megabytes: int) -> AbstractContextManager[None]:
    """For programs that are trusted."""
    return nullcontext()


def judge(
    job: Job, zygote: Zygote, budget: Budget = no_budget, before_reading: Callable[[], None] = lambda: None
) -> Iterator[Result]:
    """Yield the result of each case. The program is started again after a test that it did not survive.

    Args:
        job: the program and its cases.
        zygote: the process that the program's is forked from.
        budget: limits what a block uses: seconds of processor time, megabytes of further memory.
        before_reading: called before an output is read that may end the process.
    """
    if job.parsed and (problem := _syntax_problem(job.program, budget)):
        yield from _rest(job, job.first, problem, job.spent)
        return
    index, spent, failures, starts = job.first, job.spent, 0, 0
    wall = job.limits.wall_seconds(job.limits.seconds)
    while index < len(job.cases):
        try:
            again = starts > 0 or job.spent > 0
            starts += 1
            with SandboxedProcess(job.program, job.limits, job.isolation, zygote, again) as process:
                while process.alive and index < len(job.cases):
                    if spent >= job.limits.seconds or wall <= 0:
                        detail = f"the {job.limits.seconds:g} s of the program were used up"
                        yield from _rest(job, index, Verdict(Status.NOT_RUN, detail=detail), spent)
                        return
                    reading = _Reading(job, index, budget)
                    seconds = min(job.limits.test_seconds, job.limits.seconds - spent)
                    time_left = TimeLeft(seconds, min(wall, job.limits.wall_seconds(seconds)))
                    began, before = time.monotonic(), process.spent
                    answer = process.run(index, encode(reading.case.input), time_left, reading.most)
                    wall -= time.monotonic() - began
                    spent += process.spent - before
                    if answer is not None:
                        if isinstance(answer, bytes) and len(answer) > SMALL:
                            before_reading()
                        began = time.process_time()
                        result = reading.read(answer)
                        spent += max(0.0, time.process_time() - began - FREE * reading.seconds(answer))
                        yield replace(result, spent=spent)
                        index += 1
        except (StartError, OSError) as error:
            failures += 1
            if failures == ATTEMPTS:
                yield from _rest(job, index, Verdict(Status.ERROR, detail=printable(str(error), 300)), spent)
                return
            time.sleep(PAUSE * 2 ** (failures - 1))


def encode(value: tuple[Any, ...] | str) -> bytes:
    """An input in the form in which it is sent into the sandbox."""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else marshal.dumps(tuple(value))


def _rest(job: Job, index: int, verdict: Verdict, spent: float) -> Iterator[Result]:
    return (Result(verdict, spent) for _ in job.cases[index:])


def _syntax_problem(program: Program, budget: Budget) -> Verdict | None:
    """The verdict on a program that is not Python, which need not be started."""
    try:
        with budget(READ_SECONDS, READ_MB):
            compile(program.source, "solution.py", "exec", dont_inherit=True, flags=ONLY_AST)
    except (SyntaxError, ValueError) as error:
        return Verdict(Status.FAILED, "exception", printable(f"{type(error).__name__}: {error}"))
    except (MemoryError, RecursionError, OverflowError, OverBudgetError):
        return None  # the sandbox shows what becomes of it
    return None


@dataclass
class _Reading:
    """The answer to one case, to be read."""

    job: Job
    index: int
    budget: Budget

    @property
    def case(self) -> Case:
        return self.job.cases[self.index]

    @cached_property
    def expected(self) -> bytes:
        """The expected output in the form in which an output arrives."""
        if self.job.program.entry is None:
            return str(self.case.expected).encode("utf-8", "replace")
        return json.dumps(pack(self.case.expected)).encode()

    def most(self) -> int:
        """The most bytes that an output may have."""
        if not self.job.compared:
            return self.job.limits.output_bytes
        return min(self.job.limits.output_bytes, TIMES * len(self.expected) + BEYOND)

    def seconds(self, answer: bytes | Verdict) -> float:
        """Processor time for reading an answer."""
        if isinstance(answer, Verdict) or len(answer) <= BEYOND:
            return READ_SECONDS
        return READ_SECONDS * (1 + len(self.expected if self.job.compared else answer) / 1e6)

    def read(self, answer: bytes | Verdict) -> Result:
        """The result that an answer gives: its output compared, or why it holds none."""
        if isinstance(answer, Verdict):
            return Result(answer)
        try:
            with self.budget(self.seconds(answer), READ_MB + 64 * len(answer) // 1_000_000):
                return self._read(answer)
        except OverBudgetError:
            return _failed("timeout", "its output takes too long to read")
        except MemoryError:
            return _failed("memory", "its output takes too much memory to read")

    def _read(self, answer: bytes) -> Result:
        """As `read`. The program may have forged all of the answer, so it counts as an output at most."""
        line, _, printed = answer.partition(b"\n")
        if self._has_too_many_nodes(line):
            return _failed("wrong answer", "output of far more values than are expected")
        try:
            if line == b'["exited"]' and self.job.program.entry is None:
                return self._finish(printed.decode("utf-8", "replace"))
            test, kind, content = json.loads(line)
            if test != self.index or isinstance(test, bool) or not isinstance(kind, str):
                raise ValueError
            if kind == "returned":
                is_text = self.job.program.entry is None
                return self._finish(printed.decode("utf-8", "replace") if is_text else unpack(content))
            if not isinstance(content, str):
                raise ValueError
        except (ValueError, TypeError, RecursionError, UnpackError):
            return _failed("forbidden", "its line on the channel is not a result")
        return _failed(kind if kind in ("memory", "forbidden") else "exception", printable(content))

    def _has_too_many_nodes(self, line: bytes) -> bool:
        """Whether a line holds far more values than the expected output: memory and time go by values, not by bytes."""
        nodes = sum(map(line.count, NODES))
        if nodes <= MORE_NODES or not self.job.compared:
            return False
        return nodes > MORE_NODES + TIMES * sum(map(self.expected.count, NODES))

    def _finish(self, value: Any) -> Result:
        if not self.job.compared:
            return self._returned(value)
        case = self.case
        if self.job.program.entry is None and case.compare == "value":
            case = replace(case, compare="text")
        if agrees(case, value):
            return Result(Verdict(Status.PASSED))
        return _failed("wrong answer", _brief(value))

    def _returned(self, value: Any) -> Result:
        """A value for the caller, which takes it in as `marshal` reads it: the same is done here first."""
        try:
            data = marshal.dumps(value)
        except ValueError:
            return _failed("exception", f"it returned {_brief(value)}, which holds more than plain values")
        began = time.process_time()
        marshal.loads(data)
        seconds = RETURN_SECONDS * max(1.0, self.job.limits.output_bytes / 1e6)
        if time.process_time() - began > seconds:
            return _failed("timeout", "its output takes too long to read")
        return Result(Verdict(Status.PASSED), data=data)


def _failed(reason: str, detail: str) -> Result:
    return Result(Verdict(Status.FAILED, reason, detail))


def _brief(value: Any) -> str:
    """The beginning of a value as text, without the text of all of it."""
    if isinstance(value, str):
        return printable(repr(value[:80]), 80)
    if isinstance(value, int) and value.bit_length() > 4096:  # Python prints no integer of more than 4,300 digits
        return "a number of very many digits"
    if isinstance(value, list | tuple | set | frozenset | dict) and len(value) > 80:
        return f"{type(value).__name__} of {len(value):,}"
    try:
        return printable(repr(value), 80)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"
