"""Compares outputs with expected outputs. Both are plain values: no method of the program's own is ever called."""

import cmath
import marshal
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from vpo.sandbox.verdicts import Case
from vpo.util.errors import InputError

RELATIVE, ABSOLUTE = 1e-7, 1e-6  # tolerances for numbers where a case has no atol
NEAR_ZERO = 1e-4  # tolerance for the value of a polynomial at its zero
# A number as programs print it, so not all that Python reads, such as 1_000.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
COLLECTIONS = (list, tuple, set, frozenset)
MOST = 1_000_000  # comparisons between members of two collections, whose sizes are up to the program


def agrees(case: Case, output: Any) -> bool:
    """Whether an output is what the case expects, by the comparison that the case names."""
    try:
        compare = COMPARISONS[case.compare]
        expected = case.input[0] if case.compare == "zero" else case.expected
        return any(compare(output, each, case.atol) for each in (expected, *case.also))
    except KeyError:
        raise InputError(f"compare must be one of {', '.join(COMPARISONS)}, not {case.compare!r}") from None
    except (OverflowError, RecursionError):  # numbers too large to be compared, values nested too deep
        return False


def same_value(actual: Any, expected: Any, atol: float | None) -> bool:
    """Whether two values are equal, where lists equal tuples, and floats are compared within a tolerance.

    The tolerance depends on the type of the expected value: otherwise a wrong integer would be right as a float.
    """
    if isinstance(expected, float) or (atol and isinstance(actual, float)):
        return _is_number(actual) and _is_number(expected) and _close(actual, expected, atol)
    if isinstance(expected, complex):
        both = isinstance(actual, complex | float | int)
        return both and cmath.isclose(actual, expected, rel_tol=RELATIVE, abs_tol=atol or ABSOLUTE)
    if isinstance(expected, list | tuple):
        if not isinstance(actual, list | tuple) or len(actual) != len(expected):
            return False
        return all(same_value(one, other, atol) for one, other in zip(actual, expected, strict=True))
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or actual.keys() != expected.keys():
            return False
        return all(same_value(actual[key], each, atol) for key, each in expected.items())
    return bool(actual == expected)


def equal(actual: Any, expected: Any, atol: float | None) -> bool:
    """Whether Python's ``==`` holds, as in an assert: a tuple is no list, and floats have no tolerance."""
    return bool(actual == expected)


def equal_in_livecodebench(actual: Any, expected: Any, atol: float | None) -> bool:
    """As LiveCodeBench compares what a function returns: by ``==``, where a tuple stands for a list, not inside one."""
    return bool((list(actual) if isinstance(actual, tuple) else actual) == expected)


def equal_in_evalplus(actual: Any, expected: Any, atol: float | None) -> bool:
    """As EvalPlus compares: by ``==``; else, with a tolerance, type and length must agree and all numbers be close."""
    if actual == expected:
        return True
    if not atol or type(actual) is not type(expected):
        return False
    return _all_close(actual, expected, atol)


def anything(actual: Any, expected: Any, atol: float | None) -> bool:
    """Whether the program returned at all."""
    return True


def same_set(actual: Any, expected: Any, atol: float | None) -> bool:
    """Whether two collections have equal members, in any order and any number."""
    if not (isinstance(actual, COLLECTIONS) and isinstance(expected, COLLECTIONS)):
        return same_value(actual, expected, atol)
    actual_members, expected_members = _distinct(actual), _distinct(expected)
    if actual_members.keys() == expected_members.keys():
        return True
    if len(actual_members) * _size(list(expected_members.values())) > MOST:
        return False
    ours, theirs = actual_members.values(), expected_members.values()
    return all(any(same_value(one, other, atol) for other in theirs) for one in ours) and all(
        any(same_value(one, other, atol) for one in ours) for other in theirs
    )


def same_text(actual: Any, expected: Any, atol: float | None) -> bool:
    """Whether two printed texts are equal, except for space at the ends of lines and the notation of numbers."""
    if not isinstance(actual, str):
        return False
    actual_lines, expected_lines = _lines(actual), _lines(expected)
    if actual_lines == expected_lines:
        return True
    actual_words, expected_words = ([line.split() for line in lines] for lines in (actual_lines, expected_lines))
    if [len(line) for line in actual_words] != [len(line) for line in expected_words]:
        return False
    pairs = (pair for lines in zip(actual_words, expected_words, strict=True) for pair in zip(*lines, strict=True))
    return all(one == other or _same_number(one, other, atol) for one, other in pairs)


