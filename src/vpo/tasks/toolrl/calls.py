"""Answers of toolrl: thoughts, tool calls and a response, parsed from text and written as text."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vpo.tasks import answers as answer_format
from vpo.tasks.text import between
from vpo.tasks.toolrl.problem import Call

LONGEST = 100_000  # characters of an answer; a longer one is not parsed
DEEPEST = 50  # nesting of a call's JSON; a deeper one is not parsed
MOST_CALLS = 100  # calls of an answer; one with more is not parsed


@dataclass(frozen=True)
class ToolAnswer:
    """A parsed answer: whether it has thoughts, its calls, and its response, empty without one."""

    has_thoughts: bool
    calls: list[Call]
    response: str


def parse_answer(answer: str) -> ToolAnswer | None:
    """Parse an answer; None for one with neither a call nor a response."""
    if len(answer) > LONGEST:
        return None
    thoughts, rest = answer_format.split_reasoning(answer)
    lines: list[str] = []
    for block in rest.split("<tool_call>")[1:]:
        content, closed, _ = block.partition("</tool_call>")
        lines += [line for line in content.split("\n") if line.strip()] if closed else []
    if len(lines) > MOST_CALLS:
        return None
    calls = [parse_call(line) for line in lines]
    response = between(rest, "<response>", "</response>") or ""
    if not response and all(call.name is None for call in calls):
        return None
    return ToolAnswer(bool(between(thoughts, answer_format.THINK, answer_format.END_THINK)), calls, response)


def parse_call(line: str) -> Call:
    """A line of JSON as a call; one without a name where the line is not a call."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return Call(None, {})
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or _depth(value) > DEEPEST:
        return Call(None, {})
    parameters = value.get("parameters", {})
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
    return f"<think> The request calls for {'tools' if calls else 'no tool'}. </think>"
