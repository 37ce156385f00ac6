r"""Final answers that are numbers: which number a text states.

One rule for what follows ``####``, for boxes and for "the answer is …": the first number after the last ``=``, with or
without a unit. It is none where it is part of something else, such as 7^14, 14th or 14 million, and where another
number stands directly beside it, as in ``14, 15`` or ``14 or 15``: whatever is right, two numbers are no answer. What
follows a unit or another word is not compared, since it is never read; ``14 hours and 30 minutes`` alone is one sum.
"""

import re
from fractions import Fraction

from vpo.tasks.math.equations import ANNOTATION
from vpo.tasks.math.plain import FRACTIONS, MULTIPLES, NUMBER, compare_plain, plain_number

_CLEANED = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (ANNOTATION.pattern, ""),
        (r"(?<=[0-9])(?:\{,\}|\\,|,\\! ?)(?=[0-9]{3})", ","),  # LaTeX for 1,234
        (r"<[/|]?[A-Za-z_]{1,30}\|?>", " "),  # </answer>, <|im_end|>
        (r"\\!", ""),
        (r"(?<![0-9])\\[dt]?frac\{([0-9]{1,15})\}\{([0-9]{1,15})\}", r"\1/\2"),
        (r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:rm|bf|it|sf)|mbox|boxed|fbox)\s?\{", " "),
        (r"\\(?:approx|displaystyle|q?quad|Rightarrow|implies|therefore|left|right)(?![A-Za-z])", " "),
        (r"\^\{?\\circ\}?|°", " "),
        (r"[=-]>|[→⇒]", " = "),
        (r"\\(?:cdot|times)(?![A-Za-z])", "*"),
        (r"\\pm(?![A-Za-z])", " ± "),
        (r"\\[,;: ()\[\]]|~", " "),
        (r"\\(?=[$%])", ""),
        (r"(?<=[0-9])\s{1,3}(?=%)", ""),
        (r"[−–](?=[0-9$.])", "-"),
        (r"(?<=[0-9])[$€£¥₹](?=[0-9])", " "),
        (r"(?:(?<![A-Za-z])[A-Z]{1,3})?[$€£¥₹]", ""),
    )
)
_WITH_DIGIT = re.compile(r"(?<![^\s=])[^\s=0-9]*+[0-9][^\s=]*+")
_NUMBER = re.compile(rf"[-+]?(?:{NUMBER})%?")
_FRACTION = re.compile(r"(?P<over>-?[0-9]{1,15})/(?P<under>[0-9]{1,15})")
_PER = re.compile(r"(?<=[0-9])[/-][A-Za-z]{2,}(?:[/-][A-Za-z]+)*\Z")  # 14/day, 14-year-old
_MARKS = " \t*_`\"'()[]{}\\.,;:!?"
# What makes another number of the one before or after it, or denies it.
_COMPUTED = re.compile(
    r"[0-9)]\s{0,3}[-+*/×÷^x]\s{0,3}\Z|[0-9]\s{1,3}or\s{1,3}\Z|(?:\bnot|n't|\bnever|[<>≤≥≠]|\\[A-Za-z]{1,12})\s{0,3}\Z"
)
_COMPUTES = re.compile(
    rf"[ -]*(?:{MULTIPLES}|{FRACTIONS}"
    r"|third|plus|minus|times|over\s*[0-9]|divided|multiplied|squared|cubed|factorial|choose|mod(?:ulo)?\b|root"
    r"|and (?:a|one) (?:half|third|quarter)|or\b(?!\W{0,9}[0-9])|[xyzn](?![A-Za-z.'])|[-+*/×÷!^]\s*[0-9(])",
    re.IGNORECASE,
)
# Another number directly beside: after separators alone, alone in brackets, or after a unit and "and".
_SEPARATORS = r"(?:[\s,;/|&±*_`\"')\]{}–-]|\\(?:[A-Za-z]{1,12})?|(?:and|or|to|maybe)\b)*+"
_ANOTHER = r"(?P<{}>[-+]?\.?[0-9][0-9.,/]*+%?)"
_BESIDE = re.compile(
    rf"{_SEPARATORS}(?:[(\[]\s{{0,3}}or\b{_SEPARATORS})?{_ANOTHER.format('next')}"
    rf"|{_SEPARATORS}[(\[]{_ANOTHER.format('bracketed')}[)\]]"
    rf"|\s{{1,3}}[A-Za-z]{{1,20}}\s{{1,3}}and\s{{1,3}}{_ANOTHER.format('added')}",
    re.IGNORECASE,
)


def stated_number(text: str) -> str | None:
    """The number that a final answer states; None without one, and where it states two."""
    text = _cleaned(text)
    sides = [side for side in text.split("=") if _WITH_DIGIT.search(side)]
    if not sides:
        return None
    side = sides[-1]
    first = _WITH_DIGIT.search(side)
    number = _number_at(first, side) if first else None
    if first is None or number is None:
        return None
    beside = _BESIDE.match(side, side.index(number, first.start()) + len(number))
    if beside is not None and not _same(number, beside[beside.lastgroup or 0].rstrip(".,/")):
        return None
    if first.start() == 2 and side.startswith("- "):
        return f"-{number}"
    return number


def last_number(text: str) -> str | None:
    """The last number of a text; None without one, and where it is only part of what the text says."""
    text = _cleaned(text)
    found = list(_WITH_DIGIT.finditer(text))
    return _number_at(found[-1], text) if found else None


def equal_numbers(gold: str, answer: str) -> bool:
    """Whether a number equals the gold one; a fraction counts in lowest terms, since 28/2 is not yet computed."""
    fraction = _FRACTION.fullmatch(answer)
    if fraction is None:
        return compare_plain(gold, answer) is True
    over, under = int(fraction["over"]), int(fraction["under"])
    value = Fraction(over, under) if under > 1 else None
    return value is not None and value.denominator == under and value == plain_number(gold)


def _cleaned(text: str) -> str:
    for pattern, replacement in _CLEANED:
        text = pattern.sub(replacement, text)
    return text.strip(" \t\r*_`")


def _number_at(match: re.Match[str], text: str) -> str | None:
    """The number of a word with a digit; None where it is only part of what the text says."""
    word, number = match.group(), match.group().strip(_MARKS)
    before = word[: word.index(number)]
    after = match.start() + len(before) + len(number)
    if before.endswith(".") and not before.endswith(".."):
        number = f".{number}"
    number = _PER.sub("", number)
    if _COMPUTES.match(text, after) or _COMPUTES.match(text, match.end()):
        return None
    if _COMPUTED.search(text[max(0, match.start() - 16) : match.start()]):
        return None
    if _NUMBER.fullmatch(number) or _FRACTION.fullmatch(number):
        return number.removeprefix("+")
    return number if plain_number(number) is not None else None  # 14cm


def _same(number: str, other: str) -> bool:
    """Whether two numbers beside each other are one, as 50% and 0.5 are."""
    return equal_numbers(number, other) or equal_numbers(other, number)
