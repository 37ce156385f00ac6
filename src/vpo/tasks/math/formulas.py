r"""Formulas that are not computed: copies of the question, and such as would take forever."""

import re
from dataclasses import dataclass

from vpo.tasks.math.numbers import equal_numbers
from vpo.tasks.math.plain import compare_plain, plain_number, unstyled

MOST_DIGITS = 100  # in a row; longer numbers are not computed
MOST_EXPONENT_DIGITS = 4  # of an exponent, and of a number whose factorial is taken
MOST_NESTED_DIGITS = 5  # of the exponents of a power of a power, and of a power of a factorial
MOST_SUM_DIGITS = 3  # of an exponent of a bracket with a letter, which algebra may expand
_TEXT = re.compile(r"\\(?:text(?:bf|it|rm)?|mathrm|mbox)\s?\{([^{}]*)\}")
_TYPESETTING = (
    (_TEXT, r"\1"),
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\frac\s*(?:\{([^{}]*)\}|([0-9A-Za-z]))\s*(?:\{([^{}]*)\}|([0-9A-Za-z]))"), r"\1\2/\3\4"),
    (re.compile(r"\^\{?\\circ\}?|\\(?:left|right|displaystyle|q?quad|limits)(?![A-Za-z])"), ""),
    (re.compile(r"\\[!,;: %$()\[\]]|[\s{}$~&]"), ""),
    (re.compile(r"\\(?:cdot|times)(?![A-Za-z])"), "*"),
)
_COMPUTES = re.compile(r"[A-Za-z*/^!+]")
_LETTER = re.compile(r"[A-Za-z]?")
_WORD = re.compile(r"\\[A-Za-z]+|[0-9]+(?:\.[0-9]+)?|.", re.DOTALL)
_LONG_NUMBER = re.compile(rf"[0-9](?:[\s,{{}}]*+[0-9]){{{MOST_DIGITS}}}")
_LONG = rf"[0-9]{{{MOST_EXPONENT_DIGITS + 1}}}"
_FACTORIAL = re.compile(rf"{_LONG}[\s{{}}()]*+!|binom\s*+\{{?\s*+{_LONG}|![\s{{}}()]*+!")
_TOKEN = re.compile(r"\^|\*\*|[0-9]+|\\[A-Za-z]+|\S")
_PRODUCTS = frozenset(["*", r"\cdot", r"\times"])
_ARITHMETIC = _PRODUCTS | {r"\div", r"\frac", r"\dfrac", r"\tfrac", r"\left", r"\right"}


def copied(question: str, gold: str, answer: str) -> bool:
    r"""Whether an answer is a formula of the question, so that nothing is computed: ``\sqrt{180}`` where 6√5 is right.

    Typesetting does not count. The gold answer itself is no copy, and neither is a number or a name.
    """
    text = _value(_typeset(answer))
    golds = [_typeset(gold), _typeset(_TEXT.sub("", gold))]  # with and without its unit
    if text in [_bare(right) for each in golds for right in (each, each.rpartition("=")[2])]:
        return False
    if plain_number(answer) is not None or compare_plain(gold, answer) is True or equal_numbers(gold, text):
        return False
    if not _COMPUTES.search(text) or _LETTER.fullmatch(text):
        return False
    words = _joined(_typeset(question))
    return all(_LETTER.fullmatch(side) or _joined(_bare(side)) in words for side in text.split("="))


@dataclass
class _Bracket:
    """A bracket, or the whole answer.

    Attributes:
        limit: digits that a number in it may have; None where it is in no exponent.
        below: digits of exponents that those in it add to, as in a power of a power.
        exponent: whether it is one itself.
        index: whether it is a subscript, which no exponent belongs to.
        letter: whether it holds a letter or function.
        digits: of the exponents and factorials in it.
    """

    limit: int | None = None
    below: int = 0
    exponent: bool = False
    index: bool = False
    letter: bool = False
    digits: int = 0


def computable(answer: str) -> bool:
    """Whether an answer has no towers of powers, and no huge exponents or numbers: algebra hangs on those.

    A power of a variable may be an exponent. Not all that hangs is found: a comparison has a time limit, too.
    """
    if _LONG_NUMBER.search(answer) or _FACTORIAL.search(answer):
        return False
    opened = [_Bracket()]
    base = _Bracket()  # the bracket that ends just before a token
    exponent: _Bracket | None = None  # one that begins just before it
    before = ""
    for token in _TOKEN.findall(answer):
        inner = opened[-1]
        if token in ("^", "**"):
            variable = before.isalpha() and len(before) == 1
            if exponent or base.exponent or (inner.limit is not None and not variable):
                return False
            most = MOST_SUM_DIGITS if base.letter else MOST_EXPONENT_DIGITS
            exponent = _Bracket(min(most, MOST_NESTED_DIGITS - base.digits), base.digits, exponent=True)
        elif token in "{([":
            opened.append(exponent or _Bracket(inner.limit, inner.below, index=before == "_"))
            base, exponent = _Bracket(), None
        elif token in "})]":
            closed = opened.pop() if len(opened) > 1 else _Bracket()
            opened[-1].letter |= closed.letter
            opened[-1].digits = max(opened[-1].digits, closed.digits)
            base, exponent = _Bracket() if closed.index else closed, None
        else:
            within = exponent or inner
            if within.limit is not None and not _in_exponent(token, before, within.limit):
                return False
            if within.limit is not None and token.isdigit():
                inner.digits = max(inner.digits, within.below + len(token))
            elif token == "!" and before.isdigit():
                inner.digits = max(inner.digits, len(before))
            inner.letter |= token.lstrip("\\").isalpha() and token not in _ARITHMETIC
            base, exponent = _Bracket(exponent=exponent is not None), None
        before = token
    return True


def _in_exponent(token: str, before: str, limit: int) -> bool:
    """Whether an exponent may hold this: no factorial, no product with a number, no number above a limit of digits."""
    return token != "!" and not (token.isdigit() and (len(token) > limit or before in _PRODUCTS))


def _typeset(text: str) -> str:
    """A text without spaces and most of its typesetting."""
    text = unstyled(text)
    for pattern, replacement in _TYPESETTING:
        text = pattern.sub(replacement, text)
    return text.removesuffix(".")


def _value(text: str) -> str:
    """What stands after ``x =``, or the whole, without brackets around it."""
    name, _, value = text.rpartition("=")
    return _bare(value if _LETTER.fullmatch(name) else text)


def _bare(text: str) -> str:
    """A formula without round brackets around the whole of it."""
    while text.startswith("(") and text.endswith(")") and _closes_last(text):
        text = text[1:-1]
    return text


def _closes_last(text: str) -> bool:
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position == len(text) - 1
    return False


def _joined(text: str) -> str:
    """The words of a formula, told apart: 2x is no part of 12x."""
    return "".join(f"\0{word}" for word in _WORD.findall(text)) + "\0"
