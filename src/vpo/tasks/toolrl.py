"""toolrl: choosing tools and filling in their arguments (arXiv 2504.13958), four numbers for a set of calls."""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, ClassVar

from vpo.tasks import answers as protocol
from vpo.tasks.task import Message, Objective, Task, Vector, check_split, take
from vpo.tasks.text import between, f1

LONGEST = 100_000  # characters of an answer; a longer one is not read
DEEPEST = 50  # nesting of a call's JSON; one that is deeper is not read
MOST_CALLS = 100  # calls of an answer; one with more is not read
SPLITS = ("train", "test")


@dataclass(frozen=True)
class Call:
    """A call of a tool.

    Attributes:
        name: of the tool, None for a call that could not be read.
        parameters: argument → value.
        accepted: for arguments with several right values, the others.
        optional: for arguments that may be left out, their right values.
    """

    name: str | None
    parameters: Mapping[str, Any]
    accepted: Mapping[str, Sequence[Any]] = dataclass_field(default_factory=dict)
    optional: Mapping[str, Sequence[Any]] = dataclass_field(default_factory=dict)


@dataclass(frozen=True)
class ToolProblem:
    """A request to a model that has tools.

    Attributes:
        id: as in the data set.
        messages: the tools and the dialogue, as chat messages.
        calls: the gold calls; none where the model should answer in words.
        gold: a gold answer, in full.
    """

    id: str
    messages: tuple[Message, ...]
    calls: tuple[Call, ...]
    gold: str


class ToolrlTask(Task[ToolProblem]):
    """``<think>``, then ``<tool_call>`` with one JSON object a line, or a ``<response>``.

    format is 1 if there are thoughts, and calls exactly where gold has calls. tool_name is the F1 of the names.
    arg_key and arg_value are means over calls, aligned by name, then by their keys: the F1 of the keys, and over the
    gold keys how well the value matches. A call that is unmatched on either side scores 0. An answer with neither
    readable calls nor a response scores 0 everywhere.
    """

    name: ClassVar[str] = "toolrl"
    summary: ClassVar[str] = "tool calls: the right tools with the right arguments"
    objectives: ClassVar[tuple[Objective, ...]] = (
        Objective("format", "thoughts are there, and calls exactly where they should be"),
        Objective("tool_name", "F1 of the names of the tools called"),
        Objective("arg_key", "F1 of the argument names, over aligned calls"),
        Objective("arg_value", "match of the argument values, over aligned calls"),
    )
    weights: ClassVar[Vector] = (0.25, 0.25, 0.25, 0.25)
    wraps_single: ClassVar[bool] = False

    def __init__(self, *, data: str | None = None, brief: bool = False) -> None:
        """Make the task.

        Args:
            data: file or folder of ToolRL's rlla_4k, or "hub". Rows of BFCL and Seal-Tools are read too.
            brief: whether the thoughts of gold answers are a sentence, for models that have no room for more.
        """
        self.data = data
        self.brief = brief

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[ToolProblem]:
        """Return the published splits, "train" (3920) and "test" (80)."""
        from vpo.tasks.tool_data import read_problems

        check_split(split, SPLITS, self.name)
        return take(read_problems(self.data, split), count)

    def question(self, problem: ToolProblem) -> list[Message]:
        """Return the tools and the dialogue. The published prompt says how an answer is written."""
        return [dict(message) for message in problem.messages]

    def parse(self, completion: str, answers: int) -> list[str | None]:
        """Return the answers. In a set, the thoughts before the first answer belong to each of them."""
        if answers == 1:
            thoughts, spoken = protocol.split_reasoning(completion)
            return [f"{thoughts}{spoken}".strip() or None]
        thoughts, _ = protocol.split_reasoning(completion[: protocol.reasoning_end(completion, answers)])
        found = protocol.parse(completion, answers)
        return [None if answer is None else f"{thoughts}\n{answer}".strip() for answer in found]

    def score(self, problem: ToolProblem, answer: str) -> Vector:
        """Return format, tool_name, arg_key and arg_value."""
        read = read_answer(answer)
        if read is None:
            return 0.0, 0.0, 0.0, 0.0
        called = any(call.name is not None for call in read.calls)
        form = float(read.thought and called == bool(problem.calls))
        names = f1([call.name for call in read.calls], [call.name for call in problem.calls])
        return form, names, *_arguments(read.calls, problem.calls)

    def normal_form(self, answer: str) -> Hashable:
        """Return the calls in any order and the response, None for an answer that cannot be read."""
        read = read_answer(answer)
        if read is None:
            return None
        calls = sorted(canonical({"name": call.name, "parameters": call.parameters}) for call in read.calls)
        return tuple(calls), read.response

    def gold(self, problem: ToolProblem) -> str:
        """Return the gold answer."""
        if not self.brief:
            return problem.gold
        _, spoken = protocol.split_reasoning(problem.gold)
        return f"{thought(problem.calls)}\n{spoken.strip()}"


