"""Whether what came out is what was expected. Both are plain values here, with no method of a candidate's."""

import cmath
import marshal
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from vpo.sandbox.verdicts import Case
from vpo.util.errors import InputError

RELATIVE, ABSOLUTE = 1e-7, 1e-6  # how far a number may be off where a case does not say
NEAR_ZERO = 1e-4  # how far from 0 a polynomial may be at its zero
# A number as programs print it. Others that Python reads, such as 1_000, are not.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
COLLECTIONS = (list, tuple, set, frozenset)
MOST = 1_000_000  # comparisons of members of two collections: how many there are is up to the program


def agrees(case: Case, output: Any) -> bool:
    """Return whether an output is what a case expects."""
    try:
        return COMPARISONS[case.by](output, case.given[0] if case.by == "zero" else case.expected, case.atol)
    except KeyError:
        raise InputError(f"by must be one of {', '.join(COMPARISONS)}, not {case.by!r}") from None
    except (OverflowError, RecursionError):  # of numbers too large to be compared, of values nested too deep
        return False


def same_value(found: Any, expected: Any, atol: float | None) -> bool:
    """Return whether two values are the same: lists and tuples are alike, numbers may be off by a little.

    What is expected says whether they may: else a wrong whole number would be right as a float.
    """
    if isinstance(expected, float) or (atol and isinstance(found, float)):
        return _is_number(found) and _is_number(expected) and _close(found, expected, atol)
    if isinstance(expected, complex):
        both = isinstance(found, complex | float | int)
        return both and cmath.isclose(found, expected, rel_tol=RELATIVE, abs_tol=atol or ABSOLUTE)
    if isinstance(expected, list | tuple):
        if not isinstance(found, list | tuple) or len(found) != len(expected):
            return False
        return all(same_value(one, other, atol) for one, other in zip(found, expected, strict=True))
    if isinstance(expected, dict):
        if not isinstance(found, dict) or found.keys() != expected.keys():
            return False
        return all(same_value(found[key], each, atol) for key, each in expected.items())
    return bool(found == expected)


def same_set(found: Any, expected: Any, atol: float | None) -> bool:
    """Return whether two collections hold the same, in whatever order and however often."""
    if not (isinstance(found, COLLECTIONS) and isinstance(expected, COLLECTIONS)):
        return same_value(found, expected, atol)
    ours, theirs = _distinct(found), _distinct(expected)
    if ours.keys() == theirs.keys():
        return True
    if len(ours) * _size(list(theirs.values())) > MOST:
        return False
    return _has_all(ours.values(), theirs.values(), atol) and _has_all(theirs.values(), ours.values(), atol)


def same_text(found: Any, expected: Any, atol: float | None) -> bool:
    """Return whether two printed texts are the same, but for space at the ends of lines and how numbers are written."""
    if not isinstance(found, str):
        return False
    ours, theirs = _lines(found), _lines(expected)
    if ours == theirs:
        return True
    ours_words, theirs_words = [line.split() for line in ours], [line.split() for line in theirs]
    if [len(line) for line in ours_words] != [len(line) for line in theirs_words]:
        return False
    pairs = (pair for lines in zip(ours_words, theirs_words, strict=True) for pair in zip(*lines, strict=True))
    return all(one == other or _same_number(one, other, atol) for one, other in pairs)


def is_zero(found: Any, coefficients: Any, atol: float | None) -> bool:
    """Return whether a number is a zero of a polynomial, whose coefficients come lowest power first."""
    if not _is_number(found) or not math.isfinite(found):
        return False
    value = sum(each * found**power for power, each in enumerate(coefficients))
    return bool(abs(value) <= (atol or NEAR_ZERO))


COMPARISONS: dict[str, Callable[[Any, Any, float | None], bool]] = {
    "value": same_value,
    "text": same_text,
    "set": same_set,
    "zero": is_zero,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _close(found: float, expected: float, atol: float | None) -> bool:
    if math.isnan(expected) or math.isnan(found):
        return math.isnan(expected) and math.isnan(found)
    return math.isclose(found, expected, rel_tol=RELATIVE, abs_tol=atol or ABSOLUTE)


def _has_all(one: Any, other: Any, atol: float | None) -> bool:
    return all(any(same_value(each, candidate, atol) for candidate in other) for each in one)


def _distinct(members: Any) -> dict[bytes, Any]:
    """Return members by what tells them apart, each once."""
    return {_key(each): each for each in members}


def _key(value: Any) -> bytes:
    try:
        return marshal.dumps(_as_list(value), 2)
    except ValueError:  # something that has no text of its own, and equals nothing
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
    """Return whether two words are one number; whole ones are words, as 011 and 11 are two strings of digits."""
    if len(one) > 400 or len(other) > 400 or not (NUMBER.fullmatch(one) and NUMBER.fullmatch(other)):
        return False
    if not atol and one.lstrip("+-").isdigit() and other.lstrip("+-").isdigit():
        return False
    try:
        found, expected = Decimal(one), Decimal(other)
        return found == expected or bool(atol and abs(found - expected) <= Decimal(atol))
    except ArithmeticError:  # a number beyond all bounds
        return False
