"""Programs of answers and solutions to the sandbox and back: many at once, in one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from vpo.sandbox.verdicts import Case, Output, Program, Status, Verdict
from vpo.tasks.code.evalplus import tolerance
from vpo.tasks.code.problem import Check, CodeProblem, Draft, programs
from vpo.tasks.task import in_blocks
from vpo.util.errors import InputError
from vpo.util.progress import progress

if TYPE_CHECKING:
    from vpo.sandbox import Sandbox

T = TypeVar("T")
# The arguments of `programs`: a source, what stands before it, its entry, and the checks.
Job: TypeAlias = tuple[str, str, str | None, Sequence[Check]]


@dataclass(frozen=True)
class Trial:
    """A program that is to be put to some checks of a problem."""

    problem: CodeProblem
    source: str
    checks: tuple[Check, ...]

    @property
    def key(self) -> tuple[int, str]:
        """What two trials share that come to the same, in one call."""
        return id(self.problem), self.source


def verdicts(sandbox: "Sandbox", trials: Sequence[Trial]) -> list[list[Verdict]]:
    """Return what became of each check of each trial; trials that come to the same are run once."""
    different = {trial.key: trial for trial in trials}
    jobs = [(each.source, each.problem.setup, each.problem.entry, each.checks) for each in different.values()]
    found = dict(zip(different, _by_check(sandbox.judge_many, jobs), strict=True))
    return [found[trial.key] for trial in trials]


def _by_check(run: Callable[[list[tuple[Program, list[Case]]]], list[list[T]]], jobs: Sequence[Job]) -> list[list[T]]:
    """Return what came of each check of each job, all run in one call."""
    made = [programs(*job) for job in jobs]
    ways = [
        (program, [job[-1][place].case for place in places])
        for job, several in zip(jobs, made, strict=True)
        for program, places in several
    ]
    results = iter(run(ways))
    found = []
    for several in made:
        by_place = {place: each for _, places in several for place, each in zip(places, next(results), strict=True)}
        found.append([by_place[place] for place in sorted(by_place)])
    return found


def with_outputs(sandbox: Callable[[], "Sandbox"], drafts: Sequence[Draft]) -> list[Draft]:
    """Return drafts whose tests are whole.

    Where expected outputs are unmade, the solution is run for them. A test on which it fails is left out.

    Args:
        sandbox: gives one, where it is needed: problems can be read where nothing can be run.
        drafts: as they were read.
    """
    unmade = [draft for draft in drafts if draft.unmade]
    blocks = list(in_blocks(unmade))
    made: dict[str, Draft] = {}
    for block in progress(blocks, "running the solutions", len(blocks)):
        made.update(zip([draft.id for draft in block], _made(sandbox(), block), strict=True))
    return [made.get(draft.id, draft) for draft in drafts]


def _made(sandbox: "Sandbox", drafts: Sequence[Draft]) -> list[Draft]:
    def run(ways: list[tuple[Program, list[Case]]]) -> list[list[Output]]:
        return sandbox.outputs_many([(program, [case.input for case in cases]) for program, cases in ways])

    outputs = _by_check(run, [(draft.solution or "", "", draft.entry, draft.checks) for draft in drafts])
    found = []
    for draft, several in zip(drafts, outputs, strict=True):
        checks: list[Check] = []
        left_out: list[str] = []
        for place, (check, output) in enumerate(zip(draft.checks, several, strict=True)):
            if output.failure is None:
                atol = tolerance(output.value, check.case.atol)
                checks.append(replace(check, case=replace(check.case, expected=output.value, atol=atol)))
            elif output.failure.status is Status.ERROR:
                raise InputError(f"{draft.id}: the sandbox could not run the solution ({output.failure.detail})")
            else:
                left_out.append(f"input {place}: {_why(output.failure)}")
        if not checks:
            raise InputError(f"{draft.id}: the solution fails on every input; {left_out[0]}")
        found.append(replace(draft, checks=tuple(checks), unmade=False, left_out=(*draft.left_out, *left_out)))
    return found


def _why(failure: Verdict) -> str:
    return f"{failure.reason or failure.status.value}: {failure.detail}"
