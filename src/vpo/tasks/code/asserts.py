"""Tests that are written as asserts (MBPP, HumanEval), turned into inputs and expected outputs without running them.

``f(3, 4) == 7``                          a call on plain values, compared with one: the judge compares
``sorted(f([2, 1])) == [1, 2]``           the same of what is made of the call, beside the program; so ``f(…)`` alone,
                                          ``not f(…)``, ``set(f(…)) == set(…)``, ``f(…) is True``
``abs(f(1.5) - 0.5) < 1e-6``              a call on plain values, compared within a tolerance; so ``math.isclose``
anything else                             weak: the whole assert stands beside the program (see `Check`)
"""

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from vpo.sandbox.verdicts import Case
from vpo.tasks.code.problem import THROUGH, Check

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


def check_of(test: ast.expr, entry: str, name: str, before: str = "") -> Check | None:
    """Return an assert's expression as a check; None for one that says nothing.

    Args:
        test: the expression.
        entry: the function that is tested.
        name: what the expression calls it.
        before: source that the expression needs, which stands after the program.
    """
    if isinstance(test, ast.Constant):
        return None
    try:
        return _compared(test, entry, name)
    except (NotPlainError, ValueError, TypeError, ArithmeticError, RecursionError):
        alias = "" if name == entry else f"    {name} = {entry}\n"
        return weak_check(f"{before}\ndef {THROUGH}():\n{alias}    return bool({ast.unparse(test)})\n")


def weak_check(through: str) -> Check:
    """Return a check that is made beside the program, by a function that returns True."""
    return Check(Case((), True), through.strip(), weak=True)


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


def checks_of(body: Sequence[ast.stmt], entry: str, name: str, whole: str) -> list[Check]:
    """Return the checks of a function that asserts.

    Where it does more than that, an assert may need what comes before it: those that are no plain calls are then left
    to one weak check, which is the whole function.

    Args:
        body: of the function.
        entry: the function that is tested.
        name: what the body calls it.
        whole: source of a weak check that runs all of it.
    """
    found = [check for each in body if isinstance(each, ast.Assert) and (check := check_of(each.test, entry, name))]
    if all(_says_nothing(each) or isinstance(each, ast.Assert) for each in body):
        return found
    return [*(check for check in found if not check.weak), weak_check(whole)]


def _says_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant() | ast.Name()):
            return True
    return False
