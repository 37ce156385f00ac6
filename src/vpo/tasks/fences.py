"""Fenced blocks of markdown, found in linear time."""

import re
from typing import NamedTuple

from vpo.tasks.thoughts import section_pattern

FENCE = "```"
INDENT = 3  # spaces by which a closing fence may be indented more than its opening one
PYTHON = ("python", "python3", "py")
# A line that opens or closes a block. After the mark of a list item any block opens, after other text one of Python.
_LINE = re.compile(
    rf"(?P<before>[ \t]*+(?:(?:[-*+•]|[0-9]{{1,3}}[.)])[ \t]++)?+)(?P<fence>`{{3,}}+)(?P<info>[^`]*+)\Z"
    rf"|.*?(?<!`)(?P<inline>`{{3,}}+)[ \t]*+(?P<language>{'|'.join(PYTHON)})[ \t\r]*+\Z",
    re.IGNORECASE,
)
# Languages of a line on which more follows, as in "json title=a.json"; other words after a fence are prose.
_LANGUAGES = {*PYTHON, "bash", "console", "cpp", "diff", "java", "javascript", "json", "output", "sh", "shell", "text"}
_LANGUAGE = re.compile(r"\{?[.:]?[A-Za-z][\w+#.:/={}-]*+(?<![.:])")
_MARKED = re.compile(rf"\{{?\.?(?P<language>{'|'.join(PYTHON)})(?![a-z-])")  # python3.11, python:main.py, {{python}}
# An <answer> and a closed fence are text as a whole: a <think> in them opens no thought, a </think> ends none. A fence
# with a line that begins with one of these began in a thought, or ends in one.
OPAQUE = re.compile(
    section_pattern("answer").pattern
    + r"|^[ \t]{0,9}```[^`\n]*+\n(?:(?![ \t]*+(?:```|</?think>))[^\n]*+\n)*+[ \t]*+```[ \t\r]*+$",
    re.MULTILINE,
)


class Fence(NamedTuple):
    """A fenced block.

    Attributes:
        start: position of the line that opens it.
        end: position after the line that closes it, or of the end of the text.
        language: in lower case; empty without one.
        body: the lines between, without the indentation of the fence.
        closed: whether it is closed; the last block of a text may not be, nor one that another block's opening ends.
    """

    start: int
    end: int
    language: str
    body: str
    closed: bool


class _Opened(NamedTuple):
    start: int
    indent: int
    marks: int  # backticks
    language: str


def fences(text: str) -> list[Fence]:
    """The fenced blocks of a text, in order.

    A block is closed by a line of nothing but as many backticks, or more, which is not indented much more than the line
    that opens it: a fence inside a docstring belongs to the code. Backticks that end the text close it too, and those
    that prose follows on their line. A line that opens a block with a language ends one that is open, unclosed.
    """
    found: list[Fence] = []
    opened: _Opened | None = None
    body: list[str] = []
    position = 0
    for line in text.split("\n"):
        start, position = position, position + len(line) + 1
        match = _LINE.match(line) if FENCE in line else None
        indent = len(line) - len(line.lstrip())
        if match is None or (opened and not _ends(match, opened, indent)):
            body.append(line.removesuffix("\r"))
        elif opened and not _is_language(match["info"]):
            found.append(Fence(opened.start, min(position, len(text)), opened.language, _dedented(body, opened), True))
            opened = None
        else:
            if opened:
                found.append(Fence(opened.start, start, opened.language, _dedented(body, opened), False))
            opened, body = _opening(match, start, indent), []
    if opened:
        last = "\n".join(body).rstrip()
        closed = last.endswith(FENCE) and len(last) > len(FENCE)
        lines = last.removesuffix(FENCE).split("\n") if closed else body
        found.append(Fence(opened.start, len(text), opened.language, _dedented(lines, opened), closed))
    return found


def _ends(match: re.Match[str], opened: _Opened, indent: int) -> bool:
    """Whether a line that could open or close a block ends the one that is open."""
    if match["inline"] or match["before"].strip() or indent > opened.indent + INDENT:
        return False
    return _is_language(match["info"]) or len(match["fence"]) >= opened.marks


def _is_language(info: str) -> bool:
    """Whether what follows a fence on its line names a language: it is one word, or begins with a common language."""
    first, _, more = info.strip().partition(" ")
    language = first.lower()
    known = language in _LANGUAGES or bool(_MARKED.match(language))
    return known or (not more and _LANGUAGE.fullmatch(first) is not None)


def _opening(match: re.Match[str], start: int, indent: int) -> _Opened:
    if match["inline"]:
        return _Opened(start, indent, len(match["inline"]), match["language"].lower())
    language = (match["info"].split() or [""])[0].lower()
    marked = _MARKED.match(language)
    language = marked["language"] if marked else language
    return _Opened(start, len(match["before"]), len(match["fence"]), language)


def _dedented(lines: list[str], opened: _Opened) -> str:
    """Lines without the indentation of their fence, where they have it."""
    indent = opened.indent
    return "\n".join(line[indent:] if not line[:indent].strip() else line for line in lines)
