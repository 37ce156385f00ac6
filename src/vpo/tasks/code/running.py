"""Runs programs of answers in the sandbox, many in one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from vpo.sandbox.verdicts import Case, Program, Verdict
from vpo.tasks.code.problem import Check, CodeProblem, ProgramCall, program_calls

if TYPE_CHECKING:
    from vpo.sandbox import Sandbox

T = TypeVar("T")


@dataclass(frozen=True)
class Submission:
    """A program that is run on some checks of a problem."""

    problem: CodeProblem
    source: str
    checks: tuple[Check, ...]

    @property
    def key(self) -> tuple[int, str]:
        """Equal for submissions of one call with equal verdicts."""
        return id(self.problem), self.source

    @property
    def calls(self) -> list[ProgramCall]:
        """The programs that the sandbox runs for it."""
        return program_calls(self.source, self.problem.setup, self.problem.entry, self.checks)


def grade(sandbox: "Sandbox", submissions: Sequence[Submission]) -> list[list[Verdict]]:
    """One verdict for each check of each submission; equal submissions are run once."""
    distinct = {submission.key: submission for submission in submissions}
    results = run_calls(sandbox.grade_many, [submission.calls for submission in distinct.values()])
    verdicts = dict(zip(distinct, results, strict=True))
    return [verdicts[submission.key] for submission in submissions]


def run_calls(
    run: Callable[[list[tuple[Program, list[Case]]]], list[list[T]]], groups: Sequence[list[ProgramCall]]
) -> list[list[T]]:
    """For each group of calls, the result of each of its checks, in order; all are run in one call of `run`."""
    results = iter(run([(call.program, call.cases) for calls in groups for call in calls]))
    ordered = []
    for calls in groups:
        by_check = {index: each for call in calls for index, each in zip(call.indices, next(results), strict=True)}
        ordered.append([by_check[index] for index in sorted(by_check)])
    return ordered
