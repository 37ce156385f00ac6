r"""Formulas that are not computed: copies of the question, and such as would take forever."""

import re

from vpo.tasks.math.plain import plain_number, unstyled

MOST_DIGITS = 100  # in a row; longer numbers are not computed
MOST_EXPONENT_DIGITS = 4  # of an exponent, and of a number whose factorial is taken
MOST_SUM_DIGITS = 3  # of an exponent of a bracket, which algebra may expand
_TYPESETTING = (
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r"\1/\2"),
    (re.compile(r"\\frac\s*([0-9])\s*([0-9])"), r"\1/\2"),
    (re.compile(r"\\(?:text|mathrm|mbox)\s?\{[^{}]*\}|\^\{?\\circ\}?"), ""),
    (re.compile(r"\\(?:left|right|displaystyle|q?quad|limits)(?![A-Za-z])|\\[!,;: %$()\[\]]|[\s{}$~&]"), ""),
    (re.compile(r"\\(?:cdot|times)(?![A-Za-z])"), "*"),
)
_COMPUTES = re.compile(r"[A-Za-z*/^!+]")
_LETTER = re.compile(r"[A-Za-z]?")
_WORD = re.compile(r"\\[A-Za-z]+|[0-9]+(?:\.[0-9]+)?|.", re.DOTALL)
_LONG_NUMBER = re.compile(rf"[0-9](?:[\s,{{}}]*+[0-9]){{{MOST_DIGITS}}}")
_LONG = rf"[0-9]{{{MOST_EXPONENT_DIGITS + 1}}}"
_FACTORIAL = re.compile(rf"{_LONG}[\s{{}}()]*+!|binom\s*+\{{?\s*+{_LONG}|![\s{{}}()]*+!")
_TOKEN = re.compile(r"\^|\*\*|[0-9]+|\\[A-Za-z]+|\S")


def copied(question: str, gold: str, answer: str) -> bool:
    r"""Whether an answer is a formula of the question, so that nothing is computed: ``\sqrt{180}`` where 6√5 is right.

    Typesetting does not count. A formula that is the gold answer itself is none, and neither is a number or a name.
    """
    text = _typeset(answer)
    if text == _typeset(gold) or plain_number(answer) is not None:
        return False
    sides = text.split("=")
    if text.count("=") == 1 and _LETTER.fullmatch(sides[0]) and sides[1] == _typeset(gold).rpartition("=")[2]:
        return False
    if not _COMPUTES.search(text) or _LETTER.fullmatch(text):
        return False
    words = _joined(_typeset(question))
    return all(_LETTER.fullmatch(side) or _joined(_bare(side)) in words for side in sides)


def computable(answer: str) -> bool:
    """Whether an answer has no towers of powers, and no huge exponents or numbers: algebra hangs on those.

    A power of a variable may be an exponent.
    """
    if _LONG_NUMBER.search(answer) or _FACTORIAL.search(answer):
        return False
    opened: list[bool] = []  # whether each open bracket is that of an exponent
    exponents = 0  # open brackets that are
    begins = ended = False  # whether an exponent begins here, or has just ended
    most = MOST_EXPONENT_DIGITS
    before = ""
    for match in _TOKEN.finditer(answer):
        token = match.group()
        if token in ("^", "**"):
            if begins or ended or (exponents and not (before.isalpha() and len(before) == 1)):
                return False
            begins, ended = True, False
            most = MOST_SUM_DIGITS if before and before in "})]" else MOST_EXPONENT_DIGITS
        elif token in "{([":
            opened.append(begins)
            exponents += begins
            begins = ended = False
        elif token in "})]":
            ended, begins = bool(opened and opened.pop()), False
            exponents -= ended
        else:
            if token.isdigit() and (exponents or begins) and len(token) > most:
                return False
            ended, begins = begins, False
        before = token
    return True


def _typeset(text: str) -> str:
    """A text without spaces and most of its typesetting."""
    text = unstyled(text)
    for pattern, replacement in _TYPESETTING:
        text = pattern.sub(replacement, text)
    return text.removesuffix(".")


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
