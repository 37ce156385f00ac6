"""The final answer of a solution: where it stands, and when it needs no computer algebra to be compared."""

import re
from fractions import Fraction

from vpo.tasks.math.arithmetic import number

LONGEST = 20_000  # characters of a solution; a longer one is not read
FINAL = 300  # characters of a final answer; a longer one is not read
BARE = 100  # characters of a solution that is nothing but a final answer

_BRACES = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{|\\(?:boxed|fbox)\s{1,3}[^\s{}$\\]+|\\.|[{}]", re.DOTALL)
_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
_UNIT = r"(?:\\text\{[A-Za-z ]{0,40}\}|[A-Za-z]{2,20}(?: [A-Za-z]{1,20}){0,2})"
_PLAIN = re.compile(rf"(?P<sign>-?) ?(?P<number>{_NUMBER})\.? ?(?:\\?%)? ?(?P<unit>{_UNIT})?\.?")
_WORDS = re.compile(r"(?:\\text\{ ?)?\(?(?P<words>[A-Za-z]{2,}(?:[ -][A-Za-z]+)*)\)? ?\}?\.?")
# Words behind a number that are no unit: the number is not all there is.
_NO_UNIT = re.compile(r"(?i:\b(?:and|or|not|to|of|hundred|thousand|million|billion|dozen|half|pi|plus|minus|times)\b)")


def boxes(text: str) -> list[tuple[int, str]]:
    r"""Return where each ``\boxed{…}`` of a text ends, and what it holds. Braces must balance; takes linear time."""
    found: list[tuple[int, str]] = []
    opened: list[int | None] = []  # where the content of a box begins, None for another brace
    for match in _BRACES.finditer(text):
        token = match.group()
        if token.endswith("{") and len(token) > 2:
            opened.append(match.end())
        elif token.startswith((r"\boxed", r"\fbox")):
            found.append((match.end(), token.split(None, 1)[1]))
        elif token == "{":
            opened.append(None)
        elif token == "}" and opened and (begin := opened.pop()) is not None:
            found.append((match.end(), text[begin : match.start()].strip()))
    return found


def one_box(text: str) -> bool:
    """Return whether a text has its answer in a box, and no other box with another content."""
    return len({content for _, content in boxes(text)}) == 1


def final_answer(solution: str) -> str | None:
    r"""Return the final answer of a solution, None without one.

    It is what the last ``\boxed{…}`` holds or what follows the last ``####`` on its line, whichever stands later; or
    all of it, where it is one short line without either.
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


def plain(text: str) -> Fraction | None:
    """Return a number that is written plainly, with a currency, percent sign or unit: 1,234.50, $18, 20%, 3 eggs."""
    for old, new in (("\\$", ""), ("$", ""), ("{,}", ","), ("\\!", ""), ("\\,", ""), ("−", "-"), ("\\ ", " ")):
        text = text.replace(old, new)
    match = _PLAIN.fullmatch(" ".join(text.split()))
    if match is None or _NO_UNIT.search(match["unit"] or ""):
        return None
    found = number(match["number"])
    if found is None:
        return None
    return -found.value if match["sign"] else found.value


def compared(gold: str, answer: str) -> bool | None:
    """Return whether a final answer is right where that is plain to see; None where it takes computer algebra."""
    if any(sign.isdigit() and not sign.isascii() for sign in answer):
        return False  # digits of another script
    if "".join(gold.split()) == "".join(answer.split()):
        return True
    values = plain(gold), plain(answer)
    if values[0] is not None and values[1] is not None:
        return values[0] == values[1]
    words = _WORDS.fullmatch(gold.strip())
    if words is None:
        return None
    # A checker takes words for products of letters, whatever their order.
    given = _WORDS.fullmatch(answer.strip())
    return given is not None and given["words"].lower() == words["words"].lower()
