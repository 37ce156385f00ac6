"""What a problem of code is: a statement, and checks of which some are objectives and the others are hidden."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from vpo.sandbox.verdicts import Case, Program

# The name under which a check calls a program through a function of its own.
THROUGH = "vpo_check"


@dataclass(frozen=True)
class Check:
    """A test, and how the program is called for it.

    Attributes:
        case: what goes in and what must come out.
        through: source of a function `vpo_check`, which calls the program in its place; empty for the program itself.
            It turns what the program returns into what can be compared, such as a match into whether there is one.
    """

    case: Case
    through: str = ""

    @property
    def size(self) -> int:
        """How long its input is, written down."""
        return len(self.case.input) if isinstance(self.case.input, str) else len(repr(self.case.input))


@dataclass(frozen=True)
class Draft:
    """A problem as it is read, before its tests are chosen.

    Attributes:
        id: as in the data set.
        statement: what to do, in words.
        checks: all tests.
        entry: the function, or "Class.method"; None for a program that reads standard input and prints.
        starter: code to begin with, for the prompt.
        setup: source that stands before every answer.
        solution: a right answer, if there is one.
        unmade: whether the expected outputs are still to be made, by running the solution.
        left_out: tests that are not among the checks.
    """

    id: str
    statement: str
    checks: tuple[Check, ...]
    entry: str | None = None
    starter: str = ""
    setup: str = ""
    solution: str | None = None
    unmade: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class CodeProblem:
    """A problem: its statement, the checks that are its objectives, and those that are kept for evaluation.

    Attributes:
        id: as in the data set.
        statement: what to do, in words.
        entry: the function, or "Class.method"; None for a program that reads standard input and prints.
        starter: code to begin with, for the prompt.
        setup: source that stands before every answer.
        solution: a right answer, if there is one.
        checks: the chosen tests, one an objective, smallest input first.
        hidden: the others.
        left_out: tests that are neither: no judge could compare from outside, or the solution itself fails.
    """

    id: str
    statement: str
    entry: str | None
    starter: str
    setup: str
    solution: str | None
    checks: tuple[Check, ...]
    hidden: tuple[Check, ...]
    left_out: tuple[str, ...] = ()


def chosen(draft: Draft, most: int, seed: int) -> CodeProblem:
    """Return a draft with at most so many tests chosen, spread over their sizes: one out of each slice, by the seed."""
    by_size = sorted(draft.checks, key=lambda check: check.size)
    count = min(most, len(by_size))
    random = Random(f"tests {seed} {draft.id}")
    edges = [len(by_size) * place // count for place in range(count + 1)]
    drawn = [random.randrange(start, end) for start, end in pairwise(edges)]
    return CodeProblem(
        draft.id,
        draft.statement,
        draft.entry,
        draft.starter,
        draft.setup,
        draft.solution,
        tuple(by_size[place] for place in drawn),
        tuple(check for place, check in enumerate(by_size) if place not in set(drawn)),
        draft.left_out,
    )


def programs(
    source: str, setup: str, entry: str | None, checks: Sequence[Check]
) -> list[tuple[Program, tuple[int, ...]]]:
    """Return the programs that an answer makes, one for each way it is called, with the places of their checks."""
    ways: dict[str, list[int]] = {}
    for place, check in enumerate(checks):
        ways.setdefault(check.through, []).append(place)
    return [
        (
            Program(joined(setup, source, through), THROUGH if through else entry),
            tuple(places),
        )
        for through, places in ways.items()
    ]


def joined(*parts: str) -> str:
    """Return sources as one program. What a later one imports from the future comes first, as Python wants it."""
    future = re.compile(r"^from __future__ import [^\n]*$", re.MULTILINE)
    lines = list(dict.fromkeys(line for part in parts for line in future.findall(part)))
    return "\n\n".join([*lines, *(future.sub("", part) for part in parts if part)])
