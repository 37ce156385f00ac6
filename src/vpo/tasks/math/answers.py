"""The final answer of a solution: how it is extracted, and when it is compared without computer algebra."""

import re
from fractions import Fraction

from vpo.tasks.math.arithmetic import parse_number

LONGEST = 20_000  # characters of a solution; a longer one has no final answer
FINAL = 300  # characters of a final answer; a longer one is none
BARE = 100  # characters of a solution that is nothing but a final answer

_BRACES = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{|\\(?:boxed|fbox)\s{1,3}[^\s{}$\\]+|\\.|[{}]", re.DOTALL)
_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
_UNIT = r"(?:\\text\{[A-Za-z ]{0,40}\}|[A-Za-z]{2,20}(?: [A-Za-z]{1,20}){0,2})"
_PLAIN = re.compile(rf"(?P<sign>-?) ?(?P<number>{_NUMBER})\.? ?(?:\\?%)? ?(?P<unit>{_UNIT})?\.?")
_WORDS = re.compile(r"(?:\\text\{ ?)?\(?(?P<words>[A-Za-z]{2,}(?:[ -][A-Za-z]+)*)\)? ?\}?\.?")
# Words after a number that are no unit, so that the number is not the whole answer.
_NO_UNIT = re.compile(r"(?i:\b(?:and|or|not|to|of|hundred|thousand|million|billion|dozen|half|pi|plus|minus|times)\b)")


def boxes(text: str) -> list[tuple[int, str]]:
    r"""End position and content of each ``\boxed{…}``. Braces must balance; takes linear time."""
    contents: list[tuple[int, str]] = []
    opened: list[int | None] = []  # position of the content of a box, None for another brace
    for match in _BRACES.finditer(text):
        token = match.group()
        if token.endswith("{") and len(token) > 2:
            opened.append(match.end())
        elif token.startswith((r"\boxed", r"\fbox")):
            contents.append((match.end(), token.split(None, 1)[1]))
        elif token == "{":
            opened.append(None)
        elif token == "}" and opened and (begin := opened.pop()) is not None:
            contents.append((match.end(), text[begin : match.start()].strip()))
    return contents


def one_box(text: str) -> bool:
    """Whether all boxes of a text, one or more, have the same content."""
    return len({content for _, content in boxes(text)}) == 1


def final_answer(solution: str) -> str | None:
    r"""The final answer of a solution, None without one.

    It is the content of the last ``\boxed{…}`` or what follows the last ``####`` on its line, whichever comes later; or
    the whole solution, where it is one short line without either.
    """
    if len(solution) > LONGEST:
        return None
    mark = solution.rfind("####")
    end, content = max(boxes(solution), default=(-1, ""))
    if mark > end:
        content = solution[mark + 4 :].partition("\n")[0]
    elif end < 0:
        content = solution.strip()
        if len(content) > BARE or "\n" in content:
            return None
    content = content.strip().strip("$").strip()
    return content if 0 < len(content) <= FINAL else None


def plain_number(text: str) -> Fraction | None:
    """A number, with a currency, percent sign or unit: 1,234.50, $18, 20%, 3 eggs; None for other text."""
    for old, new in (("\\$", ""), ("$", ""), ("{,}", ","), ("\\!", ""), ("\\,", ""), ("−", "-"), ("\\ ", " ")):
        text = text.replace(old, new)
    match = _PLAIN.fullmatch(" ".join(text.split()))
    if match is None or _NO_UNIT.search(match["unit"] or ""):
        return None
    parsed = parse_number(match["number"])
    if parsed is None:
        return None
    return -parsed.value if match["sign"] else parsed.value


def compare_plain(gold: str, answer: str) -> bool | None:
    """Whether a final answer equals the gold one, as numbers or words; None where that takes computer algebra."""
    if any(character.isdigit() and not character.isascii() for character in answer):
        return False  # digits of another script
    if "".join(gold.split()) == "".join(answer.split()):
        return True
    values = plain_number(gold), plain_number(answer)
    if values[0] is not None and values[1] is not None:
        return values[0] == values[1]
    words = _WORDS.fullmatch(gold.strip())
    if words is None:
        return None
    # math-verify reads words as products of letters, in any order.
    answer_words = _WORDS.fullmatch(answer.strip())
    return answer_words is not None and answer_words["words"].lower() == words["words"].lower()
