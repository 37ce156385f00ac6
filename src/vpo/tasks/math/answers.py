"""The final answer of a solution: how it is extracted."""

import re

from vpo.tasks.fences import FENCE, PYTHON, fences
from vpo.tasks.lines import begins_turn
from vpo.tasks.math.numbers import last_number, stated_number
from vpo.tasks.reading import Native

LONGEST = 20_000  # characters of a solution; a longer one has no final answer
FINAL = 300  # characters of a final answer; a longer one is none
BARE = 100  # characters of a solution that is nothing but a final answer
WORDS = 3  # of a line that is nothing but a number and its unit

_BRACES = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{|\\(?:boxed|fbox)\s{1,3}[^\s{}$\\]+|\\.|[{}]", re.DOTALL)
_BOX = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{(?P<inside>.*)\}", re.DOTALL)
_MARK = re.compile(r"####[#:= \t]*+(?P<rest>[^\n]*)")
_STATED = re.compile(
    r"\banswer(?: to [^.:\n]{1,80})?(?: is|:|=)[ \t:*`]*+(?P<answer>(?:[^.\n]|\.(?=[^\s*]))*)\.?", re.IGNORECASE
)
_HEADING = re.compile(r"[\s*_]*(?:[A-Za-z]{2}|\Z)")  # what follows the #### of a heading
_NUMBER_FIRST = re.compile(r"-?\$?\.?[0-9]")
_EMPHASIS = " \t\r*`_"
_MARKS = " \t*_`\"'()[]{}\\.,;:!?$€£"


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


def final_answer(solution: str, *, number: bool = False) -> str | None:
    r"""The final answer of a solution, None without one.

    It is the content of the last ``\boxed{…}`` or what follows the last ``####`` on its line, whichever comes later;
    else what the last "answer is …" or "answer: …" states; else the whole solution, where it is one short line.

    Args:
        solution: of a problem.
        number: whether the answer is known to be a number. Then a ``####`` without one is a heading, and the last
            number of a solution that states no answer is its answer.
    """
    if len(solution) > LONGEST:
        return None
    form, content = _marked_or_boxed(solution, number=number)
    if number:
        final = stated_number(content) if form and len(content) <= FINAL else None if form else _final_number(solution)
    else:
        final = _without_delimiters(content if form else _stated(solution) or "")
    return final if final and len(final) <= FINAL else None


def form_of(solution: str, *, number: bool = False) -> str:
    r"""The form of the final answer of a solution: ``####``, ``\boxed``, or empty for another."""
    return _marked_or_boxed(solution, number=number)[0]


def answer_ends(text: str, *, number: bool = False) -> list[int]:
    r"""Where final answers end: ``####`` lines, else boxes, else sentences that state an answer."""
    marks = [match.end() for match in _MARK.finditer(text) if not number or not _HEADING.match(match["rest"])]
    ends = marks or sorted(end for end, _ in boxes(text))
    return ends or [match.end() for match in _STATED.finditer(text)]


def solutions_in(text: str, *, number: bool = False) -> list[Native]:
    """The solutions of a text, in order: each ends with its final answer."""
    natives, begin = [], 0
    for end in answer_ends(text, number=number):
        solution = text[begin:end].strip()
        if final_answer(solution, number=number) is not None:
            natives.append(Native(begin, end, solution))
        begin = end
    return natives


def own_turn(text: str, *, number: bool = False) -> str:
    """A solution up to where another turn of a dialogue begins, if it has stated its final answer before."""
    position, begun = 0, False
    for line in text.split("\n"):
        if begun and begins_turn(line):
            return text[:position] if answer_ends(text[:position], number=number) else text
        begun |= not line.isspace() and bool(line)
        position += len(line) + 1
    return text


def _marked_or_boxed(solution: str, *, number: bool) -> tuple[str, str]:
    """The form and content of the last ``####`` or box, whichever comes later; empty without one."""
    marks = [(match.start(), match["rest"].strip(_EMPHASIS)) for match in _MARK.finditer(solution)]
    if number:
        marks = [(start, rest) for start, rest in marks if not _HEADING.match(rest)]
    mark, rest = marks[-1] if marks else (-1, "")
    end, box = max(boxes(solution), default=(-1, ""))
    if mark < 0 and end < 0:
        return "", ""
    return (r"\boxed", _unboxed(box)) if end > mark else ("####", rest)


def _unboxed(content: str) -> str:
    """The content of a box in a box; nothing where there is more beside the inner one."""
    if len(content) > FINAL:
        return ""
    while whole := _BOX.fullmatch(content):
        content = whole["inside"].strip()
    return "" if _BOX.search(content) else content


def _without_delimiters(content: str) -> str:
    """A final answer without the marks of a formula around the whole of it."""
    content = content.strip()
    for opening, closing in (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$")):
        inside = content.removeprefix(opening).removesuffix(closing)
        if len(content) - len(inside) == len(opening) + len(closing) and opening not in inside:
            return inside.strip()
    return content.strip("$").strip() if content.count("$") % 2 else content


def _stated(solution: str) -> str | None:
    """The answer of a solution without a mark: what it says the answer is, or itself."""
    sentences = [match["answer"].strip(_EMPHASIS) for match in _STATED.finditer(solution)]
    if sentences and sentences[-1]:
        return sentences[-1]
    line = solution.strip()
    return line.strip(_EMPHASIS) if len(line) <= BARE and "\n" not in line else None


def _final_number(solution: str) -> str | None:
    """The number of a solution without a mark: what it says the answer is, or its last one."""
    sentences = [match["answer"] for match in _STATED.finditer(solution)]
    if sentences and any(map(str.isdigit, sentences[-1])):
        return stated_number(sentences[-1])
    line = solution.strip()
    bare = "\n" not in line and len(line.split()) <= WORDS and _NUMBER_FIRST.match(line.lstrip(_MARKS))
    return stated_number(line) if bare else last_number(_without_programs(line))


def _without_programs(text: str) -> str:
    """A text without its fences of Python: the numbers of a program that follows a solution are not its answer."""
    if FENCE not in text:
        return text
    kept, begin = [], 0
    for block in fences(text):
        if block.language in PYTHON:
            kept.append(text[begin : block.start])
            begin = block.end
    return "\n".join([*kept, text[begin:]])
