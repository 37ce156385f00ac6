"""Equations in a solution's prose, such as ``$0.2 x 50 = $10``: found in linear time, and checked exactly.

A side of an equation is read if it is numbers, operators and brackets, with currency signs, thousands' commas, percent
signs and words for units. What cannot be read for certain, such as a side with a variable or a power in it, is no
equation and counts neither way. ``<<48/2=24>>``, the annotations of GSM8K, are equations of their own.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from vpo.tasks.math.arithmetic import Expression, Number, Token, evaluate, number, percentage

BAD = "?"  # a token that makes its side unreadable
ANNOTATION = re.compile(r"<<([^<>\n]{1,200})>>")

# Words that compute: what stands beside them is not all there is.
_COMPUTING = re.compile(
    r"of|by|half|twice|thrice|double|triple|divided|multiplied"
    r"|squared|cubed|root|dozen|hundred|thousand|million"
)
SPOKEN = {"x": "*", "times": "*", "plus": "+", "minus": "-"}
SIGNS = {
    **{sign: sign for sign in "+-*/()"},
    **{"−": "-", "–": "-", "×": "*", "⋅": "*", "·": "*", "÷": "/", "[": "(", "]": ")"},
    **{r"\times": "*", r"\cdot": "*", r"\div": "/"},
}
_PIECE = re.compile(
    r"(?P<number>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
    r"|(?P<word>[^\W\d_]+(?:[/'’-][^\W\d_]+)*)"
    r"|(?P<space>[^\S\n]+|[$€£]|\\[$,;! ]|\.{2,}|…|(?<![0-9)])\*\*|\*\*(?![0-9(]))"
    r"|(?P<line>\n)"
    r"|(?P<within>(?<=[0-9])[.,:](?=[0-9]))"  # 10:30, 1,2345
    r"|(?P<stop>[.,;:?!\"“”|—<>≈≠→]|\\[()\[\]])"
    r"|(?P<equals>=)"
    r"|(?P<percent>\\?%)"
    r"|(?P<sign>\\(?:times|cdot|div)(?![A-Za-z])|\*\*|[-+*/()\[\]−–×⋅·÷])"
    r"|(?P<other>\\[A-Za-z]+|.)",
    re.DOTALL,
)
_OPERAND = re.compile(r"\s{0,3}[$€£]?\s{0,3}[0-9.(]")


class Equation(NamedTuple):
    """An equation that computes something on its left: in 2 quarts = 16 * 2, the left side only says what follows.

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
        """What two equations share that say the same."""
        return self.left.form, self.right.form

    @property
    def true(self) -> bool:
        """Whether both sides are equal, or one is the other rounded to the decimals that it is written with."""
        return any(
            _agree(one, other) or _agree(other, one) for one in _readings(self.left) for other in _readings(self.right)
        )

    @property
    def results(self) -> frozenset[Fraction]:
        """What its right side comes to; of 25%, a quarter and 25."""
        return frozenset(value for value, _ in _readings(self.right))


def _readings(side: Expression) -> list[tuple[Fraction, int]]:
    """Return what a side may mean, with the decimals to which it is rounded: 40% as a result is 0.4 or 40."""
    if side.lone is None:
        return [(side.value, 0)]
    found = [(side.value, side.lone.decimals)]
    if side.lone.percent:
        found.append((side.value * 100, side.lone.decimals - 2))
    return found


def _agree(exact: tuple[Fraction, int], written: tuple[Fraction, int]) -> bool:
    value, decimals = written
    if decimals == 0:
        return exact[0] == value
    return abs(exact[0] - value) <= Fraction(1, 2 * 10**decimals)


def equations(text: str) -> list[Equation]:
    """Return the different equations of a text, in the order they stand; the same one counts once."""
    places: list[tuple[int, Equation]] = []
    for match in ANNOTATION.finditer(text):
        places += [(match.start(), found) for _, found in _written(match.group(1))]
    # Annotations are blanked out, not cut, so that places stay: 9 * 2 = $<<9*2=18>>18 is read as 9 * 2 = $18.
    prose = ANNOTATION.sub(lambda match: " " * len(match.group()), text)
    places += _written(prose)
    different: dict[tuple[str, str], Equation] = {}
    for _, found in sorted(places, key=lambda place: place[0]):
        different.setdefault(found.key, found)
    return list(different.values())


