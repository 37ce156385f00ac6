"""Arithmetic out of untrusted text: read by a small parser within bounds, computed exactly, never evaluated as code."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

MOST_TOKENS = 60  # of an expression; a longer one is not read
MOST_DIGITS = 15  # of a number; a longer one is not read


class Number(NamedTuple):
    """A number as it is written.

    Attributes:
        value: what it is; of 20%, a fifth.
        decimals: how many places after the point are written, of a percentage two more.
        percent: whether it is a percentage.
    """

    value: Fraction
    decimals: int = 0
    percent: bool = False


# A number, an operator, a bracket; or something else, which no expression has.
Token: TypeAlias = Number | str


class Expression(NamedTuple):
    """What an expression comes to.

    Attributes:
        value: exactly.
        numbers: that it uses, in order.
        form: a text that two expressions share if they differ in brackets and in the order of a sum or product alone.
        lone: the number, where the expression is one and nothing else, but for a sign.
    """

    value: Fraction
    numbers: tuple[Fraction, ...]
    form: str
    lone: Number | None = None


class _UnreadableError(ValueError):
    """These tokens are no expression."""


def number(text: str) -> Number | None:
    """Return a number written in ASCII digits, with commas or without, None where it has too many digits."""
    digits = text.replace(",", "")
    if len(digits) > MOST_DIGITS:
        return None
    return Number(Fraction(f"0{digits}"), len(digits.partition(".")[2]))


def percentage(of: Number) -> Number:
    """Return a number as a percentage."""
    return Number(of.value / 100, of.decimals + 2, True)


def evaluate(tokens: Sequence[Token], *, strict: bool) -> Expression | None:
    """Return what tokens come to, or None where they are no expression, divide by zero or are too many.

    Args:
        tokens: numbers, ``+ - * /`` and round brackets.
        strict: whether signs, as in -3, and products without an operator, as in 2(3 + 4), are refused.
    """
    if not 1 <= len(tokens) <= MOST_TOKENS:
        return None
    parser = _Parser(tokens, strict)
    try:
        found = parser.sum()
    except (_UnreadableError, ZeroDivisionError):
        return None
    return found if parser.place == len(tokens) else None


class _Parser:
    """Recursive descent. Its depth is bounded by the number of tokens."""

    def __init__(self, tokens: Sequence[Token], strict: bool) -> None:
        self.tokens, self.strict, self.place = tokens, strict, 0

    def sum(self) -> Expression:
        found = self.product()
        while (sign := self._taken("+-")) is not None:
            found = _combined(sign, found, self.product())
        return found

    def product(self) -> Expression:
        found = self.factor()
        while True:
            sign = self._taken("*/")
            if sign is None and (self.strict or self._next() != "("):
                return found
            found = _combined(sign or "*", found, self.factor())

    def factor(self) -> Expression:
        token = self._next()
        self.place += 1
        if isinstance(token, Number):
            return Expression(token.value, (token.value,), str(token.value), token)
        if token == "-" and not self.strict:
            of = self.factor()
            lone = None if of.lone is None else of.lone._replace(value=-of.lone.value)
            return Expression(-of.value, of.numbers, f"(-{of.form})", lone)
        if token != "(":
            raise _UnreadableError
        found = self.sum()
        if self._taken(")") is None:
            raise _UnreadableError
        return found

    def _next(self) -> Token | None:
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def _taken(self, signs: str) -> str | None:
        """Return the next token if it is one of these signs, and go past it."""
        token = self._next()
        if not isinstance(token, str) or token not in signs:
            return None
        self.place += 1
        return token


def _combined(sign: str, left: Expression, right: Expression) -> Expression:
    match sign:
        case "+":
            value = left.value + right.value
        case "-":
            value = left.value - right.value
        case "*":
            value = left.value * right.value
        case _:
            value = left.value / right.value
    forms = [left.form, right.form]
    if sign in "+*":
        forms.sort()
    return Expression(value, left.numbers + right.numbers, f"({sign.join(forms)})")
