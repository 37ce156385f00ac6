"""code: programs against test cases, each test an objective, run in `vpo.sandbox` since they are untrusted."""

from vpo.tasks.code.problem import CodeProblem
from vpo.tasks.code.task import CodeTask

__all__ = ["CodeProblem", "CodeTask"]
