"""Lines of a text, and what they hold without the marks of lists and emphasis around it."""

import re
from collections.abc import Iterator

LONGEST = 1_000  # characters of a line that may be an answer
_ITEM = re.compile(r"[ \t]*(?:[-*•+>][ \t]+|[0-9]{1,2}[.)][ \t]+)")
_LINE_END = re.compile(r"\n(?:[ \t\r]*\n)*")
_SENTENCE_END = re.compile(rf"[.!?](?= )|{_LINE_END.pattern}")
_TURN = re.compile(r"[ \t*_#]{0,8}(?:Human|User|Question)[ \t*_]{0,4}:")
_MARKS = " \t\r*_`$\"'"


def lines_of(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and text of each line that is not too long."""
    position = 0
    for line in text.split("\n"):
        start, position = position, position + len(line) + 1
        if 0 < len(line) <= LONGEST:
            yield start, start + len(line), line


def line_ends(text: str) -> list[int]:
    """Where the lines of a text but the last end, with the line ends and blank lines after them."""
    return _ends(_LINE_END, text)


def sentence_ends(text: str) -> list[int]:
    """Where the lines and sentences of a text but the last end."""
    return _ends(_SENTENCE_END, text)


def begins_turn(line: str) -> bool:
    """Whether another turn of a dialogue begins with a line, as models run on after their answer."""
    return _TURN.match(line) is not None


def _ends(end: re.Pattern[str], text: str) -> list[int]:
    return [match.end() for match in end.finditer(text) if match.start() > 0 and match.end() < len(text)]


def bare_line(line: str) -> str:
    """A line without the mark of a list item, emphasis, quotes, the marks of a formula, and a full stop at its end."""
    item = _ITEM.match(line)
    bare = line[item.end() if item else 0 :].strip(_MARKS).removesuffix(".").strip(_MARKS)
    for opening, closing in (("\\(", "\\)"), ("\\[", "\\]")):
        if bare.startswith(opening) and bare.endswith(closing):
            bare = bare[2:-2].strip()
    return bare
