"""Readers for toolrl: the published rows, prepared ones, and rows of BFCL and Seal-Tools made into the same form."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

from vpo.tasks.data import Published, field, items, read_data, unique
from vpo.tasks.task import Message
from vpo.tasks.toolrl import Call, ToolProblem, read_answer, thought
from vpo.util.errors import InputError
from vpo.util.row_files import read_rows

PUBLISHED = Published(
    title="rlla_4k of ToolRL (qiancheng0/ToolRL, dataset/rlla_4k: train.parquet and test.parquet)",
    hub="emrecanacikgoz/ToolRL",
    files={"train": ("train",), "test": ("test",)},
    hub_splits={"train": "train", "test": "test"},
)

MOST_CHOICES = 100  # right values made of the choices inside one object

SYSTEM = """\
You help a user, and may call tools for it.

**Available Tools**
{tools}

**Output Format**
<think> your reasoning </think>
<tool_call>
{{"name": "a tool", "parameters": {{"a parameter": "its value"}}}}
</tool_call>
<response> your words to the user </response>

Always reason first. Then call tools, one JSON object a line, or respond."""


def read_problems(data: str | None, split: str) -> Sequence[ToolProblem]:
    """Return the problems of a split, from rows of any of these forms."""
    tools: dict[str, Mapping[str, Any]] | None = None
    problems = []
    for number, (place, row) in enumerate(read_data("toolrl", PUBLISHED, data, split)):
        name = f"{split}-{number}" if row.get("id") is None else str(row["id"])
        if "calling" in row:
            tools = _sealtools_tools(place) if tools is None else tools
            problems.append(from_sealtools(row, name, place, tools))
        else:
            problems.append(_reader(row, place)(row, name, place))
    return unique(problems, "toolrl")


def _reader(row: Mapping[str, Any], place: str) -> Callable[[Mapping[str, Any], str, str], ToolProblem]:
    if "reward_model" in row:
        return from_rlla
    if "instruction" in row and "output" in row:
        return from_instruction
    if "gold_calls" in row:
        return from_prepared
    if "ground_truth" in row and "function" in row:
        return from_bfcl
    raise InputError(
        f"{place}: a row of toolrl must have the fields of ToolRL (prompt and reward_model or instruction, input and "
        f"output), of BFCL (question, function, ground_truth) or of Seal-Tools (query, calling), not {', '.join(row)}"
    )


def from_rlla(row: Mapping[str, Any], name: str, place: str) -> ToolProblem:
    """Read a row as ToolRL published it."""
    gold = field(field(row, "reward_model", dict, place), "ground_truth", str, place)
    return _with_gold(name, _dialogue(items(row, "prompt", dict, place), place), gold, place)


def from_instruction(row: Mapping[str, Any], name: str, place: str) -> ToolProblem:
    """Read a row with `instruction`, `input` and `output`, as on the hub."""
    messages = (
        {"role": "system", "content": field(row, "instruction", str, place)},
        {"role": "user", "content": field(row, "input", str, place)},
    )
    return _with_gold(name, messages, field(row, "output", str, place), place)


def from_prepared(row: Mapping[str, Any], name: str, place: str) -> ToolProblem:
    """Read a row with `system`, `user`, `gold_calls` and, optionally, the whole gold answer as `gold`."""
    calls = [
        Call(field(call, "name", str, place), field(call, "parameters", dict, place))
        for call in _nested(row, "gold_calls", place)
    ]
    messages = (
        {"role": "system", "content": field(row, "system", str, place)},
        {"role": "user", "content": field(row, "user", str, place)},
    )
    gold = gold_answer(calls) if row.get("gold") is None else field(row, "gold", str, place)
    return ToolProblem(name, messages, tuple(calls), gold)


def from_bfcl(row: Mapping[str, Any], name: str, place: str) -> ToolProblem:
    """Make a row of the Berkeley Function-Calling Leaderboard (single turn) into a problem.

    Its gold lists the right values of each argument; one for which "" is right may be left out, and one for which none
    is listed is right only where it is left out.
    """
    calls = []
    for call in _nested(row, "ground_truth", place):
        if len(call) != 1:
            raise InputError(f"{place}: a call of ground_truth must name one tool, not {len(call)}")
        ((tool, arguments),) = call.items()
        right = {key: _right_values(items(arguments, key, object, place)) for key in arguments}
        needed = {key: values for key, values in right.items() if _needed(values)}
        calls.append(
            Call(
                tool,
                parameters={key: values[0] for key, values in needed.items()},
                accepted={key: values[1:] for key, values in needed.items()},
                optional={key: values for key, values in right.items() if key not in needed},
            )
        )
    turns = items(row, "question", list, place)
    if len(turns) != 1:
        raise InputError(f"{place}: question must hold one turn, not {len(turns)}")
    tools = [
        (
            field(tool, "name", str, place),
            field(tool, "description", str, place),
            field(tool, "parameters", dict, place),
        )
        for tool in _nested(row, "function", place)
    ]
    described = [(tool, text, parameters.get("properties", {})) for tool, text, parameters in tools]
    dialogue = _dialogue(items({"question": turns[0]}, "question", dict, place), place)
    return ToolProblem(name, _with_tools(described, dialogue), tuple(calls), gold_answer(calls))


def _needed(values: Sequence[Any]) -> bool:
    """Return whether, by its right values, an argument must not be left out."""
    return bool(values) and "" not in values


def _right_values(values: Sequence[Any]) -> list[Any]:
    """Return the right values of an argument, objects with every choice of what they list for their keys."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            keys = [key for key, choices in value.items() if not isinstance(choices, list) or _needed(choices)]
            choices = [_right_values(value[key] if isinstance(value[key], list) else [value[key]]) for key in keys]
            found += [dict(zip(keys, chosen, strict=True)) for chosen in islice(product(*choices), MOST_CHOICES)]
        elif isinstance(value, list):
            found.append([_right_values([item])[0] if isinstance(item, dict) else item for item in value])
        else:
            found.append(value)
    return found


