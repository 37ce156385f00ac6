"""What the tasks of programs share: data, prompts, reading of answers, and running programs against tests."""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from vpo.core.checks import as_integer
from vpo.sandbox.verdicts import Limits, Status, Verdict
from vpo.tasks.code.answers import (
    extract_program,
    fenced,
    is_program,
    program_block,
    program_blocks,
    program_form,
)
from vpo.tasks.code.expected import OUTPUT_BYTES, complete, patient_sandbox
from vpo.tasks.code.feedback import feedback_on
from vpo.tasks.code.problem import CodeProblem
from vpo.tasks.code.readers import DateWindow, find_reader, names_in
from vpo.tasks.code.running import Submission, grade
from vpo.tasks.data import take, unique
from vpo.tasks.fences import FENCE
from vpo.tasks.forms import ONE_SHOT, Example, Form
from vpo.tasks.reading import Native
from vpo.tasks.task import Message, Task, Vector
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from vpo.sandbox import Sandbox

MOST_TESTS = 16  # of a problem, that are rewarded
NO_PROGRAM = "It has no Python program."
MEANS = Example(
    "write the function mean(values), which returns the mean of a list of numbers",
    (
        fenced("def mean(values):\n    return sum(values) / len(values)"),
        fenced("from statistics import fmean\n\ndef mean(values):\n    return fmean(values)"),
        fenced(
            "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n"
            "    return total / len(values)"
        ),
    ),
)

SUM_OF_INPUT = Example(
    "write a program that reads a line of integers from standard input and prints their sum",
    (
        fenced("print(sum(map(int, input().split())))"),
        fenced(
            "import sys\n\ntotal = 0\nfor number in sys.stdin.read().split():\n    total += int(number)\nprint(total)"
        ),
        fenced("from functools import reduce\n\nprint(reduce(lambda a, b: a + int(b), input().split(), 0))"),
    ),
)


