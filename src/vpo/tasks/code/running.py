"""Runs programs of answers and solutions in the sandbox, many in one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from vpo.sandbox.verdicts import Case, Output, Program, Status, Verdict
from vpo.tasks.batches import in_batches
from vpo.tasks.code.evalplus import tolerance
from vpo.tasks.code.problem import Check, CodeProblem, Draft, ProgramCall, program_calls
from vpo.util.errors import InputError
from vpo.util.progress import progress

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
    results = _run(sandbox.grade_many, [submission.calls for submission in distinct.values()])
    verdicts = dict(zip(distinct, results, strict=True))
    return [verdicts[submission.key] for submission in submissions]


def _run(
    run: Callable[[list[tuple[Program, list[Case]]]], list[list[T]]], groups: Sequence[list[ProgramCall]]
) -> list[list[T]]:
    """For each group of calls, the result of each of its checks, in order; all are run in one call of `run`."""
    results = iter(run([(call.program, call.cases) for calls in groups for call in calls]))
    ordered = []
    for calls in groups:
        by_check = {index: each for call in calls for index, each in zip(call.indices, next(results), strict=True)}
        ordered.append([by_check[index] for index in sorted(by_check)])
    return ordered


def compute_expected(sandbox: Callable[[], "Sandbox"], drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts with expected outputs: where one has none, its solution is run. Tests on which it fails are excluded.

    Args:
        sandbox: makes one where it is needed: other problems can be read where nothing can be run.
        drafts: as they were read.
    """
    batches = list(in_batches([draft for draft in drafts if draft.needs_outputs]))
    complete: dict[str, Draft] = {}
    for batch in progress(batches, "running the solutions", len(batches)):
        complete |= {draft.id: draft for draft in _run_solutions(sandbox(), batch)}
    return [complete.get(draft.id, draft) for draft in drafts]


def _run_solutions(sandbox: "Sandbox", drafts: Sequence[Draft]) -> list[Draft]:
    def run(programs: list[tuple[Program, list[Case]]]) -> list[list[Output]]:
        return sandbox.outputs_many([(program, [case.input for case in cases]) for program, cases in programs])

    groups = [program_calls(draft.solution or "", "", draft.entry, draft.checks) for draft in drafts]
    return [_with_outputs(draft, outputs) for draft, outputs in zip(drafts, _run(run, groups), strict=True)]


def _with_outputs(draft: Draft, outputs: Sequence[Output]) -> Draft:
    checks: list[Check] = []
    excluded: list[str] = []
    for index, (check, output) in enumerate(zip(draft.checks, outputs, strict=True)):
        if output.failure is None:
            atol = tolerance(output.value, check.case.atol)
            checks.append(replace(check, case=replace(check.case, expected=output.value, atol=atol)))
        elif output.failure.status is Status.ERROR:
            raise InputError(f"{draft.id}: the sandbox could not run the solution ({output.failure.detail})")
        else:
            reason = output.failure.reason or output.failure.status.value
            excluded.append(f"input {index}: {reason}: {output.failure.detail}")
    if not checks:
        raise InputError(f"{draft.id}: the solution fails on every input; {excluded[0]}")
    return replace(draft, checks=tuple(checks), needs_outputs=False, excluded=(*draft.excluded, *excluded))
