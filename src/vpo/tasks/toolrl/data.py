"""Readers of toolrl's data: the published rows, prepared ones, and rows of BFCL and Seal-Tools."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vpo.tasks.data import Published, field, items, read_data, unique
from vpo.tasks.task import Message
from vpo.tasks.toolrl import bfcl
from vpo.tasks.toolrl.calls import parse_answer, short_thought
from vpo.tasks.toolrl.problem import Argument, Call, ToolProblem
from vpo.util.errors import InputError
from vpo.util.row_files import read_rows

PUBLISHED = Published(
    title="rlla_4k of ToolRL (qiancheng0/ToolRL, dataset/rlla_4k: train.parquet and test.parquet)",
    hub="emrecanacikgoz/ToolRL",
    files={"train": ("train",), "test": ("test",)},
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


def read_problems(data: str | None, split: str) -> Sequence[ToolProblem]:
    """The problems of a split. Each row may be of any of these data sets."""
    tools: dict[str, Mapping[str, Any]] | None = None
    problems = []
    for number, (where, row) in enumerate(read_data("toolrl", PUBLISHED, data, split)):
        name = f"{split}-{number}" if row.get("id") is None else str(row["id"])
        if "calling" in row:
            tools = _sealtools_tools(where) if tools is None else tools
            problems.append(from_sealtools(row, name, where, tools))
        else:
            problems.append(_reader(row, where)(row, name, where))
    return unique(problems, "toolrl")


def _reader(row: Mapping[str, Any], where: str) -> Callable[[Mapping[str, Any], str, str], ToolProblem]:
    if "reward_model" in row:
        return from_rlla
    if "instruction" in row and "output" in row:
        return from_instruction
    if "gold_calls" in row:
        return from_prepared
    if "ground_truth" in row and "function" in row:
        return from_bfcl
    raise InputError(
        f"{where}: a row of toolrl must have the fields of ToolRL (prompt and reward_model or instruction, input and "
        f"output), of BFCL (question, function, ground_truth) or of Seal-Tools (query, calling), not {', '.join(row)}"
    )


def from_rlla(row: Mapping[str, Any], name: str, where: str) -> ToolProblem:
    """Read a row as ToolRL published it."""
    gold = field(field(row, "reward_model", dict, where), "ground_truth", str, where)
    return _with_gold(name, _dialogue(items(row, "prompt", dict, where), where), gold, where)


def from_instruction(row: Mapping[str, Any], name: str, where: str) -> ToolProblem:
    """Read a row with `instruction`, `input` and `output`, as on the hub."""
    messages = (
        {"role": "system", "content": field(row, "instruction", str, where)},
        {"role": "user", "content": field(row, "input", str, where)},
    )
    return _with_gold(name, messages, field(row, "output", str, where), where)


def from_prepared(row: Mapping[str, Any], name: str, where: str) -> ToolProblem:
    """Read a row with `system`, `user`, `gold_calls` and, optionally, the whole gold answer as `gold`."""
    calls = [
        Call(field(call, "name", str, where), field(call, "parameters", dict, where))
        for call in _nested(row, "gold_calls", where)
    ]
    messages = (
        {"role": "system", "content": field(row, "system", str, where)},
        {"role": "user", "content": field(row, "user", str, where)},
    )
    gold = gold_answer(calls) if row.get("gold") is None else field(row, "gold", str, where)
    return ToolProblem(name, messages, tuple(calls), gold)


def from_bfcl(row: Mapping[str, Any], name: str, where: str) -> ToolProblem:
    """Make a row of the Berkeley Function-Calling Leaderboard (single turn) into a problem.

    Its gold lists the right values of each argument. One that is not required, and for which "" is right, may be
    omitted; one without right values must be.
    """
    tools = [
        (
            field(tool, "name", str, where),
            field(tool, "description", str, where),
            field(tool, "parameters", dict, where),
        )
        for tool in _nested(row, "function", where)
    ]
    schemas = {tool: schema for tool, _, schema in reversed(tools)}  # of a name twice the first counts
    calls = []
    for call in _nested(row, "ground_truth", where):
        if len(call) != 1:
            raise InputError(f"{where}: a call of ground_truth must name one tool, not {len(call)}")
        (called,) = call
        calls.append(_bfcl_call(called, field(call, called, dict, where), schemas.get(called, {}), where))
    turns = items(row, "question", list, where)
    if len(turns) != 1:
        raise InputError(f"{where}: question must hold one turn, not {len(turns)}")
    described = [(tool, text, schema.get("properties", {})) for tool, text, schema in tools]
    dialogue = _dialogue(items({"question": turns[0]}, "question", dict, where), where)
    return ToolProblem(name, _with_tools(described, dialogue), tuple(calls), gold_answer(calls))


def _bfcl_call(tool: str, gold: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> Call:
    properties = field({"properties": {}, **schema}, "properties", dict, where)
    required = items({"required": [], **schema}, "required", object, where)
    arguments, parameters = {}, {}
    for key in gold:
        choices = items(gold, key, object, where)
        declared = field({key: {}, **properties}, key, dict, where)
        kind_of_items = field({"items": {}, **declared}, "items", dict, where).get("type")
        argument = Argument(choices, declared.get("type"), kind_of_items)
        needed = bool(choices) and ("" not in choices or key in required)
        if key in properties or needed:  # an optional argument that the tool does not have is none
            arguments[key] = argument
        if needed:
            parameters[key] = bfcl.example(argument)
    return Call(tool, parameters, arguments)


def from_sealtools(
    row: Mapping[str, Any], name: str, where: str, tools: Mapping[str, Mapping[str, Any]]
) -> ToolProblem:
    """Make a row of Seal-Tools into a problem, with the tools that its calls need."""
    calls = [
        Call(field(call, "api", str, where), field(call, "parameters", dict, where))
        for call in _nested(row, "calling", where)
    ]
    described = []
    for tool in dict.fromkeys(str(call.name) for call in calls):
        if tool not in tools:
            raise InputError(f"{where}: calling names the tool {tool!r}, which is not in the tools file")
        described.append((tool, field(tools[tool], "api_description", str, where), tools[tool].get("parameters")))
    messages = _with_tools(described, [{"role": "user", "content": field(row, "query", str, where)}])
    return ToolProblem(name, messages, tuple(calls), gold_answer(calls))


def _sealtools_tools(where: str) -> dict[str, Mapping[str, Any]]:
    """The tools of Seal-Tools, from tools.jsonl or the like in the folder of the queries."""
    folder = Path(where.rpartition(":")[0]).parent
    files = sorted(folder.glob("tools.*"))
    if not files:
        raise InputError(f"{folder}: rows of Seal-Tools need tools.jsonl in the same folder")
    return {field(tool, "api_name", str, f"{files[0]}:{line}"): tool for line, tool in read_rows(files[0])}


def gold_answer(calls: Sequence[Call]) -> str:
    """Calls as a whole answer; a response to the user where there are none."""
    if not calls:
        return f"{short_thought(calls)}\n<response> None of my tools can do this. </response>"
    lines = [json.dumps({"name": call.name, "parameters": dict(call.parameters)}) for call in calls]
    return "\n".join([short_thought(calls), "<tool_call>", *lines, "</tool_call>"])


def _with_gold(name: str, messages: Sequence[Message], gold: str, where: str) -> ToolProblem:
    parsed = parse_answer(gold)
    if parsed is None or any(call.name is None for call in parsed.calls):
        raise InputError(f"{where}: the gold answer must hold calls, one a line, or a response, not {gold[:60]!r}")
    return ToolProblem(name, tuple(messages), tuple(parsed.calls), gold)


def _nested(row: Mapping[str, Any], name: str, where: str) -> list[Any]:
    """A list of objects. It is refused from Parquet, which fills the keys that an object lacks with nulls."""
    if ".parquet:" in where or where.startswith("hub:"):
        raise InputError(f"{where}: {name} cannot be read from Parquet, which fills arguments with nulls: use JSONL")
    return items(row, name, dict, where)


def _dialogue(messages: Sequence[Any], where: str) -> tuple[Message, ...]:
    if not messages:
        raise InputError(f"{where}: the prompt must hold 1 or more messages, not 0")
    return tuple({key: field(message, key, str, where) for key in ("role", "content")} for message in messages)


def _with_tools(tools: Sequence[tuple[str, str, Any]], dialogue: Sequence[Message]) -> tuple[Message, ...]:
    """A dialogue whose system message describes the tools."""
    listed = "\n".join(
        f"{number}. Name: {name}\nDescription: {description}\nParameters: {json.dumps(parameters, ensure_ascii=False)}"
        for number, (name, description, parameters) in enumerate(tools, start=1)
    )
    texts = [message["content"] for message in dialogue if message["role"] == "system"]
    system = "\n\n".join([*texts, SYSTEM.format(tools=listed)])
    return ({"role": "system", "content": system}, *(dict(each) for each in dialogue if each["role"] != "system"))
