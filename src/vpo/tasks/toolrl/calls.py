"""Answers of toolrl: thoughts, tool calls and a response, parsed from text and written as text."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from vpo.tasks.text import between
from vpo.tasks.thoughts import END_THINK, THINK, section_pattern, split_thoughts
from vpo.tasks.toolrl.problem import Call

LONGEST = 100_000  # characters of an answer; a longer one is not parsed
DEEPEST = 50  # nesting of a call's JSON; a deeper one is not parsed
MOST_CALLS = 100  # calls of an answer; one with more is not parsed
SECTIONS = section_pattern("tool_call|response")
_DECODER = json.JSONDecoder()
_LINE_END = re.compile(r"(?:(?<=\}),)?+[ \t\r]*+(?:\n[ \t\r\n]*+|\Z)")
_FENCE_LINE = re.compile(r"^[ \t]*+```(?:json)?+[ \t\r]*+$", re.MULTILINE)
_TRAILING_COMMA = re.compile(r"(?<=\}),[ \t\r]*+\Z")


@dataclass(frozen=True)
class ToolAnswer:
    """A parsed answer.

    Attributes:
        has_thoughts: whether it has thoughts with words in them.
        calls: in their order.
        response: empty without one.
        closed: whether its last block of calls has its end tag.
    """

    has_thoughts: bool
    calls: list[Call]
    response: str
    closed: bool = True


def parse_answer(answer: str) -> ToolAnswer | None:
    """Parse an answer; None for one with neither a call nor a response."""
    if len(answer) > LONGEST:
        return None
    thoughts, rest = split_thoughts(answer, SECTIONS)
    blocks = [block.partition("</tool_call>") for block in rest.split("<tool_call>")[1:]]
    found = chain.from_iterable(parse_calls(content) for content, closed, _ in blocks if closed)
    calls = list(islice(found, MOST_CALLS + 1))
    unclosed = [] if not blocks or blocks[-1][1] else list(islice(parse_calls(blocks[-1][0]), MOST_CALLS + 1))
    if any(call.name is None for call in unclosed):
        unclosed = []  # it is cut off, or the tag is only mentioned
    calls += unclosed
    if len(calls) > MOST_CALLS:
        return None
    response = between(rest, "<response>", "</response>") or ""
    if not response and all(call.name is None for call in calls):
        return None
    return ToolAnswer(bool(thoughts), calls, response, not unclosed)


def parse_calls(content: str) -> Iterator[Call]:
    """The calls of a block: JSON objects, or arrays of them, each over one or more whole lines.

    From the first value that is broken on, every line is a value of its own: one that is no call is a call without a
    name.
    """
    content = _FENCE_LINE.sub("", content).strip()
    position = 0
    while position < len(content):
        try:
            value, end = _DECODER.raw_decode(content, position)
        except (ValueError, RecursionError):
            break
        if not (line_end := _LINE_END.match(content, end)):
            break
        yield from _calls(value)
        position = line_end.end()
    for line in content[position:].split("\n"):
        if line.strip():
            yield from _calls(_decode(_TRAILING_COMMA.sub("", line)))


def _calls(value: Any) -> Iterator[Call]:
    return map(_call, value if isinstance(value, list) else [value])


def _decode(text: str) -> Any:
    """The value of a JSON text, None for any other."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _call(value: Any) -> Call:
    """A JSON value as a call; one without a name where it is none.

    The arguments are in `parameters`, or in `arguments`, as an object or as its JSON text.
    """
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return Call(None, {})
    parameters = value.get("parameters", value.get("arguments"))
    if isinstance(parameters, str):
        parameters = _decode(parameters)
    if _depth(value) > DEEPEST or _depth(parameters) >= DEEPEST:
        return Call(None, {})
    return Call(value["name"], parameters if isinstance(parameters, dict) else {})


def _depth(value: Any) -> int:
    """The nesting of a JSON value, computed without recursion, up to DEEPEST + 1."""
    depth, layer = 0, [value]
    while layer and depth <= DEEPEST:
        depth += 1
        inner = [item.values() if isinstance(item, dict) else item for item in layer if isinstance(item, dict | list)]
        layer = [item for items in inner for item in items]
    return depth


def short_thought(calls: Sequence[Call]) -> str:
    """One sentence of thoughts that fits the calls, or their absence."""
    return f"{THINK} The request calls for {'tools' if calls else 'no tool'}. {END_THINK}"
