"""Programs of answers and solutions to the sandbox and back: many at once, in one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vpo.errors import InputError
from vpo.progress import progress
from vpo.sandbox.verdicts import Outcome, Verdict
from vpo.tasks.code.evalplus import tolerance
from vpo.tasks.code.problem import Check, CodeProblem, Draft, programs

if TYPE_CHECKING:
    from vpo.sandbox import Sandbox

AT_ONCE = 64  # solutions that are run in one call


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
    different = list({trial.key: trial for trial in trials}.values())
    made = [programs(each.source, each.problem.setup, each.problem.entry, each.checks) for each in different]
    judged = iter(
        sandbox.judge_many(
            [
                (program, [each.checks[place].case for place in places])
                for each, ways in zip(different, made, strict=True)
                for program, places in ways
            ]
        )
    )
    found: dict[tuple[int, str], list[Verdict]] = {}
    for each, ways in zip(different, made, strict=True):
        by_place = {place: verdict for _, places in ways for place, verdict in zip(places, next(judged), strict=True)}
        found[each.key] = [by_place[place] for place in range(len(each.checks))]
    return [found[trial.key] for trial in trials]


def with_outputs(sandbox: Callable[[], "Sandbox"], drafts: Sequence[Draft]) -> list[Draft]:
    """Return drafts whose tests are whole.

    Where expected outputs are unmade, the solution is run for them. A test on which it fails is left out.

    Args:
        sandbox: gives one, where it is needed: problems can be read where nothing can be run.
        drafts: as they were read.
    """
    unmade = [draft for draft in drafts if draft.unmade]
    blocks = [unmade[start : start + AT_ONCE] for start in range(0, len(unmade), AT_ONCE)]
    made: dict[str, Draft] = {}
    for block in progress(blocks, "running the solutions", len(blocks)):
        made.update(zip([draft.id for draft in block], _made(sandbox(), block), strict=True))
    return [made.get(draft.id, draft) for draft in drafts]


def _made(sandbox: "Sandbox", drafts: Sequence[Draft]) -> list[Draft]:
    ways = [programs(draft.solution or "", "", draft.entry, draft.checks) for draft in drafts]
    outputs = iter(
        sandbox.outputs_many(
            [
                (program, [draft.checks[place].case.given for place in places])
                for draft, several in zip(drafts, ways, strict=True)
                for program, places in several
            ]
        )
    )
    found = []
    for draft, several in zip(drafts, ways, strict=True):
        checks: list[Check] = []
        left_out: list[str] = []
        for place, output in (pair for _, places in several for pair in zip(places, next(outputs), strict=True)):
            if output.failure is None:
                case = draft.checks[place].case
                case = replace(case, expected=output.value, atol=tolerance(output.value, case.atol))
                checks.append(replace(draft.checks[place], case=case))
            elif output.failure.outcome is Outcome.ERROR:
                raise InputError(f"{draft.id}: the sandbox could not run the solution ({output.failure.detail})")
            else:
                left_out.append(f"input {place}: {_why(output.failure)}")
        if not checks:
            raise InputError(f"{draft.id}: the solution fails on every input; {left_out[0]}")
        found.append(replace(draft, checks=tuple(checks), unmade=False, left_out=(*draft.left_out, *left_out)))
    return found


def _why(failure: Verdict) -> str:
    return f"{failure.reason or failure.outcome.value}: {failure.detail}"
