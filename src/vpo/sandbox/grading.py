"""The sandbox from the caller's side: programs and test cases in, verdicts out, several programs in parallel."""

import os
from collections.abc import Iterable, Sequence
from functools import cache
from threading import BoundedSemaphore
from typing import Any

from vpo.core.checks import as_integer
from vpo.sandbox.client import judge_all, outputs, verdicts
from vpo.sandbox.comparing import COMPARISONS
from vpo.sandbox.isolation import ISOLATIONS, SAFE, Isolation
from vpo.sandbox.judging import Job, encode, judge
from vpo.sandbox.verdicts import Case, Limits, Output, Program, Verdict
from vpo.sandbox.zygote import Zygote
from vpo.util.errors import InputError


class Sandbox:
    """Runs programs in parallel, each isolated from the machine and from the others."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        workers: int | None = None,
        isolation: str | None = None,
        unsafe: bool = False,
    ) -> None:
        """Choose an isolation backend, and refuse where none works.

        Args:
            limits: of each program.
            workers: how many programs run in parallel; by default the number of cores, divided by the number of
                processes of a launcher.
            isolation: "bubblewrap" or "landlock", or "none" together with `unsafe`; by default the first that works.
            unsafe: whether to run programs without isolation where no backend works.
        """
        self.limits = limits or Limits()
        self.isolation = _isolation(isolation, unsafe=unsafe) if isolation else find_isolation(unsafe=unsafe)
        share = len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self.workers = as_integer(workers, "workers", 1) if workers else max(1, share)
        self._slots = BoundedSemaphore(self.workers)

    def grade(self, program: Program, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict for each test case of one program."""
        return self.grade_many([(program, cases)])[0]

    def grade_many(self, jobs: Iterable[tuple[Program, Sequence[Case]]]) -> list[list[Verdict]]:
        """One verdict for each test case of each program, in order."""
        checked = [self._job(program, list(cases)) for program, cases in jobs]
        return [verdicts(results) for results in judge_all(checked, self._slots)]

    def outputs_many(self, jobs: Iterable[tuple[Program, Sequence[tuple[Any, ...] | str]]]) -> list[list[Output]]:
        """The output of each program for each of its inputs, compared with nothing: for programs that are trusted.

        Values come into this process, up to `output_bytes` of text each.
        """
        checked = [
            self._job(program, [Case(each, None) for each in inputs], compared=False) for program, inputs in jobs
        ]
        return [outputs(results) for results in judge_all(checked, self._slots)]

    def close(self) -> None:
        """Nothing is kept between two calls."""

    def __enter__(self) -> "Sandbox":
        """Nothing is started before the first program."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the use of the sandbox."""
        self.close()

    def _job(self, program: Program, cases: list[Case], *, compared: bool = True) -> Job:
        for case in cases:
            _check(case, program)
        return Job(program, cases, self.limits, self.isolation, compared)


def _check(case: Case, program: Program) -> None:
    """Refuse a test case that cannot be judged."""
    if case.compare not in COMPARISONS:
        raise InputError(f"compare must be one of {', '.join(COMPARISONS)}, not {case.compare!r}")
    if program.entry is None and not isinstance(case.input, str):
        raise InputError(f"input must be text for a program that reads standard input, not {case.input!r:.60}")
    if program.entry is not None:
        try:
            encode(tuple(case.input))
        except (ValueError, TypeError) as error:
            message = f"input must hold numbers, texts and collections, not {case.input!r:.60} ({error})"
            raise InputError(message) from None


@cache
def unavailable_reason(isolation: Isolation) -> str:
    """Why an isolation backend does not work on this machine; empty where a program was run in it."""
    if problem := isolation.missing():
        return problem
    program = Program("def double(number):\n    return 2 * number\n", "double")
    with Zygote() as zygote:
        (result,) = judge(Job(program, [Case((21,), 42)], Limits(), isolation), zygote)
    return "" if result.verdict.passed else result.verdict.detail or "it does not run programs"


def _isolation(name: str, *, unsafe: bool) -> Isolation:
    """The isolation backend of a name, where it works."""
    if name not in ISOLATIONS:
        raise InputError(f"isolation must be one of {', '.join(ISOLATIONS)}, not {name!r}")
    if name not in SAFE and not unsafe:
        raise InputError(f"isolation={name!r} runs untrusted programs without isolation: that needs unsafe=True")
    if problem := unavailable_reason(ISOLATIONS[name]):
        raise InputError(f"sandbox: {name} does not work here: {problem}")
    return ISOLATIONS[name]


def find_isolation(*, unsafe: bool = False) -> Isolation:
    """The first isolation backend that works here; none at all only if `unsafe`."""
    problems = {}
    for name in SAFE:
        problems[name] = unavailable_reason(ISOLATIONS[name])
        if not problems[name]:
            return ISOLATIONS[name]
    if unsafe:
        return ISOLATIONS["none"]
    reasons = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
    raise InputError(
        f"untrusted programs cannot be isolated on this machine ({reasons}): {ISOLATIONS['bubblewrap'].install}, or "
        "run them without isolation by unsafe=True, --set unsafe=true"
    )


def shared(limits: Limits | None = None, *, unsafe: bool = False) -> Sandbox:
    """The one sandbox of this process with these limits."""
    return _shared(limits or Limits(), unsafe, os.getpid())


@cache
def _shared(limits: Limits, unsafe: bool, process: int) -> Sandbox:
    return Sandbox(limits=limits, unsafe=unsafe)
