"""Expressions of given numbers that come to a target, by trying all."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias

Part: TypeAlias = tuple[Fraction, str]


def solutions(numbers: Sequence[int], target: int) -> Iterator[str]:
    """Yield different expressions that use each number once and come to a target, as they are found.

    Two parts are joined in every way, then two of what is left, until one remains. With four numbers that is some
    thousands of expressions, with five some hundred thousands.
    """
    seen: set[str] = set()
    for value, text in _joined([(Fraction(number), str(number)) for number in numbers]):
        if value == target and text not in seen:
            seen.add(text)
            yield text.removeprefix("(").removesuffix(")") if len(numbers) > 1 else text


def _joined(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield every value that parts can be joined to, with its expression, which has brackets around it."""
    if len(parts) == 1:
        yield parts[0]
        return
    for first in range(len(parts)):
        for second in range(first + 1, len(parts)):
            rest = [part for place, part in enumerate(parts) if place not in (first, second)]
            for joined in _pairs(parts[first], parts[second]):
                yield from _joined([*rest, joined])


def _pairs(one: Part, other: Part) -> Iterator[Part]:
    (a, left), (b, right) = one, other
    yield a + b, f"({left} + {right})"
    yield a * b, f"({left} * {right})"
    yield a - b, f"({left} - {right})"
    yield b - a, f"({right} - {left})"
    if b:
        yield a / b, f"({left} / {right})"
    if a:
        yield b / a, f"({right} / {left})"