class ProgramTask(Task[CodeProblem]):
    """Programs in a fenced block of Python, run against tests.

    At most 16 tests of a problem are rewarded, spread over the sizes of their inputs. The others are hidden: an answer
    solves its problem if all pass, and hidden ones are run in evaluation only, for answers that pass the rewarded ones.
    An answer that is not Python scores 0 everywhere. Where the sandbox itself fails, the score is unknown.
    """

    wraps_single: ClassVar[bool] = False
    single: ClassVar[str] = "Give the complete code in one ```python block."
    form: Form = ONE_SHOT
    example: ClassVar[Example | None] = MEANS
    files: ClassVar[tuple[str, ...]] = ("data", "exclude")
    repairs: ClassVar[bool] = True

    def __init__(
        self,
        *,
        data: str | None = None,
        source: str | None = None,
        exclude: str | None = None,
        tests: int = MOST_TESTS,
        seed: int = 0,
        before: str = "2025-02-01",
        until: str = "2025-05-01",
        test_seconds: float = 4.0,
        seconds: float = 12.0,
        memory_mb: int = 512,
        unsafe: bool = False,
    ) -> None:
        """Make the task.

        Args:
            data: file or folder of a data set, or "hub".
            source: which data set; by default recognised by its first row.
            exclude: another data set, whose problems are left out by their names, to train on MBPP without MBPP+; not
                of the test split, since a model is evaluated with the settings that it was trained with.
            tests: the most tests of a problem that are rewarded.
            seed: of the choice of tests.
            before: where problems have a date (LiveCodeBench), the train split is older than this.
            until: the test split is from `before` on, and older than this.
            test_seconds: time limit of a program for one test.
            seconds: time limit of a program for all tests together.
            memory_mb: address space of a program.
            unsafe: whether to run programs without isolation where no backend works.
        """
        self.data, self.source, self.exclude = data, source, exclude
        if not 1 <= as_integer(tests, "tests") <= MOST_TESTS:
            raise InputError(f"tests must lie in 1..{MOST_TESTS}, not {tests}")
        self.tests, self.seed = tests, as_integer(seed, "seed")
        self.window = DateWindow.parse(before, until)
        self.limits = Limits(output_bytes=OUTPUT_BYTES, test_seconds=test_seconds, seconds=seconds, memory_mb=memory_mb)
        self.unsafe = unsafe
        self._graded: dict[tuple[str, str], list[Verdict]] = {}  # by problem and program, of the last call

    @cached_property
    def sandbox(self) -> "Sandbox":
        """Runs the programs; shared by all tasks of this process with the same limits."""
        from vpo.sandbox import shared

        return shared(self.limits, unsafe=self.unsafe)

    @cached_property
    def patient(self) -> "Sandbox":
        """Runs the solutions."""
        return patient_sandbox(unsafe=self.unsafe)

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[CodeProblem]:
        """The problems of a split. Nothing is run: expected outputs that the data lacks are computed when needed."""
        drafts = find_reader(self.data, self.source).drafts(self.data, split, self.window)
        excluded = set() if self.exclude is None or split == "test" else names_in(self.exclude)
        drafts = (draft for draft in drafts if draft.id not in excluded)
        first = list(islice(drafts, count if count and count > 0 else None))  # rows can be large
        drafts_taken = take(unique(first, self.name), count)
        return [CodeProblem(draft, self.tests, self.seed, self.unsafe) for draft in drafts_taken]

    def prepare(self, problems: Sequence[CodeProblem]) -> None:
        """Compute the expected outputs that the data lacks, all in one call."""
        complete(lambda: self.patient, problems)

    def question(self, problem: CodeProblem) -> list[Message]:
        """The statement, the form of input and output, and the starter code."""
        parts = [problem.statement]
        if problem.entry is None:
            parts.append("Write a Python program that reads standard input and prints to standard output.")
        elif "." in problem.entry:
            parts.append(f"Write it in Python, as the method {problem.entry}.")
        else:
            parts.append(f"Write it in Python, as the function {problem.entry}.")
        if problem.starter:
            parts.append(f"Begin with:\n{fenced(problem.starter)}")
        return [{"role": "user", "content": "\n\n".join(parts)}]

    def example_for(self, problem: CodeProblem) -> Example | None:
        """A program that reads standard input, where the problem asks for one."""
        return SUM_OF_INPUT if problem.entry is None and self.example is MEANS else self.example

    def score(self, problem: CodeProblem, answer: str) -> Vector | None:
        """The scores of one answer, as `score_all` has them."""
        return self.score_all([problem], [answer])[0]

    def score_all(self, problems: Sequence[CodeProblem], answers: Sequence[str | None]) -> list[Vector | None]:
        """The scores of each answer; all programs run in one call, equal ones once."""
        self.prepare(problems)
        sources = [program_of(problem, answer) for problem, answer in zip(problems, answers, strict=True)]
        pairs = list(zip(problems, sources, strict=True))
        self._graded = self._grade(pairs)
        return [
            (0.0,) * len(self.names_of(problem))
            if source is None
            else self.vector(problem, source, self._graded[problem.id, source])
            for problem, source in pairs
        ]

    def _grade(self, pairs: Sequence[tuple[CodeProblem, str | None]]) -> dict[tuple[str, str], list[Verdict]]:
        """The verdicts on the rewarded tests, by problem and program; all programs run in one call."""
        submissions = [Submission(problem, source, problem.checks) for problem, source in pairs if source is not None]
        graded = grade(self.sandbox, submissions) if submissions else []
        return {(each.problem.id, each.source): verdicts for each, verdicts in zip(submissions, graded, strict=True)}

    def feedback_all(
        self, problems: Sequence[CodeProblem], answers: Sequence[str], vectors: Sequence[Sequence[float]]
    ) -> list[str]:
        """The first rewarded tests that fail, with inputs, outputs and errors."""
        sources = [program_of(problem, answer) for problem, answer in zip(problems, answers, strict=True)]
        pairs = list(zip(problems, sources, strict=True))
        unknown = [each for each in pairs if (each[0].id, each[1]) not in self._graded]
        verdicts = {**self._graded, **self._grade(unknown)}
        return [
            NO_PROGRAM if source is None else feedback_on(problem, verdicts[problem.id, source])
            for problem, source in pairs
        ]

    @abstractmethod
    def vector(self, problem: CodeProblem, source: str, verdicts: Sequence[Verdict]) -> Vector | None:
        """The scores of a program with these verdicts on the rewarded tests, or None where they are unknown."""

    def solved_all(
        self, problems: Sequence[CodeProblem], answers: Sequence[str | None], vectors: Sequence[Vector | None]
    ) -> list[bool | None]:
        """Whether all tests pass. The hidden ones are run where the others pass."""
        solved = super().solved_all(problems, answers, vectors)
        submissions: dict[int, Submission] = {}
        for index, (problem, answer) in enumerate(zip(problems, answers, strict=True)):
            source = program_of(problem, answer)
            if solved[index] and problem.hidden and source is not None:
                submissions[index] = Submission(problem, source, problem.hidden)
        if submissions:
            graded = grade(self.sandbox, list(submissions.values()))
            for index, verdicts in zip(submissions, graded, strict=True):
                passed = passed_tests(verdicts)
                solved[index] = None if passed is None else all(passed)
        return solved

    def native(self, text: str, answers: int) -> Sequence[Native]:
        """Of a set, the fences that are whole programs. A single answer is the text, if it has a fence or is code."""
        if answers > 1:
            blocks = program_blocks(text)
            return [Native(each.start, each.end, text[each.start : each.end], each.closed) for each in blocks]
        whole = text.strip()
        block = program_block(whole)
        if block is None and (FENCE in whole or not is_program(whole)):
            return []
        return [Native(0, len(text), whole, block is not None and block.closed)]

    def normal_form(self, answer: str) -> Hashable:
        """The same for programs that differ in layout, comments and docstrings only."""
        source = extract_program(answer)
        return None if source is None else program_form(source)

    def in_set(self, problem: CodeProblem, answer: str) -> str:
        """The program in a fenced block."""
        program = program_of(problem, answer)
        return answer if program is None else fenced(program)

    def gold(self, problem: CodeProblem) -> str | None:
        """The solution in a fenced block, where there is one."""
        return None if problem.solution is None else fenced(problem.solution)


def program_of(problem: CodeProblem, answer: str | None) -> str | None:
    """The program of an answer, None where it is missing."""
    return None if answer is None else extract_program(answer, problem.entry)


def passed_tests(verdicts: Sequence[Verdict]) -> list[bool] | None:
    """Whether each test passed, or None where the sandbox failed on one."""
    if any(verdict.status is Status.ERROR for verdict in verdicts):
        return None
    return [verdict.passed for verdict in verdicts]
