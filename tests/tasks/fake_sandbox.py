"""A sandbox that isolates nothing, in this process: for programs that these tests themselves wrote."""

import io
import math
from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from unittest import mock

from vpo.sandbox.verdicts import Outcome, Verdict


@dataclass(frozen=True)
class Output:
    value: Any = None
    failure: Verdict | None = None


class FakeSandbox:
    """Runs programs in this process. A program that holds `broken` is an infrastructure error."""

    def __init__(self, broken="BROKEN"):
        self.broken = broken
        self.calls = []  # the programs and numbers of cases of each call

    def judge_many(self, jobs):
        self.calls.append([(program, len(cases)) for program, cases in jobs])
        return [[self._judge(program, case) for case in cases] for program, cases in jobs]

    def outputs_many(self, jobs):
        return [[self._run(program, given) for given in inputs] for program, inputs in jobs]

    def _judge(self, program, case):
        found = self._run(program, case.given)
        if found.failure:
            return found.failure
        right = same(found.value, case)
        return Verdict(Outcome.PASSED) if right else Verdict(Outcome.FAILED, "wrong answer", repr(found.value)[:80])

    def _run(self, program, given):
        if self.broken in program.source:
            return Output(failure=Verdict(Outcome.ERROR, detail="told to"))
        printed = io.StringIO()
        space = {"__name__": "__main__"}
        try:
            if program.entry is None:
                with redirect_stdout(printed), mock.patch("sys.stdin", io.StringIO(given)):
                    exec(program.source, space)
                return Output(printed.getvalue())
            with redirect_stdout(printed):
                exec(program.source, space)
                owner, _, method = program.entry.rpartition(".")
                function = getattr(space[owner](), method) if owner else space[program.entry]
                return Output(function(*deepcopy(given)))
        except (Exception, SystemExit) as error:
            return Output(failure=Verdict(Outcome.FAILED, "exception", f"{type(error).__name__}: {error}"))


def same(value, case):
    if case.by == "text":
        return value.split() == case.expected.split()
    if case.by == "set":
        return set(value) == set(case.expected)
    return near(value, case.expected, case.atol)


def near(value, expected, atol):
    if isinstance(expected, list | tuple) and isinstance(value, type(expected)):
        pairs = zip(value, expected, strict=False)
        return len(value) == len(expected) and all(near(one, other, atol) for one, other in pairs)
    numbers = isinstance(value, int | float) and isinstance(expected, int | float)
    if numbers and math.isclose(value, expected, rel_tol=1e-7, abs_tol=atol or 0.0):
        return True
    return bool(value == expected)
