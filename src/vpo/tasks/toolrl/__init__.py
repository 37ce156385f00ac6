"""toolrl: choosing tools and filling in their arguments (arXiv 2504.13958), four objectives for a set of calls."""

from vpo.tasks.toolrl.problem import Call, ToolProblem
from vpo.tasks.toolrl.task import ToolrlTask

__all__ = ["Call", "ToolProblem", "ToolrlTask"]
