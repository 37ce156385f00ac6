"""Tests that are written as asserts (MBPP, HumanEval), turned into inputs and expected outputs without running them.

``f(3, 4) == 7``                          a call on plain values, compared with one: the judge compares
``sorted(f([2, 1])) == [1, 2]``           the same of what is made of the call, beside the program; so ``f(…)`` alone,
                                          ``not f(…)``, ``set(f(…)) == set(…)``, ``f(…) is True``
``abs(f(1.5) - 0.5) < 1e-6``              a call on plain values, compared within a tolerance; so ``math.isclose``
anything else                             left out: it could be compared beside the program alone, which could say yes
"""

import ast
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from vpo.sandbox.verdicts import Case
from vpo.tasks.code.problem import THROUGH, Check

BESIDES = "what stands between its asserts"

LARGEST = 100  # exponent in an expression that is worked out here
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
_MAKERS: dict[str, Callable[..., Any]] = {"set": set, "tuple": tuple, "list": list, "float": float}


# What may be made of the result of a call before it is compared.
_AROUND = (*_MAKERS, "bool", "sorted", "round", "len", "sum")


class NotPlainError(Exception):
    """An expression is more than a plain value."""


def checks_of(tests: Iterable[ast.expr], entry: str, name: str) -> tuple[list[Check], list[str]]:
    """Return the expressions of asserts as checks, and as text those in which no judge outside could compare.

    Args:
        tests: the expressions.
        entry: the function that is tested.
        name: what the expressions call it.
    """
    checks, left_out = [], []
    for test in tests:
        if isinstance(test, ast.Constant):  # it says nothing
            continue
        try:
            checks.append(_compared(test, entry, name))
        except (NotPlainError, ValueError, TypeError, ArithmeticError, RecursionError):
            left_out.append(f"assert {ast.unparse(test)[:80]}")
    return checks, left_out


def checks_in(body: Sequence[ast.stmt], entry: str, name: str) -> tuple[list[Check], list[str]]:
    """Return the checks of the body of a function that asserts, and what of it is left out."""
    checks, left_out = checks_of([each.test for each in body if isinstance(each, ast.Assert)], entry, name)
    if all(_says_nothing(each) or isinstance(each, ast.Assert) for each in body):
        return checks, left_out
    return checks, [*left_out, BESIDES]


def _compared(test: ast.expr, entry: str, name: str) -> Check:
    """Return an expression as a check in which the judge compares."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            if name in _names(right):
                left, right = right, left
            return _called(left, plain(right), entry, name)
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="abs"), args=[ast.BinOp(left=left, op=ast.Sub(), right=value)]),
            ops=[ast.Lt() | ast.LtE()],
            comparators=[bound],
        ):
            return _called(left, plain(value), entry, name, atol=float(plain(bound)))
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr="isclose"), args=[left, value]):
            return _called(left, plain(value), entry, name, atol=_tolerance(test, plain(value)))
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id=called)) as call) if called == name:
            return _called(_truth(call), False, entry, name)
        case ast.Call(func=ast.Name(id=called)) if called == name:
            return _called(_truth(test), True, entry, name)
    raise NotPlainError


def _tolerance(close: ast.Call, value: Any) -> float:
    given = {each.arg: float(plain(each.value)) for each in close.keywords}
    return max(given.get("rel_tol", 1e-9) * abs(float(value)), given.get("abs_tol", 0.0))


def _truth(call: ast.expr) -> ast.expr:
    return ast.Call(func=ast.Name(id="bool", ctx=ast.Load()), args=[call], keywords=[])


def _called(expression: ast.expr, expected: Any, entry: str, name: str, atol: float | None = None) -> Check:
    """Return a check of an expression that calls the function once, on plain values."""
    calls = [
        node
        for node in ast.walk(expression)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]
    if len(calls) != 1 or calls[0].keywords:
        raise NotPlainError
    call = calls[0]
    case = Case(tuple(plain(argument) for argument in call.args), expected, atol)
    if call is expression:
        return Check(case)
    if _names(expression) - {name, *_AROUND}:
        raise NotPlainError
    call.func = ast.Name(id=entry, ctx=ast.Load())
    call.args = [ast.Starred(value=ast.Name(id="args", ctx=ast.Load()), ctx=ast.Load())]
    return Check(case, f"def {THROUGH}(*args):\n    return {ast.unparse(expression)}")


def _names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def plain(node: ast.expr | None) -> Any:
    """Return the value of an expression of plain values, worked out without running anything."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=elements):
            return [plain(each) for each in elements]
        case ast.Tuple(elts=elements):
            return tuple(plain(each) for each in elements)
        case ast.Set(elts=elements):
            return {plain(each) for each in elements}
        case ast.Dict(keys=keys, values=values):
            return {plain(key): plain(value) for key, value in zip(keys, values, strict=True)}
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](plain(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _worked_out(op, plain(left), plain(right))
        case ast.Call(func=ast.Name(id=maker), args=arguments, keywords=[]) if maker in _MAKERS:
            return _MAKERS[maker](*(plain(each) for each in arguments))
    raise NotPlainError


def _worked_out(op: ast.operator, left: Any, right: Any) -> Any:
    """Return what two plain values come to, refusing what would be large."""
    if isinstance(op, ast.Mult) and not all(isinstance(each, int | float | complex) for each in (left, right)):
        raise NotPlainError
    if isinstance(op, ast.Mod) and isinstance(left, str):
        raise NotPlainError
    if isinstance(op, ast.Pow) and not (isinstance(right, int) and abs(right) <= LARGEST):
        raise NotPlainError
    return _BINARY[type(op)](left, right)


def _says_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant() | ast.Name()):
            return True
    return False
