"""The task toolrl."""

import re
from collections.abc import Hashable, Sequence
from typing import ClassVar

from vpo.tasks import answers as answer_format
from vpo.tasks.data import check_split, take
from vpo.tasks.forms import Example
from vpo.tasks.reading import Native, Reading, read_natives, read_sections, read_whole
from vpo.tasks.task import Message, Objective, Task, Vector
from vpo.tasks.text import f1
from vpo.tasks.thoughts import END_THINK, THINK, blank_thoughts, prompted_end, split_thoughts
from vpo.tasks.toolrl.calls import SECTIONS, parse_answer, short_thought
from vpo.tasks.toolrl.data import read_problems
from vpo.tasks.toolrl.matching import canonical, match_arguments
from vpo.tasks.toolrl.problem import ToolProblem

SPLITS = ("train", "test")
WEATHER = Example(
    "a user with the tools get_weather and get_forecast asks whether to take an umbrella in Oslo",
    (
        '<tool_call>\n{"name": "get_weather", "parameters": {"city": "Oslo"}}\n</tool_call>',
        '<tool_call>\n{"name": "get_forecast", "parameters": {"city": "Oslo", "days": 1}}\n</tool_call>',
        "<response> For which day would you like to know? </response>",
    ),
    before="<think> The user needs to know whether it will rain in Oslo. </think>\n",
)
_OUTPUT_FORMAT = re.compile(r"\*\*Output Format\*\*\n(?:[^\n]+(?:\n|\Z))*\n?")


class ToolrlTask(Task[ToolProblem]):
    """``<think>``, then ``<tool_call>`` with one JSON object a line, or a ``<response>``.

    format is 1 if there are thoughts, and calls if and only if gold has calls. tool_name is the F1 of the names.
    arg_key and arg_value are means over calls, aligned by name, then by their keys: the F1 of the keys, and over the
    gold keys how well the value matches. An unmatched call on either side scores 0. An answer with neither a call that
    can be parsed nor a response scores 0 everywhere.
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
    example: ClassVar[Example | None] = WEATHER

    def __init__(self, *, data: str | None = None, brief: bool = False) -> None:
        """Make the task.

        Args:
            data: file or folder of ToolRL's rlla_4k, or "hub". Rows of BFCL and Seal-Tools are read too.
            brief: whether the thoughts of gold answers are one sentence, for a small token budget.
        """
        self.data = data
        self.brief = brief

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[ToolProblem]:
        """The published splits, "train" (3920) and "test" (80)."""
        check_split(split, SPLITS, self.name)
        return take(read_problems(self.data, split), count)

    def question(self, problem: ToolProblem) -> list[Message]:
        """The tools and the dialogue. The published prompt describes the format of an answer."""
        return [dict(message) for message in problem.messages]

    def set_question(self, problem: ToolProblem) -> list[Message]:
        """The tools and the dialogue, without the published format of a single answer."""
        return [{**each, "content": _OUTPUT_FORMAT.sub("", each["content"])} for each in self.question(problem)]

    def read(self, completion: str, answers: int) -> Reading:
        """The answers. In a set, the thoughts before the first answer belong to each of them."""
        if answers == 1:
            opened = THINK if prompted_end(completion, SECTIONS) else ""
            text = f"{opened}{completion.strip()}" or None
            parsed = parse_answer(text or "")
            closed = parsed is None or parsed.closed
            reading = read_whole(text, len(completion), strict=parsed is not None and parsed.has_thoughts and closed)
            return reading if closed else reading._replace(unclosed=0)
        natives = self.native(blank_thoughts(completion, SECTIONS), answers)
        tagged = self.sections(completion, answers)
        if tagged and (not natives or tagged[-1].end > prompted_end(completion, SECTIONS)):
            reading = read_sections(tagged, len(completion), answers)
            in_tags = bool(answer_format.sections(completion, answers))
            thoughts = (
                answer_format.thoughts(completion, answers) if in_tags else split_thoughts(completion, SECTIONS)[0]
            )
        else:
            reading = read_natives(natives, len(completion), answers)
            thoughts, _ = split_thoughts(completion, SECTIONS)
        before = f"{THINK}{thoughts}{END_THINK}\n" if thoughts else ""
        return reading._replace(answers=[None if each is None else f"{before}{each}" for each in reading.answers])

    def native(self, text: str, answers: int) -> Sequence[Native]:
        """Of a set, each block of calls and each response is an answer."""
        return [Native(*match.span(), match.group()) for match in SECTIONS.finditer(text) if match["name"]]

    def score(self, problem: ToolProblem, answer: str) -> Vector:
        """format, tool_name, arg_key and arg_value."""
        parsed = parse_answer(answer)
        if parsed is None:
            return 0.0, 0.0, 0.0, 0.0
        called = any(call.name is not None for call in parsed.calls)
        form = float(parsed.has_thoughts and parsed.closed and called == bool(problem.calls))
        names = f1([call.name for call in parsed.calls], [call.name for call in problem.calls])
        return form, names, *match_arguments(parsed.calls, problem.calls)

    def normal_form(self, answer: str) -> Hashable:
        """The calls in any order and the response, None for an answer that cannot be parsed."""
        parsed = parse_answer(answer)
        if parsed is None:
            return None
        calls = sorted(canonical({"name": call.name, "parameters": call.parameters}) for call in parsed.calls)
        return tuple(calls), parsed.response

    def gold(self, problem: ToolProblem) -> str:
        """The gold answer of the data set, with short thoughts if `brief`."""
        if not self.brief:
            return problem.gold
        _, rest = split_thoughts(problem.gold, SECTIONS)
        return f"{short_thought(problem.calls)}\n{rest}"
