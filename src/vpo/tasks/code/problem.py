"""Problems of code: a statement, and checks, some of which are objectives and the others hidden."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from random import Random

from vpo.sandbox.verdicts import Case, Program
from vpo.util.grouping import group_by

WRAPPER = "vpo_check"  # the name of a wrapper's function


@dataclass(frozen=True)
class Check:
    """A test case, and how the program is called for it.

    Attributes:
        case: input and expected output.
        wrapper: source of a function `vpo_check` that is called instead of the program's; empty to call the program's.
            It turns what the program returns into a value that can be compared, such as a match object into a boolean.
    """

    case: Case
    wrapper: str = ""

    @property
    def size(self) -> int:
        """Length of its input as text."""
        return len(self.case.input) if isinstance(self.case.input, str) else len(repr(self.case.input))


@dataclass(frozen=True)
class Draft:
    """A problem as it is read, before its tests are chosen.

    Attributes:
        id: as in the data set.
        statement: the task in words.
        checks: all tests.
        entry: the function, or "Class.method"; None for a program that reads standard input and prints.
        starter: code that the answer begins with, for the prompt.
        setup: source that is put before every answer.
        solution: a right answer, if there is one.
        needs_outputs: whether the solution is still to be run for the expected outputs.
        excluded: tests that are not among the checks, as text.
    """

    id: str
    statement: str
    checks: tuple[Check, ...]
    entry: str | None = None
    starter: str = ""
    setup: str = ""
    solution: str | None = None
    needs_outputs: bool = False
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True)
class CodeProblem:
    """A problem: its statement, the checks that are its objectives, and those that are held out for evaluation.

    The statement needs nothing to be run. Checks may: where the data has no expected outputs, the solution is run when
    they are first read. `vpo.tasks.code.expected.complete` does that for many problems in one call.

    Attributes:
        draft: the problem as it was read.
        most: how many checks are objectives, at most.
        seed: of the choice of those checks.
        unsafe: whether the solution may be run without isolation where no backend works.
    """

    draft: Draft
    most: int
    seed: int = 0
    unsafe: bool = False

    @property
    def id(self) -> str:
        """As in the data set."""
        return self.draft.id

    @property
    def statement(self) -> str:
        """The task in words."""
        return self.draft.statement

    @property
    def entry(self) -> str | None:
        """The function, or "Class.method"; None for a program that reads standard input and prints."""
        return self.draft.entry

    @property
    def starter(self) -> str:
        """Code that the answer begins with, for the prompt."""
        return self.draft.starter

    @property
    def setup(self) -> str:
        """Source that is put before every answer."""
        return self.draft.setup

    @property
    def solution(self) -> str | None:
        """A right answer, if there is one."""
        return self.draft.solution

    @property
    def checks(self) -> tuple[Check, ...]:
        """The tests that are objectives, smallest input first."""
        return self._chosen[0]

    @property
    def hidden(self) -> tuple[Check, ...]:
        """The other tests."""
        return self._chosen[1]

    @property
    def excluded(self) -> tuple[str, ...]:
        """Tests that are not used, as text: they cannot be compared outside the sandbox, or the solution fails."""
        return self.completed.excluded

    @cached_property
    def completed(self) -> Draft:
        """The draft with its expected outputs."""
        if not self.draft.needs_outputs:
            return self.draft
        from vpo.tasks.code.expected import compute_expected, patient_sandbox  # which import this module

        return compute_expected(lambda: patient_sandbox(unsafe=self.unsafe), [self.draft])[0]

    @cached_property
    def _chosen(self) -> tuple[tuple[Check, ...], tuple[Check, ...]]:
        return choose_tests(self.completed, self.most, self.seed)


def choose_tests(draft: Draft, most: int, seed: int) -> tuple[tuple[Check, ...], tuple[Check, ...]]:
    """At most `most` tests as objectives, and the others: sorted by size, cut into slices, one of each by the seed."""
    by_size = sorted(draft.checks, key=lambda check: check.size)
    count = min(most, len(by_size))
    random = Random(f"tests {seed} {draft.id}")
    edges = [len(by_size) * index // count for index in range(count + 1)]
    chosen = {random.randrange(start, end) for start, end in pairwise(edges)}
    hidden = tuple(check for index, check in enumerate(by_size) if index not in chosen)
    return tuple(by_size[index] for index in sorted(chosen)), hidden


@dataclass(frozen=True)
class ProgramCall:
    """A program to run, and the test cases to run it on.

    Attributes:
        program: an answer with its setup before and its wrapper after it.
        cases: of the checks that call the program in this way.
        indices: of those checks.
    """

    program: Program
    cases: list[Case]
    indices: list[int]


def program_calls(source: str, setup: str, entry: str | None, checks: Sequence[Check]) -> list[ProgramCall]:
    """What to run for an answer: one program for each wrapper that its checks have."""
    wrappers = group_by(range(len(checks)), lambda index: checks[index].wrapper)
    return [
        ProgramCall(
            Program(join_sources(setup, source, wrapper), WRAPPER if wrapper else entry),
            [checks[index].case for index in indices],
            indices,
        )
        for wrapper, indices in wrappers.items()
    ]


def join_sources(*sources: str) -> str:
    """Sources as one program, with all imports from __future__ first, as Python requires."""
    future = re.compile(r"^from __future__ import [^\n]*$", re.MULTILINE)
    lines = list(dict.fromkeys(line for source in sources for line in future.findall(source)))
    return "\n\n".join([*lines, *(future.sub("", source) for source in sources if source)])
