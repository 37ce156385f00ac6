"""Equations in a solution's prose, such as ``$0.2 x 50 = $10``: extracted in linear time, and checked exactly.

A side of an equation is parsed if it is numbers, operators and brackets, with currency signs, thousands' commas,
percent signs and words for units. What cannot be parsed for certain, such as a side with a variable or a power in it,
is no equation: it counts neither as true nor as false. ``<<48/2=24>>``, an annotation of GSM8K, is an equation of its
own.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from vpo.tasks.math.arithmetic import Expression, evaluate
from vpo.tasks.math.chains import Piece, chains

ANNOTATION = re.compile(r"<<([^<>\n]{1,200})>>")


class Equation(NamedTuple):
    """An equation whose left side computes something. That of 2 quarts = 16 * 2 does not: it is no such equation.

    Attributes:
        left: its left side.
        right: its right side.
        text: as it is written.
    """

    left: Expression
    right: Expression
    text: str

    @property
    def key(self) -> tuple[str, str]:
        """Equal for equations that differ only in brackets and in the order of a sum or product."""
        return self.left.form, self.right.form

    @property
    def true(self) -> bool:
        """Whether both sides are equal, or one is the other rounded to the decimals that it is written with."""
        return any(
            _agree(one, other) or _agree(other, one) for one in _readings(self.left) for other in _readings(self.right)
        )

    @property
    def results(self) -> frozenset[Fraction]:
        """The values of its right side; for 25%, a quarter and 25."""
        return frozenset(value for value, _ in _readings(self.right))


def _readings(side: Expression) -> list[tuple[Fraction, int]]:
    """The values that a side may mean, each with the decimals to which it is rounded: 40% is 0.4 or 40."""
    if side.lone is None:
        return [(side.value, 0)]
    values = [(side.value, side.lone.decimals)]
    if side.lone.percent:
        values.append((side.value * 100, side.lone.decimals - 2))
    return values


def _agree(exact: tuple[Fraction, int], rounded: tuple[Fraction, int]) -> bool:
    value, decimals = rounded
    if decimals == 0:
        return exact[0] == value
    return abs(exact[0] - value) <= Fraction(1, 2 * 10**decimals)


def equations(text: str) -> list[Equation]:
    """The different equations of a text, in order; a repeated one appears once."""
    positioned: list[tuple[int, Equation]] = []
    for match in ANNOTATION.finditer(text):
        positioned += [(match.start(), equation) for _, equation in _extract(match.group(1))]
    # Annotations are blanked out, not cut, so that positions stay: 9 * 2 = $<<9*2=18>>18 is read as 9 * 2 = $18.
    prose = ANNOTATION.sub(lambda match: " " * len(match.group()), text)
    positioned += _extract(prose)
    different: dict[tuple[str, str], Equation] = {}
    for _, equation in sorted(positioned, key=lambda pair: pair[0]):
        different.setdefault(equation.key, equation)
    return list(different.values())


def _extract(text: str) -> Iterator[tuple[int, Equation]]:
    """Yield equations with their positions; of a = b = c, two."""
    for chain in chains(text):
        sides = _sides(chain)
        expressions = [evaluate([piece.token for piece in side], strict=False) for side in sides]
        for index in range(len(sides) - 1):
            left, right = expressions[index], expressions[index + 1]
            if left is not None and right is not None and left.lone is None:
                start, end = sides[index][0].start, sides[index + 1][-1].end
                yield start, Equation(left, right, " ".join(text[start:end].split()))


def _sides(chain: Sequence[Piece]) -> list[list[Piece]]:
    """Split a chain at its equals signs, without brackets around the whole."""
    sides: list[list[Piece]] = [[]]
    for piece in chain:
        if piece.token == "=":
            sides.append([])
        else:
            sides[-1].append(piece)
    if _open_brackets(sides[0]) == 1 and sides[0][0].token == "(":
        sides[0] = sides[0][1:]
    if _open_brackets(sides[-1]) == -1 and sides[-1][-1].token == ")":
        sides[-1] = sides[-1][:-1]
    return sides


def _open_brackets(side: Sequence[Piece]) -> int:
    tokens = [piece.token for piece in side]
    return tokens.count("(") - tokens.count(")")
