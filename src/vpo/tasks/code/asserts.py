"""Turns asserts (MBPP, HumanEval) into inputs and expected outputs, without running them.

``f(3, 4) == 7``                          a call on literals, compared by ``==`` with a literal outside the sandbox
``sorted(f([2, 1])) == [1, 2]``           the same, with a wrapper around the call in the sandbox; so ``f(…)`` alone,
                                          ``not f(…)``, ``set(f(…)) == set(…)``, ``f(…) is True``
``abs(f(1.5) - 0.5) < 1e-6``              a call on literals, compared within a tolerance; so ``math.isclose``
anything else                             excluded: it could be compared in the sandbox only, where a program forges it
"""

import ast
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from vpo.sandbox.verdicts import Case
from vpo.tasks.code.problem import WRAPPER, Check

OTHER_STATEMENTS = "statements between its asserts"

LARGEST = 100  # exponent in an expression that is evaluated here
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_CONSTRUCTORS: dict[str, Callable[..., Any]] = {"set": set, "tuple": tuple, "list": list, "float": float}

# Functions that may wrap the call before its result is compared.
_WRAPPING = (*_CONSTRUCTORS, "bool", "sorted", "round", "len", "sum")


class NotLiteralError(Exception):
    """An expression is not made of literals."""


def checks_of(tests: Iterable[ast.expr], entry: str, name: str) -> tuple[list[Check], list[str]]:
    """The expressions of asserts as checks, and as text those that are excluded.

    Args:
        tests: the expressions.
        entry: the function that is tested.
        name: its name in the expressions.
    """
    checks, excluded = [], []
    for test in tests:
        if isinstance(test, ast.Constant):  # such as assert True
            continue
        try:
            checks.append(_check(test, entry, name))
        except (NotLiteralError, ValueError, TypeError, ArithmeticError, RecursionError):
            excluded.append(f"assert {ast.unparse(test)[:80]}")
    return checks, excluded


def checks_in(body: Sequence[ast.stmt], entry: str, name: str) -> tuple[list[Check], list[str]]:
    """The checks of the body of a function that asserts, and what is excluded, as text."""
    checks, excluded = checks_of([each.test for each in body if isinstance(each, ast.Assert)], entry, name)
    if all(_has_no_effect(each) or isinstance(each, ast.Assert) for each in body):
        return checks, excluded
    return checks, [*excluded, OTHER_STATEMENTS]


def _check(test: ast.expr, entry: str, name: str) -> Check:
    """An expression as a check that is compared outside the sandbox."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            if name in _names(right):
                left, right = right, left
            return _check_call(left, literal(right), entry, name)
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="abs"), args=[ast.BinOp(left=left, op=ast.Sub(), right=value)]),
            ops=[ast.Lt() | ast.LtE()],
            comparators=[bound],
        ):
            return _check_call(left, literal(value), entry, name, atol=float(literal(bound)))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr="isclose"), args=[left, value]):
            return _check_call(left, literal(value), entry, name, atol=_tolerance(test, literal(value)))
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id=called)) as call) if called == name:
            return _check_call(_truth(call), False, entry, name)
        case ast.Call(func=ast.Name(id=called)) if called == name:
            return _check_call(_truth(test), True, entry, name)
    raise NotLiteralError


def _tolerance(close: ast.Call, value: Any) -> float:
    tolerances = {each.arg: float(literal(each.value)) for each in close.keywords}
    return max(tolerances.get("rel_tol", 1e-9) * abs(float(value)), tolerances.get("abs_tol", 0.0))


def _truth(call: ast.expr) -> ast.expr:
    return ast.Call(func=ast.Name(id="bool", ctx=ast.Load()), args=[call], keywords=[])


def _check_call(expression: ast.expr, expected: Any, entry: str, name: str, atol: float | None = None) -> Check:
    """A check of an expression that calls the function once, on literals."""
    calls = [
        node
        for node in ast.walk(expression)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]
    if len(calls) != 1 or calls[0].keywords:
        raise NotLiteralError
    call = calls[0]
    compare = "equal" if atol is None else "value"
    case = Case(tuple(literal(argument) for argument in call.args), expected, atol, compare)
    if call is expression:
        return Check(case)
    if _names(expression) - {name, *_WRAPPING}:
        raise NotLiteralError
    call.func = ast.Name(id=entry, ctx=ast.Load())
    call.args = [ast.Starred(value=ast.Name(id="args", ctx=ast.Load()), ctx=ast.Load())]
    return Check(case, f"def {WRAPPER}(*args):\n    return {ast.unparse(expression)}")


def _names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def literal(node: ast.expr | None) -> Any:
    """The value of an expression of literals, evaluated without running any code of the row."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=elements):
            return [literal(each) for each in elements]
        case ast.Tuple(elts=elements):
            return tuple(literal(each) for each in elements)
        case ast.Set(elts=elements):
            return {literal(each) for each in elements}
        case ast.Dict(keys=keys, values=values):
            return {literal(key): literal(value) for key, value in zip(keys, values, strict=True)}
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](literal(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _evaluate(op, literal(left), literal(right))
        case ast.Call(func=ast.Name(id=constructor), args=arguments, keywords=[]) if constructor in _CONSTRUCTORS:
            return _CONSTRUCTORS[constructor](*(literal(each) for each in arguments))
    raise NotLiteralError


def _evaluate(op: ast.operator, left: Any, right: Any) -> Any:
    """The result of an operation on two values; those that could be large are refused."""
    if isinstance(op, ast.Mult) and not all(isinstance(each, int | float | complex) for each in (left, right)):
        raise NotLiteralError
    if isinstance(op, ast.Mod) and isinstance(left, str):
        raise NotLiteralError
    if isinstance(op, ast.Pow) and not (isinstance(right, int) and abs(right) <= LARGEST):
        raise NotLiteralError
    return _BINARY[type(op)](left, right)


def _has_no_effect(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant() | ast.Name()):
            return True
    return False
