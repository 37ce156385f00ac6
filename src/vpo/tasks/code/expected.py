"""Expected outputs of problems whose data has none: their solutions are run, once for each user's cache."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vpo.sandbox.verdicts import Case, Limits, Output, Program, Status
from vpo.tasks.batches import in_batches
from vpo.tasks.code.evalplus import tolerance
from vpo.tasks.code.output_cache import OutputCache
from vpo.tasks.code.problem import Check, CodeProblem, Draft, program_calls
from vpo.tasks.code.running import run_calls
from vpo.util.errors import InputError
from vpo.util.progress import progress

if TYPE_CHECKING:
    from vpo.sandbox import Sandbox

OUTPUT_BYTES = 16_000_000  # HumanEval/15 returns 7 MB
PATIENT = Limits(output_bytes=OUTPUT_BYTES, test_seconds=60.0, seconds=600.0)


def patient_sandbox(*, unsafe: bool) -> "Sandbox":
    """A sandbox with long time limits, for solutions: the tests must not depend on how busy a machine is."""
    from vpo.sandbox import shared

    return shared(PATIENT, unsafe=unsafe)


def complete(sandbox: Callable[[], "Sandbox"], problems: Sequence[CodeProblem]) -> None:
    """Compute the expected outputs of all problems that still need some, in one call.

    Args:
        sandbox: makes one where it is needed: other problems can be used where nothing can be run.
        problems: that are to be scored; one may occur more than once.
    """
    missing = {
        id(each): each for each in problems if each.draft.needs_outputs and "completed" not in vars(each)
    }.values()
    drafts = compute_expected(sandbox, [each.draft for each in missing])
    for problem, draft in zip(missing, drafts, strict=True):
        vars(problem)["completed"] = draft  # where cached_property keeps it


def compute_expected(sandbox: Callable[[], "Sandbox"], drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts with expected outputs: where one has none, its solution is run. Tests on which it fails are excluded.

    Args:
        sandbox: makes one where it is needed.
        drafts: as they were read.
    """
    pending = {index: draft for index, draft in enumerate(drafts) if draft.needs_outputs}
    if not pending:
        return list(drafts)
    outputs = _outputs(sandbox(), list(pending.values()))
    completed = {
        index: _with_outputs(draft, each) for (index, draft), each in zip(pending.items(), outputs, strict=True)
    }
    return [completed.get(index, draft) for index, draft in enumerate(drafts)]


def _outputs(sandbox: "Sandbox", drafts: Sequence[Draft]) -> list[list[Output]]:
    """What each solution returns for each of its inputs: from the cache, or else by running it."""
    cache = OutputCache(sandbox)
    found = [cache.read(draft) for draft in drafts]
    batches = list(in_batches(draft for draft, outputs in zip(drafts, found, strict=True) if outputs is None))
    computed: list[list[Output]] = []
    for batch in progress(batches, "running the solutions", len(batches)):
        results = _run_solutions(sandbox, batch)
        for draft, outputs in zip(batch, results, strict=True):
            cache.write(draft, outputs)
        computed += results
    new = iter(computed)
    return [next(new) if outputs is None else outputs for outputs in found]


def _run_solutions(sandbox: "Sandbox", drafts: Sequence[Draft]) -> list[list[Output]]:
    def run(programs: list[tuple[Program, list[Case]]]) -> list[list[Output]]:
        return sandbox.outputs_many([(program, [case.input for case in cases]) for program, cases in programs])

    return run_calls(run, [program_calls(draft.solution or "", "", draft.entry, draft.checks) for draft in drafts])


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
