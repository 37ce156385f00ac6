"""The sandbox from the caller's side: programs and test cases in, verdicts out, several programs in parallel."""

import marshal
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

from vpo.core.checks import as_integer
from vpo.sandbox.comparing import agrees
from vpo.sandbox.isolation import ISOLATIONS, SAFE, Isolation
from vpo.sandbox.processes import run_program
from vpo.sandbox.verdicts import Case, Limits, Output, Program, Status, Verdict, printable
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
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="sandbox")

    def grade(self, program: Program, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict for each test case of one program."""
        return self.grade_many([(program, cases)])[0]

    def grade_many(self, jobs: Iterable[tuple[Program, Sequence[Case]]]) -> list[list[Verdict]]:
        """One verdict for each test case of each program, in order."""
        return self._run_all([(self._verdicts, program, list(cases)) for program, cases in jobs])

    def outputs_many(self, jobs: Iterable[tuple[Program, Sequence[tuple[Any, ...] | str]]]) -> list[list[Output]]:
        """The output of each program for each of its inputs, compared with nothing."""
        return self._run_all([(self._outputs, program, list(inputs)) for program, inputs in jobs])

    def close(self) -> None:
        """End the workers. Programs that have started finish, within their limits."""
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> "Sandbox":
        """Nothing is started before the first program."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the workers."""
        self.close()

    def _run_all(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        futures = [self._pool.submit(*call) for call in calls]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def _outputs(self, program: Program, inputs: list[tuple[Any, ...] | str]) -> list[Output]:
        encoded = [encode(each, program) for each in inputs]
        return run_program(program, encoded, self.limits, self.isolation) if encoded else []

    def _verdicts(self, program: Program, cases: list[Case]) -> list[Verdict]:
        outputs = self._outputs(program, [case.input for case in cases])
        return [_verdict(case, output, program) for case, output in zip(cases, outputs, strict=True)]


def encode(value: tuple[Any, ...] | str, program: Program) -> bytes | str:
    """An input in the form in which it is sent into the sandbox."""
    if program.entry is None:
        if not isinstance(value, str):
            raise InputError(f"input must be text for a program that reads standard input, not {value!r:.60}")
        return value
    try:
        return marshal.dumps(tuple(value))
    except (ValueError, TypeError) as error:
        raise InputError(f"input must hold numbers, texts and collections, not {value!r:.60} ({error})") from None


def _verdict(case: Case, output: Output, program: Program) -> Verdict:
    if output.failure is not None:
        return output.failure
    if program.entry is None and case.compare == "value":
        case = replace(case, compare="text")
    if agrees(case, output.value):
        return Verdict(Status.PASSED)
    return Verdict(Status.FAILED, "wrong answer", _brief(output.value))


def _brief(value: Any) -> str:
    try:
        return printable(repr(value), 80)
    except ValueError:  # Python prints no integer of more than 4,300 digits
        return "a number of very many digits"


@cache
def unavailable_reason(isolation: Isolation) -> str:
    """Why an isolation backend does not work on this machine; empty where a program was run in it."""
    if problem := isolation.missing():
        return problem
    program = Program("def double(number):\n    return 2 * number\n", "double")
    output = run_program(program, [encode((21,), program)], Limits(), isolation)[0]
    return "" if output.value == 42 else output.failure.detail if output.failure else "it does not run programs"


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
