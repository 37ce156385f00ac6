"""What a program got wrong, in words, for a prompt that asks to repair it. Hidden tests are never shown."""

import re
from collections.abc import Sequence

from vpo.sandbox.verdicts import Status, Verdict, printable
from vpo.tasks.code.problem import Check, CodeProblem

SHOWN = 3  # failing tests, those of the smallest inputs
LONGEST = 200  # characters of an input or an output
NO_EXAMPLE = ("zero", "anything")  # comparisons whose expected output is not one that must be returned
_REASONS = {
    "timeout": "takes too long",
    "memory": "uses too much memory",
    "forbidden": "does what is not allowed",
}
_RETURNED = re.compile(r"return (.+\(\*args\).*)")  # in a wrapper


def feedback_on(problem: CodeProblem, verdicts: Sequence[Verdict]) -> str:
    """How many of the rewarded tests pass, and the first that fail, with inputs, outputs and errors."""
    count = len(verdicts)
    failed = [(check, each) for check, each in zip(problem.checks, verdicts, strict=True) if not each.passed]
    if not failed:
        return (
            f"It passes all {count} tests that are shown, and fails others that are not: look for inputs that it does "
            "not handle."
        )
    details = {(each.reason, each.detail) for _, each in failed}
    reason, detail = next(iter(details))
    if len(failed) == count and len(details) == 1 and reason == "exception":
        missing = detail.startswith("AttributeError: module 'solution' has no attribute")
        return f"It does not define {problem.entry}." if missing else f"It fails all {count} tests: {detail}."
    lines = [f"- {_call(problem, check)} {_outcome(check, each)}" for check, each in failed[:SHOWN]]
    more = len(failed) - len(lines)
    return "\n".join(
        [
            f"It passes {count - len(failed)} of {count} tests, and fails:",
            *lines,
            *([f"- and {more} more"] if more else []),
        ]
    )


def _call(problem: CodeProblem, check: Check) -> str:
    """The call of a test as code, or its standard input."""
    if problem.entry is None:
        return f"with the input {_code(check.case.input)} it"
    arguments = ", ".join(map(repr, check.case.input))
    returned = _RETURNED.search(check.wrapper)
    call = returned[1].replace("*args", arguments) if returned else f"{problem.entry}({arguments})"
    return f"`{_short(call)}`"


def _outcome(check: Check, verdict: Verdict) -> str:
    """What became of a test."""
    if verdict.status is Status.NOT_RUN:
        return "was not run: the tests before it took too long"
    if verdict.reason == "exception":
        return f"ends in an exception: {verdict.detail}"
    if verdict.reason != "wrong answer":
        return _REASONS.get(verdict.reason, "fails")
    verb = "prints" if isinstance(check.case.input, str) else "returns"
    expected = "" if check.case.compare in NO_EXAMPLE else f"; expected: {_code(check.case.expected)}"
    return f"{verb} `{verdict.detail}`{expected}"


def _code(value: object) -> str:
    return f"`{_short(repr(value))}`"


def _short(text: str) -> str:
    shown = printable(text, LONGEST)
    return shown if len(text) <= LONGEST else f"{shown}…"
