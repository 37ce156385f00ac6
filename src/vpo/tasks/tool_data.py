"""Readers for toolrl: the published rows, prepared ones, and rows of BFCL and Seal-Tools made into the same form."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vpo.errors import InputError
from vpo.row_files import read_rows
from vpo.tasks.data import Published, field, read_data
from vpo.tasks.task import Message
from vpo.tasks.toolrl import Call, ToolProblem, read_answer

PUBLISHED = Published(
    title="rlla_4k of ToolRL (qiancheng0/ToolRL, dataset/rlla_4k: train.parquet and test.parquet)",
    hub="emrecanacikgoz/ToolRL",
    files={"train": "train", "test": "test"},
    hub_splits={"train": "train", "test": "test"},
)

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


def read_problems(data: str | None, split: str) -> list[ToolProblem]:
    """Return the problems of a split, from rows of any of these forms."""
    tools: dict[str, Mapping[str, Any]] | None = None
    problems = []
    for number, (place, row) in enumerate(read_data("toolrl", PUBLISHED, data, split)):
        if "calling" in row:
            tools = _sealtools_tools(place) if tools is None else tools
            problems.append(from_sealtools(row, tools, place))
        else:
            problems.append(_reader(row, place)(row, str(row.get("id", f"{split}-{number}")), place))
    return problems


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
    messages = [
        {"role": message["role"], "content": message["content"]} for message in field(row, "prompt", list, place)
    ]
    return _with_gold(name, messages, gold, place)


def from_instruction(row: Mapping[str, Any], name: str, place: str) -> ToolProblem:
    """Read a row with `instruction`, `input` and `output`, as on the hub."""
    messages = [
        {"role": "system", "content": field(row, "instruction", str, place)},
        {"role": "user", "content": field(row, "input", str, place)},
    ]
    return _with_gold(name, messages, field(row, "output", str, place), place)


def _with_gold(name: str, messages: Sequence[Message], gold: str, place: str) -> ToolProblem:
    read = read_answer(gold)
    if read is None:
        raise InputError(f"{place}: the gold answer must hold calls or a response, not {gold[:60]!r}")
    return ToolProblem(name, tuple(messages), tuple(read[1]), gold)


def from_prepared(row: Mapping[str, Any], name: str, place: str) -> ToolProblem:
    """Read a row with `system`, `user`, `gold_calls` and, optionally, the whole gold answer as `gold`."""
    calls = tuple(Call(call["name"], call["parameters"]) for call in field(row, "gold_calls", list, place))
    messages = (
        {"role": "system", "content": field(row, "system", str, place)},
        {"role": "user", "content": field(row, "user", str, place)},
    )
    return ToolProblem(name, messages, calls, row.get("gold") or gold_answer(calls))


def from_bfcl(row: Mapping[str, Any], name: str, place: str) -> ToolProblem:
    """Make a row of the Berkeley Function-Calling Leaderboard (single turn) into a problem.

    Its gold lists the right values of each argument; one for which "" is right, or nothing, may be left out, and is.
    """
    calls = []
    for call in field(row, "ground_truth", list, place):
        ((tool, arguments),) = call.items()
        needed = {
            key: [_first_right(value) for value in values]
            for key, values in arguments.items()
            if values and "" not in values
        }
        parameters = {key: values[0] for key, values in needed.items()}
        calls.append(Call(tool, parameters, {key: values[1:] for key, values in needed.items()}))
    (turn,) = field(row, "question", list, place)
    tools = [
        (tool["name"], tool["description"], tool["parameters"].get("properties", {}))
        for tool in field(row, "function", list, place)
    ]
    return ToolProblem(name, _messages(tools, turn), tuple(calls), gold_answer(calls))


def _first_right(value: Any) -> Any:
    """Return a value with, inside objects, the first of the right ones for each key; optional keys are left out."""
    if isinstance(value, dict):
        return {
            key: _first_right(values[0]) if isinstance(values, list) else _first_right(values)
            for key, values in value.items()
            if not (isinstance(values, list) and (not values or "" in values))
        }
    if isinstance(value, list):
        return [_first_right(item) for item in value]
    return value


def from_sealtools(row: Mapping[str, Any], tools: Mapping[str, Mapping[str, Any]], place: str) -> ToolProblem:
    """Make a row of Seal-Tools into a problem, with the tools that its calls need."""
    calls = tuple(Call(call["api"], call["parameters"]) for call in field(row, "calling", list, place))
    needed = dict.fromkeys(call.name for call in calls)
    unknown = [name for name in needed if name not in tools]
    if unknown:
        raise InputError(f"{place}: calling names tools that are not in the tools file: {', '.join(map(str, unknown))}")
    described = [(name, tools[name]["api_description"], tools[name]["parameters"]) for name in needed if name]
    messages = _messages(described, [{"role": "user", "content": field(row, "query", str, place)}])
    return ToolProblem(field(row, "id", str, place), messages, calls, gold_answer(calls))


def _sealtools_tools(place: str) -> dict[str, Mapping[str, Any]]:
    """Return the tools of Seal-Tools, from the file beside the queries whose name contains "tools"."""
    folder = Path(place.rpartition(":")[0]).parent
    files = sorted(folder.glob("tools.*"))
    if not files:
        raise InputError(f"{folder}: rows of Seal-Tools need its tools beside them, in tools.jsonl")
    return {tool["api_name"]: tool for _, tool in read_rows(files[0])}


def gold_answer(calls: Sequence[Call]) -> str:
    """Return calls as a whole answer."""
    lines = [json.dumps({"name": call.name, "parameters": dict(call.parameters)}, ensure_ascii=False) for call in calls]
    return "\n".join(["<think> The request calls for tools. </think>", "<tool_call>", *lines, "</tool_call>"])


def _messages(tools: Sequence[tuple[str, str, Any]], turn: Sequence[Message]) -> tuple[Message, ...]:
    listed = "\n".join(
        f"{number}. Name: {name}\nDescription: {description}\nParameters: {json.dumps(parameters, ensure_ascii=False)}"
        for number, (name, description, parameters) in enumerate(tools, start=1)
    )
    system = {"role": "system", "content": SYSTEM.format(tools=listed)}
    given = [message["content"] for message in turn if message["role"] == "system"]
    if given:
        system = {"role": "system", "content": "\n\n".join([*given, system["content"]])}
    return (system, *(dict(message) for message in turn if message["role"] != "system"))
