"""The task code_quality: programs that pass the tests, in few characters, in little time."""

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from vpo.sandbox.verdicts import Verdict
from vpo.tasks.code.base import ProgramTask, passed_tests
from vpo.tasks.code.problem import CodeProblem
from vpo.tasks.code.running import Submission, grade
from vpo.tasks.task import Objective, Vector

NO_SOLUTION = 400  # characters of a brief program, where the data has no solution to compare with
RESOLUTION = 0.05  # seconds that are added to both times, and
TOLERANCE = 1.25  # times the solution's that count as no slower: measured times differ by chance


class CodeQualityTask(ProgramTask):
    """Programs that are right, brief and fast, which is not one program: a comprehension is brief, a loop may be fast.

    tests is the share of the rewarded tests that pass. Only a program that passes all of them has more: brevity is 1 up
    to the length of the data's solution, then that length over its own, in characters without spaces, comments
    included. speed is alike for the time that the sandbox charged for these tests, in tenths. A problem is
    solved if all tests pass, the hidden ones included.
    """

    name: ClassVar[str] = "code_quality"
    summary: ClassVar[str] = "programs that pass their tests, and are brief and fast"
    objectives: ClassVar[tuple[Objective, ...]] = (
        Objective("tests", "share of the tests that pass"),
        Objective("brevity", "passes all tests, and is no longer than the solution"),
        Objective("speed", "passes all tests, and takes no longer than the solution"),
    )
    weights: ClassVar[Vector] = (1 / 2, 1 / 4, 1 / 4)

    def solved(self, vector: Sequence[float]) -> bool:
        """Whether all rewarded tests pass."""
        return vector[0] >= 1.0

    @cached_property
    def _solution_seconds(self) -> dict[str, float]:
        """What the solution of each problem took, by its id."""
        return {}

    def prepare(self, problems: Sequence[CodeProblem]) -> None:
        """Compute expected outputs, and time the solutions, each once."""
        super().prepare(problems)
        untimed = {each.id: each for each in problems if each.solution and each.id not in self._solution_seconds}
        submissions = [Submission(each, each.solution or "", each.checks) for each in untimed.values()]
        for name, verdicts in zip(untimed, grade(self.sandbox, submissions) if submissions else [], strict=True):
            if passed_tests(verdicts) is not None:  # else it is timed again
                self._solution_seconds[name] = seconds_of(verdicts)

    def vector(self, problem: CodeProblem, source: str, verdicts: Sequence[Verdict]) -> Vector | None:
        """The share of tests that pass, and for a program that passes all, brevity and speed."""
        passed = passed_tests(verdicts)
        timed = problem.solution is None or problem.id in self._solution_seconds
        if passed is None or (all(passed) and not timed):
            return None
        if not all(passed):
            return sum(passed) / len(passed), 0.0, 0.0
        length = NO_SOLUTION if problem.solution is None else characters(problem.solution)
        return (
            1.0,
            min(1.0, length / characters(source)),
            speed(seconds_of(verdicts), self._solution_seconds.get(problem.id, 0.0)),
        )


def characters(source: str) -> int:
    """The length of a program: characters that are no space; 1 or more."""
    return max(1, sum(map(len, source.split())))


def speed(seconds: float, allowed: float) -> float:
    """1 up to the time of the solution, then that time over the program's, in tenths: chance moves few scores."""
    return round(min(1.0, TOLERANCE * (allowed + RESOLUTION) / (seconds + RESOLUTION)), 1)


def seconds_of(verdicts: Sequence[Verdict]) -> float:
    """What a program took over its tests: processor time, and time asleep."""
    return sum(verdict.seconds for verdict in verdicts)
