"""code: programs against test cases, a number a test, run by `vpo.sandbox` as nobody trusts them."""

from collections.abc import Hashable, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from vpo.core.checks import as_integer
from vpo.sandbox.verdicts import Limits, Status, Verdict
from vpo.tasks.code.answers import fenced, parsed, program_form, read_program
from vpo.tasks.code.problem import CodeProblem, chosen
from vpo.tasks.code.readers import Window, reader_of
from vpo.tasks.code.running import Trial, verdicts, with_outputs
from vpo.tasks.data import unique
from vpo.tasks.task import Message, Objective, Task, Vector, take
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from vpo.sandbox import Sandbox

MOST = 16  # tests of a problem that are objectives
OUTPUT_BYTES = 16_000_000  # HumanEval/15 returns 7 MB
PATIENT = Limits(output_bytes=OUTPUT_BYTES, test_seconds=60.0, seconds=600.0)
FORM = "Write the whole program in one fence:\n```python\n…\n```"


class CodeTask(Task[CodeProblem]):
    """Programs in a fence of Python; test_i is 1 if test i passes.

    At most 16 tests of a problem are objectives, spread over the sizes of their inputs. The others are hidden: an
    answer solves its problem if all pass, and hidden ones are run for evaluation alone, of answers that pass the chosen
    ones. An answer that is no Python scores 0 everywhere. Where the sandbox could not do its work, nothing is known.
    """

    name: ClassVar[str] = "code"
    summary: ClassVar[str] = "programs against test cases: each test is an objective"
    objectives: ClassVar[tuple[Objective, ...]] = tuple(
        Objective(f"test_{number}", f"test {number} of the problem passes") for number in range(1, MOST + 1)
    )
    weights: ClassVar[Vector] = (1 / MOST,) * MOST
    ragged: ClassVar[bool] = True

    def __init__(
        self,
        *,
        data: str | None = None,
        source: str | None = None,
        tests: int = MOST,
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
            source: which data set; by default what the first row looks like.
            tests: of a problem that are objectives, at most.
            seed: of the choice of tests.
            before: where problems have a date (LiveCodeBench), those for training are older.
            until: those of the test split are from then on, and older than this.
            test_seconds: that a program may take for a test.
            seconds: that it may take for all together.
            memory_mb: of address space that it may have.
            unsafe: whether to run programs without walls where the machine has none.
        """
        self.data, self.source = data, source
        if not 1 <= as_integer(tests, "tests") <= MOST:
            raise InputError(f"tests must lie in 1..{MOST}, not {tests}")
        self.tests, self.seed = tests, as_integer(seed, "seed")
        self.window = Window.of(before, until)
        self.limits = Limits(output_bytes=OUTPUT_BYTES, test_seconds=test_seconds, seconds=seconds, memory_mb=memory_mb)
        self.unsafe = unsafe

    @cached_property
    def sandbox(self) -> "Sandbox":
        """What runs the programs, the same for all tasks of this process."""
        from vpo.sandbox import shared

        return shared(self.limits, unsafe=self.unsafe)

    @cached_property
    def patient(self) -> "Sandbox":
        """The same with much time, for solutions: whether a test is there must not depend on how busy a machine is."""
        from vpo.sandbox import shared

        return shared(PATIENT, unsafe=self.unsafe)

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[CodeProblem]:
        """Return the problems of a split that the data has. Solutions are run where they make the expected outputs."""
        drafts = reader_of(self.data, self.source).drafts(self.data, split, self.window)
        found = list(islice(drafts, count if count and count > 0 else None))  # rows can be large
        whole = with_outputs(lambda: self.patient, take(unique(found, self.name), count))
        return [chosen(draft, self.tests, self.seed) for draft in whole]

    def names_of(self, problem: CodeProblem) -> tuple[str, ...]:
        """Return the names of as many tests as the problem has."""
        return self.names[: len(problem.checks)]

    def question(self, problem: CodeProblem) -> list[Message]:
        """Return the statement, how input and output come, and the code to begin with."""
        parts = [problem.statement]
        if problem.entry is None:
            parts.append("Write a Python program that reads standard input and prints to standard output.")
        elif "." in problem.entry:
            parts.append(f"Write it in Python, as the method {problem.entry}.")
        else:
            parts.append(f"Write it in Python, as the function {problem.entry}.")
        if problem.starter:
            parts.append(f"Begin with:\n{fenced(problem.starter)}")
        return [{"role": "user", "content": "\n\n".join([*parts, FORM])}]

    def score(self, problem: CodeProblem, answer: str) -> Vector | None:
        """Return 1 for each chosen test that passes."""
        return self.score_all([problem], [answer])[0]

    def score_all(self, problems: Sequence[CodeProblem], answers: Sequence[str | None]) -> list[Vector | None]:
        """Return 1 for each chosen test that passes, all programs run in one call, the same one once."""
        sources = [_program(answer) for answer in answers]
        pairs = list(zip(problems, sources, strict=True))
        trials = [Trial(problem, source, problem.checks) for problem, source in pairs if source is not None]
        found = iter(verdicts(self.sandbox, trials)) if trials else iter(())
        return [(0.0,) * len(problem.checks) if source is None else _vector(next(found)) for problem, source in pairs]

    def solved_all(
        self, problems: Sequence[CodeProblem], answers: Sequence[str | None], vectors: Sequence[Vector | None]
    ) -> list[bool | None]:
        """Return whether all tests pass, the hidden ones too, which are run where the chosen ones pass."""
        outcomes = super().solved_all(problems, answers, vectors)
        trials: dict[int, Trial] = {}
        for place, (problem, answer) in enumerate(zip(problems, answers, strict=True)):
            source = _program(answer)
            if outcomes[place] and problem.hidden and source is not None:
                trials[place] = Trial(problem, source, problem.hidden)
        if trials:
            judged = verdicts(self.sandbox, list(trials.values()))
            for place, found in zip(trials, judged, strict=True):
                vector = _vector(found)
                outcomes[place] = None if vector is None else self.solved(vector)
        return outcomes

    def normal_form(self, answer: str) -> Hashable:
        """Return what programs share that differ in layout, comments and docstrings alone."""
        source = read_program(answer)
        return None if source is None else program_form(source)

    def gold(self, problem: CodeProblem) -> str | None:
        """Return the solution in a fence, where there is one."""
        return None if problem.solution is None else fenced(problem.solution)


def _program(answer: str | None) -> str | None:
    """Return the program of an answer, None for one that is missing, or no Python."""
    source = None if answer is None else read_program(answer)
    return None if source is None or parsed(source) is None else source


def _vector(found: Sequence[Verdict]) -> Vector | None:
    """Return 1 for each test that passed, or None where one could not be run for no fault of the program's."""
    if any(verdict.status is Status.ERROR for verdict in found):
        return None
    return tuple(float(verdict.status is Status.PASSED) for verdict in found)