def same_text_in_livecodebench(actual: Any, expected: Any, atol: float | None) -> bool:
    """As LiveCodeBench compares what is printed: line by line without outer space, as texts or as decimal numbers."""
    if not isinstance(actual, str):
        return False
    actual_lines, expected_lines = ([line.strip() for line in text.strip().split("\n")] for text in (actual, expected))
    if len(actual_lines) != len(expected_lines):
        return False
    try:
        return all(
            one == other or list(map(Decimal, one.split())) == list(map(Decimal, other.split()))
            for one, other in zip(actual_lines, expected_lines, strict=True)
        )
    except ArithmeticError:  # a word that is no number
        return False


def is_zero(actual: Any, coefficients: Any, atol: float | None) -> bool:
    """Whether a number is a zero of the polynomial with these coefficients, lowest power first."""
    if not _is_number(actual) or not math.isfinite(actual):
        return False
    value = sum(each * actual**power for power, each in enumerate(coefficients))
    return bool(abs(value) <= (atol or NEAR_ZERO))


COMPARISONS: dict[str, Callable[[Any, Any, float | None], bool]] = {
    "value": same_value,
    "text": same_text,
    "equal": equal,
    "set": same_set,
    "zero": is_zero,
    "anything": anything,
    "evalplus": equal_in_evalplus,
    "livecodebench": equal_in_livecodebench,
    "livecodebench_text": same_text_in_livecodebench,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _close(actual: float, expected: float, atol: float | None) -> bool:
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    return math.isclose(actual, expected, rel_tol=RELATIVE, abs_tol=atol or ABSOLUTE)


def _all_close(actual: Any, expected: Any, atol: float) -> bool:
    """As numpy's allclose, on numbers and on arrays of one shape. It is false for NaN and for everything else."""
    shape, numbers = _array(expected)
    actual_shape, actual_numbers = _array(actual)
    if shape is None or shape != actual_shape:
        return False
    return all(
        one == other or abs(one - other) <= atol + RELATIVE * abs(other) < math.inf
        for one, other in zip(actual_numbers, numbers, strict=True)
    )


def _array(value: Any) -> tuple[tuple[int, ...] | None, list[Any]]:
    """The shape and the numbers of nested sequences; no shape for what is not an array of numbers."""
    if isinstance(value, int | float | complex):
        return (), [value]
    if not isinstance(value, list | tuple):
        return None, []
    members = [_array(each) for each in value]
    shapes = {shape for shape, _ in members}
    if None in shapes or len(shapes) > 1:
        return None, []
    inner = shapes.pop() if shapes else ()
    assert inner is not None
    return (len(value), *inner), [number for _, numbers in members for number in numbers]


def _distinct(members: Any) -> dict[bytes, Any]:
    """Members by a key that tells them apart, each once."""
    return {_key(each): each for each in members}


def _key(value: Any) -> bytes:
    try:
        return marshal.dumps(_as_list(value), 2)
    except ValueError:  # an `Other`, which equals nothing
        return str(id(value)).encode()


def _as_list(value: Any) -> Any:
    return [_as_list(each) for each in value] if isinstance(value, list | tuple) else value


def _size(value: Any) -> int:
    return sum(map(_size, value)) + 1 if isinstance(value, list | tuple) else 1


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_number(one: str, other: str, atol: float | None) -> bool:
    """Whether two words are the same number. Integers are compared as words: 011 and 11 are different digit strings."""
    if len(one) > 400 or len(other) > 400 or not (NUMBER.fullmatch(one) and NUMBER.fullmatch(other)):
        return False
    if not atol and one.lstrip("+-").isdigit() and other.lstrip("+-").isdigit():
        return False
    try:
        left, right = Decimal(one), Decimal(other)
        return left == right or bool(atol and abs(left - right) <= Decimal(atol))
    except ArithmeticError:  # an exponent too large for Decimal
        return False
