"""Rows whose tests are asserts: MBPP (arXiv 2108.07732) and HumanEval (arXiv 2107.03374)."""

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from vpo.tasks.code.answers import parse_python
from vpo.tasks.code.asserts import checks_in, checks_of
from vpo.tasks.code.problem import Check, Draft
from vpo.tasks.data import field, items
from vpo.util.errors import InputError


def read_mbpp(row: Mapping[str, Any], where: str) -> Draft:
    """Read a row of MBPP: the full set (`text`) or the sanitized one (`prompt`).

    Its setup code is ignored: it makes objects for asserts that are excluded.
    """
    code = field(row, "code", str, where)
    lines = items(row, "test_list", str, where)
    lines += items(row, "challenge_test_list", str, where) if row.get("challenge_test_list") else []
    tests = [test for line in lines for test in _asserted(line, where)]
    function = _tested_function(code, tests, where)
    checks, excluded = require_tests(*checks_of(tests, function.name, function.name), where)
    return Draft(
        id=f"Mbpp/{field(row, 'task_id', int, where)}",
        statement=field(row, "text" if "text" in row else "prompt", str, where).strip(),
        checks=checks,
        excluded=excluded,
        entry=function.name,
        starter=f"def {function.name}({ast.unparse(function.args)}):",
        solution=code.replace("\r\n", "\n"),
    )


def read_humaneval(row: Mapping[str, Any], where: str) -> Draft:
    """Read a row of HumanEval. Its prompt is code, put before every answer since it may define helpers."""
    entry, prompt = field(row, "entry_point", str, where), field(row, "prompt", str, where)
    test = field(row, "test", str, where)
    tree = parse_python(test)
    body = tree.body if tree else ()
    functions = [each for each in body if isinstance(each, ast.FunctionDef) and each.name == "check"]
    if len(functions) != 1 or len(functions[0].args.args) != 1:
        raise InputError(f"{where}: test must define one function check of one argument")
    checks, excluded = require_tests(*checks_in(functions[0].body, entry, functions[0].args.args[0].arg), where)
    return Draft(
        id=field(row, "task_id", str, where),
        statement="Complete this function.",
        checks=checks,
        excluded=excluded,
        entry=entry,
        starter=prompt.strip(),
        setup=prompt,
        solution=prompt + field(row, "canonical_solution", str, where),
    )


def _asserted(line: str, where: str) -> list[ast.expr]:
    """The expressions that a line asserts."""
    tree = parse_python(line)
    tests = [each.test for each in tree.body if isinstance(each, ast.Assert)] if tree else []
    if tree is None or len(tests) != len(tree.body):
        raise InputError(f"{where}: a test must be an assert, not {line[:60]!r}")
    return tests


def _tested_function(code: str, tests: Sequence[ast.expr], where: str) -> ast.FunctionDef:
    """The function of a solution that its tests call most."""
    tree = parse_python(code)
    defined = {each.name: each for each in (tree.body if tree else ()) if isinstance(each, ast.FunctionDef)}
    calls = [node.func for test in tests for node in ast.walk(test) if isinstance(node, ast.Call)]
    called = Counter(call.id for call in calls if isinstance(call, ast.Name) and call.id in defined)
    if not called:
        raise InputError(f"{where}: code must define the function that the tests call")
    return defined[called.most_common(1)[0][0]]


def require_tests(
    checks: Sequence[Check], excluded: Sequence[str], where: str
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """Refuse a row without tests. A row whose tests are all excluded passes, and is skipped later."""
    if not checks and not excluded:
        raise InputError(f"{where}: the row must have 1 or more tests, not 0")
    return tuple(checks), tuple(excluded)
