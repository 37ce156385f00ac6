r"""Final answers that are numbers: which number a text states.

One rule for what follows ``####``, for boxes and for "the answer is …": the first number after the last ``=``, with or
without a unit. It is none where it is part of something else, such as 7^14, 14th or 14 million, and where another
number stands beside it, as in ``14, 15`` or ``14 or 15``: whatever is right, two numbers are no answer.
"""

import re
from fractions import Fraction

from vpo.tasks.math.arithmetic import parse_number
from vpo.tasks.math.equations import ANNOTATION
from vpo.tasks.math.plain import compare_plain, plain_number

_CLEANED = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (ANNOTATION.pattern, ""),
        (r"(?<=[0-9])(?:\{,\}|\\,|,\\! ?)(?=[0-9]{3})", ","),  # LaTeX for 1,234
        (r"<[/|]?[A-Za-z_]{1,30}\|?>", " "),  # </answer>, <|im_end|>
        (r"\\[dt]?frac\{([0-9]{1,15})\}\{([0-9]{1,15})\}", r"\1/\2"),
        (r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:rm|bf|it|sf)|mbox|boxed|fbox)\s?\{", " "),
        (r"\\(?:approx|displaystyle|q?quad|Rightarrow|implies|therefore|left|right)(?![A-Za-z])", " "),
        (r"\^\{?\\circ\}?|°", " "),
        (r"[=-]>|[→⇒]", " = "),
        (r"\\(?:cdot|times)(?![A-Za-z])", "*"),
        (r"\\pm(?![A-Za-z])", " ± "),
        (r"\\!", ""),
        (r"\\[,;: ()\[\]]|~", " "),
        (r"\\(?=[$%])", ""),
        (r"[−–](?=[0-9$.])", "-"),
        (r"(?<=[0-9])[$€£¥₹](?=[0-9])", " "),
        (r"(?:(?<![A-Za-z])[A-Z]{1,3})?[$€£¥₹]", ""),
    )
)
_WITH_DIGIT = re.compile(r"(?<![^\s=])[^\s=0-9]*+[0-9][^\s=]*+")
_NUMBER = re.compile(r"[-+]?(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)%?")
_FRACTION = re.compile(r"(?P<over>-?[0-9]{1,15})/(?P<under>[0-9]{1,15})")
_PER = re.compile(r"(?<=[0-9])[/-][A-Za-z]{2,}(?:[/-][A-Za-z]+)*\Z")  # 14/day, 14-year-old
_MARKS = " \t*_`\"'()[]{}\\.,;:!?"
# What makes another number of the one before or after it, or denies it.
_COMPUTED = re.compile(
    r"[0-9)]\s{0,3}[-+*/×÷^x]\s{0,3}\Z|[0-9]\s{1,3}or\s{1,3}\Z|(?:\bnot|n't|\bnever|[<>≤≥≠]|\\[A-Za-z]{1,12})\s{0,3}\Z"
)
_COMPUTES = re.compile(
    r"[ -]*(?:hundred|thousand|million|billion|trillion|dozen|half|halves|(?:thir|four|fif|six|seven|eigh|nin|ten)th"
    r"|third|plus|minus|times|over\s*[0-9]|divided|multiplied|squared|cubed|factorial|choose|mod(?:ulo)?\b|root"
    r"|and (?:a|one) (?:half|third|quarter)|or\b|[xyzn](?![A-Za-z.'])|[-+*/×÷!^]\s*[0-9(])",
    re.IGNORECASE,
)
_BESIDE = re.compile(
    r"(?:[,;/|&#±]|\\[A-Za-z]{1,12}|(?<![A-Za-z])(?:and|or|to|not|nor|but|vs\.?))[\s*_`\"'(\[{}]*"
    r"(?:(?:maybe|perhaps|possibly|rather|not|even|is)\s+)?\Z",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"\([0-9.,]+\)\W*")
_POWER_OF_UNIT = re.compile(r"[A-Za-z]{1,20}\}?\^?\{?[23]\}?")  # m^2
BESIDE = 40  # characters before another number in which it is told whether it stands beside the first


def stated_number(text: str) -> str | None:
    """The number that a final answer states; None without one, and where it states two."""
    text = _cleaned(text)
    sides = [side for side in text.split("=") if _WITH_DIGIT.search(side)]
    if not sides:
        return None
    side = sides[-1]
    first, *others = _WITH_DIGIT.finditer(side)
    number = _number_at(first, side)
    begin = first.end() - len(first.group().lstrip(_MARKS)) + len(number or "")
    for other in others if number else ():
        between = side[max(begin, other.start() - BESIDE) : other.start()]
        if _beside(other.group(), between) and _value(other.group().strip(_MARKS)) != _value(number or ""):
            return None
    if number and first.start() == 2 and side.startswith("- "):
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


def _beside(word: str, between: str) -> bool:
    """Whether a word with a digit stands beside the number before it, with so much between them."""
    if _POWER_OF_UNIT.fullmatch(word.strip(".,;!")):
        return False
    if word.startswith("("):
        return _BRACKETED.fullmatch(word) is not None
    return not between.strip(_MARKS) or _BESIDE.search(between) is not None


def _value(number: str) -> Fraction | str:
    parsed = parse_number(number.strip("%+")) if _NUMBER.fullmatch(number) and "-" not in number else None
    return number if parsed is None else parsed.value
