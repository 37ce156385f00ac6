"""Runs Python that nobody trusts against test cases, and judges what comes out.

What it covers:

- A program never shares a process with the judge and never sees an expected output: it gets inputs and returns texts,
  which the judge reads as data. What it patches, prints, forges or raises is at most a wrong output.
- Under bubblewrap: no network, no process but its own, none of the host's files but the system's and Python's,
  read-only; a private /tmp of limited size that goes with it; no environment, no capabilities, no user's rights.
- A seccomp filter that allows what a single Python process with threads needs: no fork, no signal to anything, no
  socket, no ptrace, no mount, no keys, no BPF, no io_uring.
- Limits of memory, processor time, open files, file sizes and output; wall clocks for each test and for the whole
  program, kept by the judge. A test that loops or crashes costs that test; the next runs in a new process.
- Each program has a sandbox of its own, so that none reaches a neighbour's, and nothing of it is left.
- What goes wrong with the sandbox itself is told apart from what goes wrong in the program.

What it does not cover:

- A process table that nobody tidies: a program that ends itself behind bubblewrap leaves an ended process to the first
  process of the machine. In a container that must be one that reaps (``docker run --init``).
- Errors of the kernel. It is shared; who fears them runs the whole judge in a virtual machine.
- Side channels: how long others take, how full the machine is. Programs on one machine compete for its cores, so that a
  time limit is no fair measure of speed.
- Memory of the kernel's that counts towards no limit of a process: names of very many files in /tmp; threads, where
  root judges, whom the kernel allows as many as there is address space for. A cgroup around the judge bounds both.
- A machine that runs out of memory: what the kernel kills then has failed behind bubblewrap, and is tried again and
  then an infrastructure error behind Landlock. Workers times memory should fit.
- Without bubblewrap, under Landlock: there is no private /tmp (nothing can be written at all), and a program sees names
  and sizes of files that it cannot open.
- A program that is right on the given tests by knowing them: whoever trains on tests must keep others back.
- Other systems than Linux, other machines than x86_64 and aarch64: there it refuses, unless told ``unsafe=True``, which
  is a process with limits and no walls.
"""

import marshal
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from vpo.core.checks import as_integer
from vpo.sandbox.candidates import run_candidate
from vpo.sandbox.comparing import agrees
from vpo.sandbox.verdicts import Case, Limits, Outcome, Output, Program, Verdict, shown
from vpo.sandbox.walls import WALLS, Wall
from vpo.util.errors import InputError

__all__ = ["Case", "Limits", "Outcome", "Output", "Program", "Sandbox", "Verdict", "find_wall", "shared", "trouble"]

SAFE = ("bubblewrap", "landlock")


class Sandbox:
    """Runs programs, several at once, each behind a wall of its own."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        workers: int | None = None,
        wall: str | None = None,
        unsafe: bool = False,
    ) -> None:
        """Choose a wall, and refuse where there is none.

        Args:
            limits: of each program.
            workers: how many programs run at once; by default as many as there are cores, shared with the other
                processes of a launcher.
            wall: "bubblewrap" or "landlock"; the first that works by default.
            unsafe: whether to run programs without walls where there is none.
        """
        self.limits = limits or Limits()
        self.wall = WALLS[wall] if wall else find_wall(unsafe=unsafe)
        if wall and (problem := trouble(self.wall)):
            raise InputError(f"sandbox: {wall} does not work here: {problem}")
        share = len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self.workers = as_integer(workers, "workers", 1) if workers else max(1, share)
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="sandbox")

    def judge(self, program: Program, cases: Sequence[Case]) -> list[Verdict]:
        """Return what becomes of each test of a program."""
        return self.judge_many([(program, cases)])[0]

    def judge_many(self, jobs: Iterable[tuple[Program, Sequence[Case]]]) -> list[list[Verdict]]:
        """Return what becomes of each test of each program."""
        return self._all([(self._judged, program, list(cases)) for program, cases in jobs])

    def outputs_many(self, jobs: Iterable[tuple[Program, Sequence[tuple[Any, ...] | str]]]) -> list[list[Output]]:
        """Return what each program makes of its inputs."""
        return self._all([(self._outputs, program, list(given)) for program, given in jobs])

    def close(self) -> None:
        """End the workers. What has begun is finished, within its limits."""
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> "Sandbox":
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the workers."""
        self.close()

    def _all(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        futures = [self._pool.submit(*call) for call in calls]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def _outputs(self, program: Program, given: list[tuple[Any, ...] | str]) -> list[Output]:
        written = [encode(each, program) for each in given]
        return run_candidate(program, written, self.limits, self.wall) if written else []

    def _judged(self, program: Program, cases: list[Case]) -> list[Verdict]:
        outputs = self._outputs(program, [case.given for case in cases])
        return [_verdict(case, output, program) for case, output in zip(cases, outputs, strict=True)]


def encode(given: tuple[Any, ...] | str, program: Program) -> bytes | str:
    """Return an input as a candidate is told it."""
    if program.entry is None:
        if not isinstance(given, str):
            raise InputError(f"given must be text for a program that reads standard input, not {given!r:.60}")
        return given
    try:
        return marshal.dumps(tuple(given))
    except (ValueError, TypeError) as error:
        raise InputError(f"given must hold numbers, texts and collections, not {given!r:.60} ({error})") from None


def _verdict(case: Case, output: Output, program: Program) -> Verdict:
    if output.failure is not None:
        return output.failure
    if program.entry is None and case.by == "value":
        case = Case(case.given, case.expected, case.atol, "text")
    if agrees(case, output.value):
        return Verdict(Outcome.PASSED)
    return Verdict(Outcome.FAILED, "wrong answer", _brief(output.value))


def _brief(value: Any) -> str:
    try:
        return shown(repr(value), 80)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "a number of very many digits"


@cache
def trouble(wall: Wall) -> str:
    """Return why a wall does not stand on this machine, nothing where it does: a program was run behind it."""
    if problem := wall.missing():
        return problem
    program = Program("def double(number):\n    return 2 * number\n", "double")
    output = run_candidate(program, [encode((21,), program)], Limits(), wall)[0]
    return "" if output.value == 42 else output.failure.detail if output.failure else "it does not run programs"


def find_wall(*, unsafe: bool = False) -> Wall:
    """Return the first wall that works here."""
    problems = {}
    for name in SAFE:
        problems[name] = trouble(WALLS[name])
        if not problems[name]:
            return WALLS[name]
    if unsafe:
        return WALLS["none"]
    told = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
    raise InputError(
        f"programs that nobody trusts cannot be kept in on this machine ({told}): {WALLS['bubblewrap'].install}, or "
        "run them without walls by unsafe=True, --set unsafe=true"
    )


def shared(limits: Limits | None = None, *, unsafe: bool = False) -> Sandbox:
    """Return the sandbox that all of a process use who want these limits."""
    return _shared(limits or Limits(), unsafe, os.getpid())


@cache
def _shared(limits: Limits, unsafe: bool, process: int) -> Sandbox:
    return Sandbox(limits=limits, unsafe=unsafe)
