"""Expressions of given numbers that equal a target, by exhaustive search."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias

Term: TypeAlias = tuple[Fraction, str]  # a value and its expression


def solutions(numbers: Sequence[int], target: int) -> Iterator[str]:
    """Yield different expressions that use each number once and equal the target.

    Two terms are combined in every way, then two of the result, until one remains. With four numbers that is thousands
    of expressions, with five hundreds of thousands.
    """
    seen: set[str] = set()
    for value, text in _combine_all([(Fraction(number), str(number)) for number in numbers]):
        if value == target and text not in seen:
            seen.add(text)
            yield text.removeprefix("(").removesuffix(")") if len(numbers) > 1 else text


def _combine_all(terms: Sequence[Term]) -> Iterator[Term]:
    """Yield every value that the terms combine to, with its expression in brackets."""
    if len(terms) == 1:
        yield terms[0]
        return
    for first in range(len(terms)):
        for second in range(first + 1, len(terms)):
            rest = [term for index, term in enumerate(terms) if index not in (first, second)]
            for combined in _combine(terms[first], terms[second]):
                yield from _combine_all([*rest, combined])


def _combine(one: Term, other: Term) -> Iterator[Term]:
    (a, left), (b, right) = one, other
    yield a + b, f"({left} + {right})"
    yield a * b, f"({left} * {right})"
    yield a - b, f"({left} - {right})"
    yield b - a, f"({right} - {left})"
    if b:
        yield a / b, f"({left} / {right})"
    if a:
        yield b / a, f"({right} / {left})"
