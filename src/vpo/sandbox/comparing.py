"""Whether what came out is what was expected. Both are plain values here, with no method of a candidate's."""

import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from vpo.errors import InputError
from vpo.sandbox.verdicts import Case

RELATIVE, ABSOLUTE = 1e-7, 1e-6  # how far a number may be off where a case does not say
COLLECTIONS = (list, tuple, set, frozenset)


def agrees(case: Case, output: Any) -> bool:
    """Return whether an output is what a case expects."""
    try:
        return COMPARISONS[case.by](output, case.expected, case.atol)
    except KeyError:
        raise InputError(f"by must be one of {', '.join(COMPARISONS)}, not {case.by!r}") from None
    except (OverflowError, RecursionError):  # of numbers too large to be compared, of values nested too deep
        return False


def same_value(found: Any, expected: Any, atol: float | None) -> bool:
    """Return whether two values are the same: lists and tuples are alike, numbers may be off by a little."""
    if isinstance(expected, float) or isinstance(found, float):
        return _is_number(found) and _is_number(expected) and _close(found, expected, atol)
    if isinstance(expected, complex) or isinstance(found, complex):
        both = isinstance(found, complex | int) and isinstance(expected, complex | int)
        return both and abs(found - expected) <= max(atol or ABSOLUTE, RELATIVE * abs(expected))
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
    return _has_all(found, expected, atol) and _has_all(expected, found, atol)


def same_presence(found: Any, expected: Any, atol: float | None) -> bool:
    """Return whether there is something, or nothing, in both."""
    return (found is None or found is False) == (expected is None or expected is False)


def same_text(found: Any, expected: Any, atol: float | None) -> bool:
    """Return whether two printed texts are the same, but for space at the ends of lines and how numbers are written."""
    ours, theirs = _lines(found), _lines(expected)
    if ours == theirs:
        return True
    ours_words, theirs_words = [line.split() for line in ours], [line.split() for line in theirs]
    if [len(line) for line in ours_words] != [len(line) for line in theirs_words]:
        return False
    pairs = (pair for lines in zip(ours_words, theirs_words, strict=True) for pair in zip(*lines, strict=True))
    return all(one == other or _same_number(one, other, atol) for one, other in pairs)


COMPARISONS: dict[str, Callable[[Any, Any, float | None], bool]] = {
    "value": same_value,
    "text": same_text,
    "set": same_set,
    "not_none": same_presence,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _close(found: float, expected: float, atol: float | None) -> bool:
    if math.isnan(expected) or math.isnan(found):
        return math.isnan(expected) and math.isnan(found)
    return math.isclose(found, expected, rel_tol=RELATIVE, abs_tol=atol or ABSOLUTE)


def _has_all(one: Any, other: Any, atol: float | None) -> bool:
    return all(any(same_value(each, candidate, atol) for candidate in other) for each in one)


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_number(one: str, other: str, atol: float | None) -> bool:
    if len(one) > 400 or len(other) > 400:
        return False
    try:
        found, expected = Decimal(one), Decimal(other)
        if not (found.is_finite() and expected.is_finite()):
            return False
        return abs(found - expected) <= Decimal(atol or 0)
    except (InvalidOperation, ValueError):
        return False
