"""Rows whose tests are asserts: MBPP (arXiv 2108.07732) and HumanEval (arXiv 2107.03374)."""

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from vpo.tasks.code.answers import parsed
from vpo.tasks.code.asserts import checks_in, checks_of
from vpo.tasks.code.problem import Check, Draft
from vpo.tasks.data import field, items
from vpo.util.errors import InputError


def read_mbpp(row: Mapping[str, Any], place: str) -> Draft:
    """Return a row of MBPP: the full set (`text`) or the sanitized one (`prompt`).

    What is to be set up before the tests is for asserts that are left out, since it makes objects for them.
    """
    code = field(row, "code", str, place)
    lines = items(row, "test_list", str, place)
    lines += items(row, "challenge_test_list", str, place) if row.get("challenge_test_list") else []
    tests = [test for line in lines for test in _asserted(line, place)]
    function = _tested(code, tests, place)
    checks, left_out = _some(*checks_of(tests, function.name, function.name), place)
    return Draft(
        id=f"Mbpp/{field(row, 'task_id', int, place)}",
        statement=field(row, "text" if "text" in row else "prompt", str, place).strip(),
        checks=checks,
        left_out=left_out,
        entry=function.name,
        starter=f"def {function.name}({ast.unparse(function.args)}):",
        solution=code.replace("\r\n", "\n"),
    )


def read_humaneval(row: Mapping[str, Any], place: str) -> Draft:
    """Return a row of HumanEval. Its prompt is code, which stands before every answer: it may have helpers."""
    entry, prompt = field(row, "entry_point", str, place), field(row, "prompt", str, place)
    test = field(row, "test", str, place)
    tree = parsed(test)
    found = [each for each in (tree.body if tree else ()) if isinstance(each, ast.FunctionDef) and each.name == "check"]
    if len(found) != 1 or len(found[0].args.args) != 1:
        raise InputError(f"{place}: test must define one function check of one argument")
    checks, left_out = _some(*checks_in(found[0].body, entry, found[0].args.args[0].arg), place)
    return Draft(
        id=field(row, "task_id", str, place),
        statement="Complete this function.",
        checks=checks,
        left_out=left_out,
        entry=entry,
        starter=prompt.strip(),
        setup=prompt,
        solution=prompt + field(row, "canonical_solution", str, place),
    )


def _asserted(line: str, place: str) -> list[ast.expr]:
    """Return the expressions that a line asserts."""
    tree = parsed(line)
    found = [each.test for each in tree.body if isinstance(each, ast.Assert)] if tree else []
    if tree is None or len(found) != len(tree.body):
        raise InputError(f"{place}: a test must be an assert, not {line[:60]!r}")
    return found


def _tested(code: str, tests: Sequence[ast.expr], place: str) -> ast.FunctionDef:
    """Return the function of a solution that its tests call most."""
    tree = parsed(code)
    defined = {each.name: each for each in (tree.body if tree else ()) if isinstance(each, ast.FunctionDef)}
    calls = [node.func for test in tests for node in ast.walk(test) if isinstance(node, ast.Call)]
    called = Counter(call.id for call in calls if isinstance(call, ast.Name) and call.id in defined)
    if not called:
        raise InputError(f"{place}: code must define the function that the tests call")
    return defined[called.most_common(1)[0][0]]


def _some(checks: Sequence[Check], left_out: Sequence[str], place: str) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """Refuse a row without tests; one whose tests are all left out is a problem that cannot be asked."""
    if not checks and not left_out:
        raise InputError(f"{place}: the row must hold 1 or more tests, not 0")
    return tuple(checks), tuple(left_out)
