"""The task code: each test is an objective."""

from collections.abc import Sequence
from typing import ClassVar

from vpo.sandbox.verdicts import Verdict
from vpo.tasks.code.base import MOST_TESTS, ProgramTask, passed_tests
from vpo.tasks.code.problem import CodeProblem
from vpo.tasks.task import Objective, Vector


class CodeTask(ProgramTask):
    """Programs against test cases; test_i is 1 if test i passes."""

    name: ClassVar[str] = "code"
    summary: ClassVar[str] = "programs against test cases: each test is an objective"
    objectives: ClassVar[tuple[Objective, ...]] = tuple(
        Objective(f"test_{number}", f"test {number} of the problem passes") for number in range(1, MOST_TESTS + 1)
    )
    weights: ClassVar[Vector] = (1 / MOST_TESTS,) * MOST_TESTS
    ragged: ClassVar[bool] = True

    def names_of(self, problem: CodeProblem) -> tuple[str, ...]:
        """test_1 to test_D, for the D tests of the problem."""
        return self.names[: len(problem.checks)]

    def vector(self, problem: CodeProblem, source: str, verdicts: Sequence[Verdict]) -> Vector | None:
        """1 for each test that passes."""
        passed = passed_tests(verdicts)
        return None if passed is None else tuple(map(float, passed))
