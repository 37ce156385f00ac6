"""Arithmetic from untrusted text: a small parser with bounds, exact fractions, and no eval."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

MOST_TOKENS = 60  # of an expression; a longer one is not parsed
MOST_DIGITS = 15  # of a number; a longer one is not parsed


class Number(NamedTuple):
    """A number as it is written.

    Attributes:
        value: exactly; of 20%, a fifth.
        decimals: digits after the point as written; for a percentage, two more.
        percent: whether it is a percentage.
    """

    value: Fraction
    decimals: int = 0
    percent: bool = False


# A number, an operator, a bracket; or another text, which no expression contains.
Token: TypeAlias = Number | str


class Expression(NamedTuple):
    """The value and the form of an expression.

    Attributes:
        value: exactly.
        numbers: those that it uses, in order.
        form: the same text for expressions that differ only in brackets and in the order of a sum or product.
        lone: the number, where the expression is a single one, with or without a minus.
    """

    value: Fraction
    numbers: tuple[Fraction, ...]
    form: str
    lone: Number | None = None


class _SyntaxError(ValueError):
    """The tokens are not an expression."""


def parse_number(text: str) -> Number | None:
    """A number in ASCII digits, with or without commas; None where it has too many digits."""
    digits = text.replace(",", "")
    if len(digits) > MOST_DIGITS:
        return None
    return Number(Fraction(f"0{digits}"), len(digits.partition(".")[2]))


def percentage(of: Number) -> Number:
    """A number followed by a percent sign."""
    return Number(of.value / 100, of.decimals + 2, True)


def evaluate(tokens: Sequence[Token], *, strict: bool) -> Expression | None:
    """The value of tokens, or None where they are no expression, divide by zero or are too many.

    Args:
        tokens: numbers, ``+ - * /`` and round brackets.
        strict: whether signs, as in -3, and products without an operator, as in 2(3 + 4), are refused.
    """
    if not 1 <= len(tokens) <= MOST_TOKENS:
        return None
    parser = _Parser(tokens, strict)
    try:
        expression = parser.sum()
    except (_SyntaxError, ZeroDivisionError):
        return None
    return expression if parser.position == len(tokens) else None


def open_brackets(tokens: Sequence[Token]) -> int | None:
    """How many brackets are open after tokens that begin a strict expression; None where they begin none."""
    depth, complete = 0, False
    for token in tokens:
        if complete == (isinstance(token, Number) or token == "("):
            return None  # a number or bracket after a number, or something else before one
        depth += (token == "(") - (token == ")")
        complete = isinstance(token, Number) or token == ")"
        if depth < 0:
            return None
    return depth


class _Parser:
    """Recursive descent. Its depth is bounded by the number of tokens."""

    def __init__(self, tokens: Sequence[Token], strict: bool) -> None:
        self.tokens, self.strict, self.position = tokens, strict, 0

    def sum(self) -> Expression:
        expression = self.product()
        while (operator := self._accept("+-")) is not None:
            expression = _combine(operator, expression, self.product())
        return expression

    def product(self) -> Expression:
        expression = self.factor()
        while True:
            operator = self._accept("*/")
            if operator is None and (self.strict or self._next() != "("):
                return expression
            expression = _combine(operator or "*", expression, self.factor())

    def factor(self) -> Expression:
        token = self._next()
        self.position += 1
        if isinstance(token, Number):
            return Expression(token.value, (token.value,), str(token.value), token)
        if token == "-" and not self.strict:
            of = self.factor()
            lone = None if of.lone is None else of.lone._replace(value=-of.lone.value)
            return Expression(-of.value, of.numbers, f"(-{of.form})", lone)
        if token != "(":
            raise _SyntaxError
        expression = self.sum()
        if self._accept(")") is None:
            raise _SyntaxError
        return expression

    def _next(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _accept(self, characters: str) -> str | None:
        """Consume the next token if it is one of these characters."""
        token = self._next()
        if not isinstance(token, str) or token not in characters:
            return None
        self.position += 1
        return token


def _combine(operator: str, left: Expression, right: Expression) -> Expression:
    match operator:
        case "+":
            value = left.value + right.value
        case "-":
            value = left.value - right.value
        case "*":
            value = left.value * right.value
        case _:
            value = left.value / right.value
    forms = [left.form, right.form]
    if operator in "+*":
        forms.sort()
    return Expression(value, left.numbers + right.numbers, f"({operator.join(forms)})")