def thought(calls: Sequence[Call]) -> str:
    """Return the least that is to be thought before calls, or before words where there are none."""
    return f"<think> The request calls for {'tools' if calls else 'no tool'}. </think>"


@dataclass(frozen=True)
class Read:
    """What was read of an answer: whether there are thoughts, the calls, the response."""

    thought: bool
    calls: list[Call]
    response: str


def read_answer(answer: str) -> Read | None:
    """Read an answer; None for one with neither a call nor a response."""
    if len(answer) > LONGEST:
        return None
    thoughts, spoken = protocol.split_reasoning(answer)
    lines: list[str] = []
    for block in spoken.split("<tool_call>")[1:]:
        content, closed, _ = block.partition("</tool_call>")
        lines += [line for line in content.split("\n") if line.strip()] if closed else []
    if len(lines) > MOST_CALLS:
        return None
    calls = [read_call(line) for line in lines]
    response = between(spoken, "<response>", "</response>") or ""
    if not response and all(call.name is None for call in calls):
        return None
    return Read(bool(between(thoughts, protocol.THINK, protocol.END_THINK)), calls, response)


def read_call(line: str) -> Call:
    """Return a line of JSON as a call; one without a name where it is not a call."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return Call(None, {})
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or _depth(value) > DEEPEST:
        return Call(None, {})
    parameters = value.get("parameters", {})
    return Call(value["name"], parameters if isinstance(parameters, dict) else {})


def _depth(value: Any) -> int:
    """Return how deeply a value of JSON is nested, without recursion, up to one more than is allowed."""
    depth, layer = 0, [value]
    while layer and depth <= DEEPEST:
        depth += 1
        inner = [item.values() if isinstance(item, dict) else item for item in layer if isinstance(item, dict | list)]
        layer = [item for items in inner for item in items]
    return depth


def _arguments(calls: Sequence[Call], gold: Sequence[Call]) -> tuple[float, float]:
    """Return arg_key and arg_value: means over aligned calls, with 0 for every call left over on either side."""
    names = {call.name for call in gold} - {None}
    pairs = [
        pair
        for name in names
        for pair in _aligned(
            [call for call in calls if call.name == name], [call for call in gold if call.name == name]
        )
    ]
    total = len(calls) + len(gold) - len(pairs)
    if total == 0:
        return 1.0, 1.0
    return sum(keys for keys, _ in pairs) / total, sum(values for _, values in pairs) / total


def _aligned(calls: Sequence[Call], gold: Sequence[Call]) -> list[tuple[float, float]]:
    """Return how well keys and values agree in the best pairing of calls of one name: best by keys, then by values.

    The order of the calls means nothing.
    """
    agree = [[(_keys(call, expected), _values(call, expected)) for call in calls] for expected in gold]
    if len(calls) <= 1 and len(gold) <= 1:
        return [pair for row in agree for pair in row]
    from scipy.optimize import linear_sum_assignment  # slow to import

    # Values, of which there are at most as many as calls, never outweigh a difference in keys.
    worth = [[keys * 1e6 + values for keys, values in row] for row in agree]
    return [agree[i][j] for i, j in zip(*linear_sum_assignment(worth, maximize=True), strict=True)]


def _keys(call: Call, gold: Call) -> float:
    """Return the F1 of the keys; an optional one counts only where it is given."""
    return f1(call.parameters.keys() - gold.optional.keys(), gold.parameters.keys())


def _values(call: Call, gold: Call) -> float:
    """Return the mean match over the gold keys, and the optional ones that are given; 1 where there are none."""
    right = {key: [value, *gold.accepted.get(key, ())] for key, value in gold.parameters.items()}
    right |= {key: list(values) for key, values in gold.optional.items() if key in call.parameters}
    if not right:
        return 1.0
    matches = [
        max((match(call.parameters[key], value) for value in values), default=0.0) if key in call.parameters else 0.0
        for key, values in right.items()
    ]
    return sum(matches) / len(matches)


def match(value: Any, gold: Any) -> float:
    """Return how well a value matches: text by word F1, lists by F1 of their items, anything else exactly.

    A value of another kind does not match: the text "true" is not true, and "5" is not 5.
    """
    if isinstance(gold, str):
        return f1(value.lower().split(), gold.lower().split()) if isinstance(value, str) else 0.0
    if isinstance(gold, list):
        return f1(map(canonical, value), map(canonical, gold)) if isinstance(value, list) else 0.0
    return float(canonical(value) == canonical(gold))


def canonical(value: Any) -> str:
    """Return a text that two values of JSON share if they are equal: 5 and 5.0 are, 1 and true are not."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
