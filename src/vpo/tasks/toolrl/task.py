"""The task toolrl."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from vpo.tasks import answers as answer_format
from vpo.tasks.data import check_split, take
from vpo.tasks.task import Message, Objective, Task, Vector
from vpo.tasks.text import f1
from vpo.tasks.thoughts import END_THINK, THINK, prompted_end, split_thoughts
from vpo.tasks.toolrl.calls import SECTIONS, parse_answer, short_thought
from vpo.tasks.toolrl.data import read_problems
from vpo.tasks.toolrl.matching import canonical, match_arguments
from vpo.tasks.toolrl.problem import ToolProblem

SPLITS = ("train", "test")


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

    def parse(self, completion: str, answers: int) -> list[str | None]:
        """The answers. In a set, the thoughts before the first answer belong to each of them."""
        if answers == 1:
            opened = THINK if prompted_end(completion, SECTIONS) else ""
            return [f"{opened}{completion.strip()}" or None]
        thoughts = answer_format.thoughts(completion, answers)
        before = f"{THINK}{thoughts}{END_THINK}\n" if thoughts else ""
        parsed = answer_format.parse(completion, answers)
        return [None if answer is None else f"{before}{answer}" for answer in parsed]

    def score(self, problem: ToolProblem, answer: str) -> Vector:
        """format, tool_name, arg_key and arg_value."""
        parsed = parse_answer(answer)
        if parsed is None:
            return 0.0, 0.0, 0.0, 0.0
        called = any(call.name is not None for call in parsed.calls)
        form = float(parsed.has_thoughts and called == bool(problem.calls))
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