def _written(text: str) -> Iterator[tuple[int, Equation]]:
    """Yield equations with the places where their chain begins: of a = b = c, both."""
    for chain in _chains(text):
        sides = _sides(chain)
        read = [evaluate([token for _, _, token in side], strict=False) for side in sides]
        for place in range(len(sides) - 1):
            left, right = read[place], read[place + 1]
            if left is not None and right is not None and left.lone is None:
                start, end = sides[place][0][0], sides[place + 1][-1][1]
                yield start, Equation(left, right, " ".join(text[start:end].split()))


class _Piece(NamedTuple):
    start: int
    end: int
    token: Token


def _sides(chain: Sequence[_Piece]) -> list[list[_Piece]]:
    """Cut a chain at its equals signs, without brackets around the whole."""
    sides: list[list[_Piece]] = [[]]
    for piece in chain:
        if piece.token == "=":
            sides.append([])
        else:
            sides[-1].append(piece)
    if _opened(sides[0]) == 1 and sides[0][0].token == "(":
        sides[0] = sides[0][1:]
    if _opened(sides[-1]) == -1 and sides[-1][-1].token == ")":
        sides[-1] = sides[-1][:-1]
    return sides


def _opened(side: Sequence[_Piece]) -> int:
    tokens = [piece.token for piece in side]
    return tokens.count("(") - tokens.count(")")


def _chains(text: str) -> Iterator[list[_Piece]]:
    """Yield runs of tokens that belong together, those that have an equals sign."""
    reader = _Reader()
    for match in _PIECE.finditer(text):
        reader.take(match)
    reader.end()
    return iter(reader.chains)


class _Reader:
    """Goes over the pieces of a text once, and gathers chains."""

    def __init__(self) -> None:
        self.chains: list[list[_Piece]] = []
        self.chain: list[_Piece] = []
        self.unit = False  # whether words stand between the last token and here
        self.fresh = True  # whether the chain begins a line, where a minus is a sign

    def take(self, match: re.Match[str]) -> None:
        """Read one piece."""
        kind, start, end = match.lastgroup, match.start(), match.end()
        match kind:
            case "number":
                self._number(start, end, number(match.group()))
            case "word":
                self._word(start, end, match.group().lower(), match.string)
            case "line" | "stop":
                self.end(fresh=kind == "line")
            case "equals":
                self._add(start, end, "=")
            case "percent":
                self._percent(start, end)
            case "sign":
                self._sign(start, end, SIGNS.get(match.group(), BAD))
            case "other" | "within":
                self._add(start, end, BAD)

    def end(self, *, fresh: bool = False) -> None:
        """End the chain; what follows is another."""
        if any(piece.token == "=" for piece in self.chain):
            self.chains.append(self.chain)
        self.chain, self.unit, self.fresh = [], False, fresh

    @property
    def last(self) -> Token | None:
        return self.chain[-1].token if self.chain else None

    def _add(self, start: int, end: int, token: Token) -> None:
        self.chain.append(_Piece(start, end, token))
        self.unit = False

    def _number(self, start: int, end: int, found: Number | None) -> None:
        if self.unit:  # 5 apples and 3 + 4 = 7
            self.end()
        if isinstance(self.last, Number) or self.last == ")" or found is None:
            self._add(start, start, BAD)  # 400 000
        self._add(start, end, found or BAD)

    def _word(self, start: int, end: int, word: str, text: str) -> None:
        computed = isinstance(self.last, Number) or self.last == ")"
        if word == "percent":
            self._percent(start, end)
        elif word in SPOKEN:
            self._add(start, end, SPOKEN[word] if computed and _OPERAND.match(text, end) else BAD)
        elif _COMPUTING.fullmatch(word) or (computed and len(word) == 1) or self.last in ("+", "-", "*", "/", "("):
            self._add(start, end, BAD)
        elif computed:
            self.unit = True
        else:  # a word before anything else: a name that a sign may follow
            self.end()
            self._add(start, end, BAD)
            self.unit = True

    def _percent(self, start: int, end: int) -> None:
        if isinstance(self.last, Number) and not self.unit and not self.last.percent:
            self.chain[-1] = _Piece(self.chain[-1].start, end, percentage(self.last))
        else:
            self._add(start, end, BAD)

    def _sign(self, start: int, end: int, sign: str) -> None:
        if sign == "(" and self.unit:  # 5 apples (3 + 2 = 5)
            self.end()
        elif sign == "(" and isinstance(self.last, Number) and self.chain[-1].end != start:  # = 4 (15 minutes)
            self.end()
            self._add(start, start, BAD)
        if not self.chain and sign not in "(" and not (sign == "-" and self.fresh):
            self._add(start, start, BAD)
        self._add(start, end, sign)
