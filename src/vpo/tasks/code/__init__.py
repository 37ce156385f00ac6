"""Programs against test cases, run in `vpo.sandbox` since they are untrusted: the tasks code and code_quality."""

from vpo.tasks.code.problem import CodeProblem
from vpo.tasks.code.quality import CodeQualityTask
from vpo.tasks.code.task import CodeTask

__all__ = ["CodeProblem", "CodeQualityTask", "CodeTask"]
