"""toolrl: choosing tools and filling in their arguments (arXiv 2504.13958), four numbers for a set of calls."""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from vpo import answers as protocol
from vpo.tasks.task import Message, Objective, Task, Vector, check_split, take
from vpo.tasks.text import between, f1

LONGEST = 100_000  # characters of an answer; a longer one is not read
MOST_CALLS = 100  # calls of an answer; one with more is not read
SPLITS = ("train", "test")


@dataclass(frozen=True)
class Call:
    """A call of a tool.

    Attributes:
        name: of the tool, None for a call that could not be read.
        parameters: argument → value.
        accepted: for arguments with several right values, the others.
    """

    name: str | None
    parameters: Mapping[str, Any]
    accepted: Mapping[str, Sequence[Any]] | None = None


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
    calls nor a response scores 0 everywhere.
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

    def __init__(self, *, data: str | None = None) -> None:
        """Make the task.

        Args:
            data: file or folder of ToolRL's rlla_4k, or "hub". Rows of BFCL and Seal-Tools are read too.
        """
        self.data = data

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
            return [completion.strip() or None]
        end = protocol.reasoning_end(completion, answers)
        thoughts = completion[:end].strip()
        if thoughts and not thoughts.startswith(protocol.THINK):
            thoughts = protocol.THINK + thoughts  # the prompt opened it
        return [
            None if answer is None else f"{thoughts}\n{answer}".strip()
            for answer in protocol.parse(completion, answers)
        ]

    def score(self, problem: ToolProblem, answer: str) -> Vector:
        """Return format, tool_name, arg_key and arg_value."""
        read = read_answer(answer)
        if read is None:
            return 0.0, 0.0, 0.0, 0.0
        thought, calls = read
        form = float(thought and bool(calls) == bool(problem.calls))
        names = f1([call.name for call in calls], [call.name for call in problem.calls])
        return form, names, *_arguments(calls, problem.calls)

    def normal_form(self, answer: str) -> Hashable:
        """Return the calls in any order, or the response."""
        read = read_answer(answer)
        if read is None or not read[1]:
            return between(answer, "<response>", "</response>")
        return tuple(sorted(canonical({"name": call.name, "parameters": call.parameters}) for call in read[1]))

    def gold(self, problem: ToolProblem) -> str:
        """Return the gold answer."""
        return problem.gold


def read_answer(answer: str) -> tuple[bool, list[Call]] | None:
    """Return whether there are thoughts, and the calls; None for neither calls nor a response."""
    if len(answer) > LONGEST:
        return None
    thought = between(answer, protocol.THINK, protocol.END_THINK)
    spoken = answer.partition(protocol.END_THINK)[2] if thought is not None else answer
    lines: list[str] = []
    for block in spoken.split("<tool_call>")[1:]:
        content, closed, _ = block.partition("</tool_call>")
        lines += [line for line in content.splitlines() if line.strip()] if closed else []
    if len(lines) > MOST_CALLS:
        return None
    if not lines and not between(spoken, "<response>", "</response>"):
        return None
    return bool(thought), [read_call(line) for line in lines]


def read_call(line: str) -> Call:
    """Return a line of JSON as a call; one without a name where it is not a call."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return Call(None, {})
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return Call(None, {})
    parameters = value.get("parameters", {})
    return Call(value["name"], parameters if isinstance(parameters, dict) else {})


def _arguments(calls: Sequence[Call], gold: Sequence[Call]) -> tuple[float, float]:
    """Return arg_key and arg_value: means over aligned calls, with 0 for every call left over on either side."""
    pairs = []
    for i, expected in enumerate(gold):
        for j, call in enumerate(calls):
            if call.name == expected.name:
                keys = f1(call.parameters.keys(), expected.parameters.keys())
                pairs.append((-keys, -_values(call, expected), i, j))
    # Best key overlap first; calls that tie in it are told apart by their values, since their order means nothing.
    matched: list[tuple[float, float]] = []
    left, right = set(range(len(gold))), set(range(len(calls)))
    for keys, values, i, j in sorted(pairs):
        if i in left and j in right:
            left.remove(i)
            right.remove(j)
            matched.append((-keys, -values))
    total = len(matched) + len(left) + len(right)
    if total == 0:
        return 1.0, 1.0
    return sum(keys for keys, _ in matched) / total, sum(values for _, values in matched) / total


def _values(call: Call, gold: Call) -> float:
    """Return the mean match over the gold keys; 1 where there are none."""
    if not gold.parameters:
        return 1.0
    total = 0.0
    for key, value in gold.parameters.items():
        if key in call.parameters:
            others = (gold.accepted or {}).get(key, ())
            total += max(match(call.parameters[key], right) for right in (value, *others))
    return total / len(gold.parameters)


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
