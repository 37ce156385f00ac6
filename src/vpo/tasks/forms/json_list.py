"""A JSON list of strings, one for each answer."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

from vpo.tasks.fences import OPAQUE, fences
from vpo.tasks.forms.base import Form
from vpo.tasks.forms.latex import repair_latex
from vpo.tasks.reading import Section
from vpo.tasks.thoughts import blank_thoughts, prompted_end

CANDIDATES = 8  # beginnings of lists that are tried
_BEGIN = re.compile(r"\[[ \t\r\n]*+(?=[\"{0-9])")
_SPACE = re.compile(r"(?:[ \t\r\n]++|<think>(?:[^<]++|<(?!/think>))*+</think>)*+")
# A string, which the end of the text may cut off; and its escapes, of which models write wrong ones, as in "\d".
_STRING = re.compile(r'"(?P<inside>(?:[^"\\]++|\\.)*+)(?:(?P<closed>")|\\?\Z)', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}|(?P<cut>u[0-9a-fA-F]{0,3}\Z)|(?P<wrong>))")
_DECODER = json.JSONDecoder(strict=False)  # models write line ends into strings


class JsonList(Form):
    """The first list of strings in a completion. The first m of its strings are the answers.

    A list inside a fence is code, unless the fence begins with it. Think tags in a string are text.
    """

    name: ClassVar[str] = "json"
    summary: ClassVar[str] = "a JSON list of strings"
    how: ClassVar[str] = "Write them as a JSON list of strings, each a whole answer, and nothing after the list."
    separator: ClassVar[str] = ",\n"
    end: ClassVar[str] = "\n]"

    def opening(self, index: int) -> str:
        """A quote; that of the first answer after the bracket of the list."""
        return '[\n  "' if index == 0 else '  "'

    def closing(self, index: int) -> str:
        """A quote."""
        return '"'

    def encode(self, text: str) -> str:
        """The text with the escapes of JSON, without quotes."""
        return json.dumps(text, ensure_ascii=False)[1:-1]

    def sections(self, completion: str, answers: int) -> list[Section]:
        """A list without its end, and a last string without its quote, are read too, though not as strict ones."""
        thought = prompted_end(completion, OPAQUE)
        # The tag that seems to end a thought of the prompt may stand in a string of a whole list.
        for begin in islice(_beginnings(completion[:thought]), CANDIDATES):
            found, closed = _elements(completion, begin)
            if closed and found[-1].end > thought:
                return found
        for begin in islice(_beginnings(blank_thoughts(completion, OPAQUE)), CANDIDATES):
            if found := _elements(completion, begin)[0]:
                return found
        return []


def _beginnings(text: str) -> Iterator[int]:
    """Where the first elements of lists begin that are not within the code of a fence."""
    blocks = iter(fences(text))
    block = next(blocks, None)
    for match in _BEGIN.finditer(text):
        while block and block.end <= match.start():
            block = next(blocks, None)
        inside = block is not None and block.start <= match.start()
        if not inside or not text[text.find("\n", block.start if block else 0) : match.start()].strip():
            yield match.end()


def _elements(text: str, position: int) -> tuple[list[Section], bool]:
    """The elements of a list whose first begins at a position, none where that is no string; whether it is closed."""
    found: list[Section] = []
    closed = False
    while position < len(text) and not closed:
        value, end, valid = _value(text, position)
        answer = _answer(value)
        if answer is None:
            break
        strict, ended = valid and isinstance(value, str), valid or end < len(text)
        found.append(Section(len(found), position, end, answer, strict=strict, closed=ended))
        position = _after_space(text, end)
        closed = text[position : position + 1] == "]"
        if text[position : position + 1] != ",":
            break
        position = _after_space(text, position + 1)
    return (found, True) if closed else ([each._replace(strict=False) for each in found], False)


def _after_space(text: str, position: int) -> int:
    """Position after white space, and thoughts, at a position."""
    space = _SPACE.match(text, position)
    return space.end() if space else position


def _value(text: str, position: int) -> tuple[Any, int, bool]:
    """The value at a position, None without one; where it ends; and whether it is valid JSON."""
    try:
        return *_DECODER.raw_decode(text, position), True
    except (ValueError, RecursionError):
        string = _STRING.match(text, position)
        if string is None:
            return None, len(text), False
    escapes = {"cut": r"\\u" if string["closed"] else "", "wrong": r"\\"}
    inside = _ESCAPE.sub(lambda match: escapes.get(match.lastgroup or "", match.group()), string["inside"])
    value: str = json.loads(f'"{inside}"', strict=False)
    return value if string["closed"] or value.strip() else None, string.end(), False


def _answer(value: Any) -> str | None:
    """A string; of an object, its `answer`, or its only string."""
    if isinstance(value, dict):
        texts = [value["answer"]] if "answer" in value else [each for each in value.values() if isinstance(each, str)]
        value = texts[0] if len(texts) == 1 else None
    return repair_latex(value).strip() if isinstance(value, str) else None
