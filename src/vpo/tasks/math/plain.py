r"""Final answers that are compared without computer algebra: numbers with units, words, and what is a list.

math-verify drops text after a number, and takes lists for sets, which have no repeated elements: it would take
``3\text{ squared}``, ``1,1`` and ``\{3\}`` for 3, 1 and 3.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from vpo.tasks.math.arithmetic import parse_number

_STYLE = r"\\(?:text(?:bf|it|rm|sf|tt|normal|up)?|math(?:rm|bf|it|sf|tt)|bold(?:symbol)?|mbox|emph|operatorname)\s?"
_STYLED = re.compile(rf"{_STYLE}\{{(?P<inside>.*)\}}", re.DOTALL)
# Parts of patterns: a number, and words after a number that make another one of it.
NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
MULTIPLES = "hundred|thousand|million|billion|trillion|dozen|half|halves"
FRACTIONS = "(?:thir|four|fif|six|seven|eigh|nin|ten)th"
_REPLACED = (
    *(("\\$", ""), ("$", ""), ("{,}", ","), (",\\! ", ","), ("\\!", ""), ("\\,", "")),
    *(("−", "-"), ("\\ ", " "), ("~", " ")),
)
_PLAIN = re.compile(
    rf"(?P<sign>-?) ?(?P<number>{NUMBER})\.?(?P<percent> ?\\?%)?"
    rf"(?P<gap> ?)(?:(?:{_STYLE}\{{(?P<styled>[A-Za-z ./-]{{0,40}})\}}"
    r"|(?P<bare>[A-Za-z]{2,20}(?: [A-Za-z]{1,20}){0,2}))(?: ?(?:\^(?:[23]|\{[23]\})|[²³]))?)?\.?"
)
_WORDS = re.compile(r"\(?(?P<words>[A-Za-z]{2,}(?:[ -][A-Za-z]+)*)\)?\.?")
# Units that are not written as words are; other letters after a number are variables, as in 3xy.
_ABBREVIATED = re.compile(
    r"[mcdkn]m|in|ft|yd|mi|[mk]g|lbs?|oz|[mcdk]l|gal|qt|pt|ms|secs?|mins?|hrs?|wk|yrs?|am|pm|mph|kph|kmh|rpm|[kmg]?hz"
    r"|[kmgt]b|kwh?|k?cal|deg|rad|pts|cc|sq|cu|usd|eur|gbp"
)
_PERCENT = frozenset(["percent", "percentage", "pct"])
# Words after a number that are no unit, so that the number is not the whole answer; and variables that look like words.
_NO_UNIT = re.compile(
    r"and|or|not|nor|but|no|to|of|is|are|if|for|when|where|than|least|most|at|until|through|except|negative"
    rf"|{MULTIPLES}|{FRACTIONS}s?|thirds?"
    r"|plus|minus|times|over|divided|multiplied|squared|cubed|factorial|choose|mod|modulo|base|root|sqrt|infinity"
    r"|sin|cos|tan|sec|csc|cot|log|ln|exp|pi|alpha|beta|gamma|delta|theta|phi|[abeinxyz]|[abcd]{2,}|[abcxyz]{2,}|[wxyz]{2,}"
)
_SEPARATOR = re.compile(rf";|{_STYLE}\{{\s*,?\s*(?:and|or)\s*\}}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])")
_ASSIGNED = re.compile(r"\A[A-Za-z]\s{0,3}(?:=|\\in(?![a-z]))\s{0,3}")  # x = …
_RELATION = re.compile(r"[=<>≤≥]|\\(?:[lg](?:e|eq|t)|n?eq|in|to)(?![A-Za-z])")
_SPACING = re.compile(r"\\(?:left|right)(?![A-Za-z])|(?<=,)\\!\s?|\\!")
_LAST_LETTERS = re.compile(r"(?<![A-Za-z\\])[A-Za-z]+\Z")
_TOKEN = re.compile(r"\\(?:begin|end)\{\w+\*?\}|\\[{}]|\\.|[()\[\]{},]", re.DOTALL)
_SEVERAL = re.compile(r"\\(?:pm|mp|[lc]?dots)(?![A-Za-z])|±|\.\.\.|…")  # more values than elements


class _Plain(NamedTuple):
    """A number as a final answer gives it.

    Attributes:
        value: without its percent sign.
        percent: whether it has one.
        whole: whether what follows it, if anything, is a unit; else it is only part of the answer.
    """

    value: Fraction
    percent: bool
    whole: bool


def plain_number(text: str) -> Fraction | None:
    """A number, with a currency, percent sign or unit: 1,234.50, $18, 20%, 3 eggs; None for other text."""
    plain = _plain(unstyled(text))
    return plain.value if plain is not None and plain.whole else None


def unstyled(text: str) -> str:
    r"""A text without the font that it is set in as a whole, as in ``\textbf{(073)}``."""
    text = text.strip()
    while True:
        bare = text.removesuffix(".").rstrip()
        match = _STYLED.fullmatch(bare)
        if match is None or not _balanced(match["inside"]):
            return text
        text = match["inside"].strip()


def for_algebra(text: str) -> str:
    """A text as math-verify is given it: without font, and with braces around last letters that are variables.

    math-verify takes some of those for units, such as m and ab, and drops them: 2ab + 3m would be 2ab + 3.
    """
    text = unstyled(text)
    if "$" in text:  # a sentence with formulas
        return text
    text = text.removesuffix(".").rstrip()
    match = _LAST_LETTERS.search(text)
    begin = match.start() if match else 0
    if begin == 0 or _is_unit(text[begin:], bare=True, attached=text[begin - 1] != " "):
        return text
    return text[:begin] + "".join(f"{{{letter}}}" for letter in text[begin:])


def compare_plain(gold: str, answer: str) -> bool | None:
    """Whether a final answer equals the gold one, by numbers, words or length; None where it takes computer algebra."""
    if any(character.isdigit() and not character.isascii() for character in answer.replace("²", "").replace("³", "")):
        return False  # digits of another script
    gold, answer = unstyled(gold), unstyled(answer)
    if "".join(gold.split()) == "".join(answer.split()):
        return True
    gold_number, number = _plain(gold), _plain(answer)
    if gold_number is not None and number is not None and (gold_number.whole or number.whole):
        return gold_number.whole and number.whole and _equal_numbers(gold_number, number)
    words = _WORDS.fullmatch(gold)
    if words is not None:
        # math-verify reads words as products of letters, in any order.
        answer_words = _WORDS.fullmatch(answer)
        return answer_words is not None and answer_words["words"].lower() == words["words"].lower()
    return False if _other_length(gold, answer) else None


def repeated_lists(gold: str, answer: str) -> tuple[list[str], list[str]] | None:
    """The elements of two lists of one length, where the gold one repeats an element; None for other answers."""
    (golds, _), (answers, _) = elements(gold), elements(answer)
    return (golds, answers) if len(golds) == len(answers) and _repeats(golds) else None


def elements(text: str) -> tuple[list[str], bool]:
    r"""The elements of a list, or the text alone; and whether it stands in brackets: ``\{…\}``, ``[…]`` or ``(…, …)``.

    Only the elements of a list without brackets, or of a set, are taken apart.
    """
    text = _SEPARATOR.sub(",", _SPACING.sub("", unstyled(text))).strip()
    parts = _split(text)
    if len(parts) != 1:
        return parts, False
    value = _ASSIGNED.sub("", text, count=1)
    if value.startswith("\\{") and value.endswith("\\}") and _balanced(value[2:-2]):
        return _split(value[2:-2]), True
    bracketed = value[:1] in ("[", "(") and value[-1:] in ("]", ")") and _balanced(value[1:-1])
    return parts, bracketed and (value[0] == "[" or len(_split(value[1:-1])) > 1)


def _other_length(gold: str, answer: str) -> bool:
    """Whether an answer lists more than the one value of the gold one, or fewer or more than a gold list that repeats.

    In other lists, and where the gold answer is a relation, the elements count as a set: that is for algebra.
    """
    if _SEVERAL.search(gold) or _SEVERAL.search(answer) or _RELATION.search(_ASSIGNED.sub("", gold, count=1)):
        return False
    (golds, gold_bracketed), (answers, bracketed) = elements(gold), elements(answer)
    if len(golds) == 1:  # of a point, an interval or a set, algebra knows more
        return not gold_bracketed and (bracketed or len(answers) > 1)
    return len(answers) != len(golds) and _repeats(golds)


def _split(text: str) -> list[str]:
    """The parts of a text between the commas that stand in no brackets; a comma before three digits groups them."""
    parts, begin, depth = [], 0, 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in ("(", "[", "{", "\\{") or token.startswith("\\begin"):
            depth += 1
        elif token in (")", "]", "}", "\\}") or token.startswith("\\end"):
            depth -= 1
        elif token == "," and depth == 0 and not _groups_digits(text, match.start()):
            parts.append(text[begin : match.start()])
            begin = match.end()
    return [part.strip() for part in (*parts, text[begin:]) if part.strip()]


def _groups_digits(text: str, comma: int) -> bool:
    return re.match(r"[0-9]{3}(?![0-9])", text[comma + 1 :]) is not None and text[:comma][-1:].isdigit()


def _balanced(text: str) -> bool:
    """Whether every bracket of a text is closed in it. Intervals may open with one kind and close with another."""
    depth = 0
    for match in re.finditer(r"\\?[{}]|[()\[\]]|\\.", text, re.DOTALL):
        depth += (match.group() in ("(", "[", "{", "\\{")) - (match.group() in (")", "]", "}", "\\}"))
        if depth < 0:
            return False
    return depth == 0


def _repeats(parts: Sequence[str]) -> bool:
    keys = [plain_number(part) or "".join(part.split()) for part in parts]
    return len(set(keys)) < len(keys)


def _plain(text: str) -> _Plain | None:
    for old, new in _REPLACED:
        text = text.replace(old, new)
    text = " ".join(text.strip(" €£").split())
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    match = _PLAIN.fullmatch(text)
    parsed = None if match is None else parse_number(match["number"])
    if match is None or parsed is None:
        return None
    words = (match["styled"] if match["bare"] is None else match["bare"]) or ""
    return _Plain(
        -parsed.value if match["sign"] else parsed.value,
        match["percent"] is not None or words.lower().strip() in _PERCENT,
        _is_unit(words, bare=match["bare"] is not None, attached=not match["gap"]),
    )


def _is_unit(text: str, *, bare: bool, attached: bool) -> bool:
    """Whether what follows a number is a unit, or nothing."""
    words = re.findall(r"[a-z]+", text.lower())
    if any(_NO_UNIT.fullmatch(word) and not _ABBREVIATED.fullmatch(word) for word in words):
        return False
    if not bare or not words:
        return True
    first = words[0]
    like_a_word = len(first) > 2 and (re.search("[aeiou]", first) is not None or (len(first) > 3 and "y" in first))
    return _ABBREVIATED.fullmatch(first) is not None or first in _PERCENT or (like_a_word and not attached)


def _equal_numbers(gold: _Plain, answer: _Plain) -> bool:
    """Whether two numbers are equal; 50% is both 50 and 1/2."""
    if gold.value == answer.value:
        return True
    if gold.percent == answer.percent:
        return False
    return answer.value == gold.value / 100 if gold.percent else gold.value == answer.value / 100
