"""Rows of LeetCodeDataset (arXiv 2504.14655), as published or as Code-R1 has them: asserts on a method of Solution.

Asserts on linked lists and trees are excluded: their inputs are no literals.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from vpo.tasks.code.answers import parse_python
from vpo.tasks.code.assert_rows import require_tests
from vpo.tasks.code.asserts import checks_in
from vpo.tasks.code.problem import Draft
from vpo.tasks.data import field
from vpo.util.errors import InputError

# What solutions use without importing it, where the row has no imports; the built-in names come last, so that no
# module hides one.
_MODULES = (
    *("typing", "collections", "heapq", "bisect", "string", "math", "itertools", "functools", "operator"),
    *("random", "re", "copy", "builtins"),
)
IMPORTS = "\n".join([f"import {', '.join(_MODULES)}", *(f"from {module} import *" for module in _MODULES)])
_INTRODUCTION = "Please solve the programming task below using a self-contained code snippet in a markdown code block."
_STARTER = "Please complete the following python code precisely:\n```python\n"
_CALLED = re.compile(r"Solution\(\)\.([A-Za-z_]\w*)")


def is_leetcode(row: Mapping[str, Any]) -> bool:
    """Whether a row is of this data set."""
    published = str(row.get("entry_point")).startswith("Solution()") and "completion" in row
    return published or all(isinstance(row.get(name), str) for name in ("problem", "solution", "test"))


def read_leetcode(row: Mapping[str, Any], where: str) -> Draft:
    """Read a row: the published fields, or the three of Code-R1, `problem`, `solution` and `test`."""
    test = field(row, "test", str, where)
    if "entry_point" in row:
        called = field(row, "entry_point", str, where)
        solution, setup = field(row, "completion", str, where), field(row, "prompt", str, where)
        statement, starter = field(row, "problem_description", str, where), field(row, "starter_code", str, where)
    else:
        called = test[test.rfind("check(") :]
        solution, setup = field(row, "solution", str, where), IMPORTS
        statement, _, starter = field(row, "problem", str, where).removeprefix(_INTRODUCTION).partition(_STARTER)
        starter = starter.rstrip().removesuffix("```")
    method = _CALLED.search(called)
    if method is None:
        raise InputError(f"{where}: the tests must call a method of Solution()")
    body, candidate = _asserts(test, where)
    _pass_by_position(body, candidate, _parameters(solution, method[1], where))
    checks, excluded = require_tests(*checks_in(body, method[0], candidate), where)
    return Draft(
        id=str(row.get("task_id") or row.get("id") or where.rpartition("/")[2]),
        statement=statement.strip(),
        checks=checks,
        excluded=excluded,
        entry=f"Solution.{method[1]}",
        starter=starter.rstrip(),
        setup=setup,
        solution=solution,
    )


def _asserts(test: str, where: str) -> tuple[list[ast.stmt], str]:
    """The body of the function check, and the name of its argument."""
    tree = parse_python(test)
    for each in tree.body if tree else ():
        if isinstance(each, ast.FunctionDef) and each.name == "check" and len(each.args.args) == 1:
            return each.body, each.args.args[0].arg
    raise InputError(f"{where}: test must define a function check of one argument")


def _parameters(solution: str, method: str, where: str) -> list[str]:
    """The parameters of a method of Solution, without self."""
    tree = parse_python(solution)
    classes = [each for each in (tree.body if tree else ()) if isinstance(each, ast.ClassDef)]
    for each in (statement for solved in classes if solved.name == "Solution" for statement in solved.body):
        if isinstance(each, ast.FunctionDef) and each.name == method:
            return [argument.arg for argument in each.args.args[1:]]
    raise InputError(f"{where}: the solution must define Solution.{method}, which the tests call")


def _pass_by_position(body: Sequence[ast.stmt], candidate: str, parameters: Sequence[str]) -> None:
    """Change calls of the candidate so that arguments which name the parameters in order are passed by position."""
    for call in (node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Name) and call.func.id == candidate:
            names = [*parameters[: len(call.args)], *(each.arg for each in call.keywords)]
            if names == list(parameters[: len(names)]):
                call.args, call.keywords = [*call.args, *(each.value for each in call.keywords)], []