def from_sealtools(
    row: Mapping[str, Any], name: str, place: str, tools: Mapping[str, Mapping[str, Any]]
) -> ToolProblem:
    """Make a row of Seal-Tools into a problem, with the tools that its calls need."""
    calls = [
        Call(field(call, "api", str, place), field(call, "parameters", dict, place))
        for call in _nested(row, "calling", place)
    ]
    described = []
    for tool in dict.fromkeys(str(call.name) for call in calls):
        if tool not in tools:
            raise InputError(f"{place}: calling names the tool {tool!r}, which is not in the tools file")
        described.append((tool, field(tools[tool], "api_description", str, place), tools[tool].get("parameters")))
    messages = _with_tools(described, [{"role": "user", "content": field(row, "query", str, place)}])
    return ToolProblem(name, messages, tuple(calls), gold_answer(calls))


def _sealtools_tools(place: str) -> dict[str, Mapping[str, Any]]:
    """Return the tools of Seal-Tools, from the file beside the queries, tools.jsonl or the like."""
    folder = Path(place.rpartition(":")[0]).parent
    files = sorted(folder.glob("tools.*"))
    if not files:
        raise InputError(f"{folder}: rows of Seal-Tools need its tools beside them, in tools.jsonl")
    return {field(tool, "api_name", str, f"{files[0]}:{line}"): tool for line, tool in read_rows(files[0])}


def gold_answer(calls: Sequence[Call]) -> str:
    """Return calls as a whole answer; words to the user where there are none."""
    if not calls:
        return f"{thought(calls)}\n<response> None of my tools can do this. </response>"
    lines = [json.dumps({"name": call.name, "parameters": dict(call.parameters)}) for call in calls]
    return "\n".join([thought(calls), "<tool_call>", *lines, "</tool_call>"])


def _with_gold(name: str, messages: Sequence[Message], gold: str, place: str) -> ToolProblem:
    read = read_answer(gold)
    if read is None or any(call.name is None for call in read.calls):
        raise InputError(f"{place}: the gold answer must hold calls, one a line, or a response, not {gold[:60]!r}")
    return ToolProblem(name, tuple(messages), tuple(read.calls), gold)


def _nested(row: Mapping[str, Any], name: str, place: str) -> list[Any]:
    """Return a list of objects, refusing it from Parquet, which fills what one object lacks with nulls."""
    if ".parquet:" in place or place.startswith("hub:"):
        raise InputError(f"{place}: {name} cannot be read from Parquet, which fills arguments with nulls: use JSONL")
    return items(row, name, dict, place)


def _dialogue(messages: Sequence[Any], place: str) -> tuple[Message, ...]:
    if not messages:
        raise InputError(f"{place}: the prompt must hold 1 or more messages, not 0")
    return tuple({key: field(message, key, str, place) for key in ("role", "content")} for message in messages)


def _with_tools(tools: Sequence[tuple[str, str, Any]], dialogue: Sequence[Message]) -> tuple[Message, ...]:
    """Return a dialogue whose system message describes the tools."""
    listed = "\n".join(
        f"{number}. Name: {name}\nDescription: {description}\nParameters: {json.dumps(parameters, ensure_ascii=False)}"
        for number, (name, description, parameters) in enumerate(tools, start=1)
    )
    given = [message["content"] for message in dialogue if message["role"] == "system"]
    system = "\n\n".join([*given, SYSTEM.format(tools=listed)])
    return ({"role": "system", "content": system}, *(dict(each) for each in dialogue if each["role"] != "system"))
