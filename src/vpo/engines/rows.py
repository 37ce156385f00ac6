"""Rows of a data set with their completions: as trainers pass them, grouped by problem, and as processes share them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vpo.core.types import Floats
from vpo.engines.grading import Answers
from vpo.engines.prompts import DEPLOYED
from vpo.util.grouping import group_by


class ScoredRows(NamedTuple):
    """Scored completions, of one process or of all.

    Attributes:
        rows: of the data set, one per completion.
        texts: the completions.
        parsed: their answers.
        strict: which of these are in the form that was asked for.
        copies: which answers repeat an earlier one of their completion; empty where the method does not ask.
        vectors: their scores, (M, D) each; None where they are not known.
        truncated: which completions reached the longest length; empty where that is not known.
    """

    rows: list[dict[str, Any]]
    texts: list[str]
    parsed: list[Answers]
    strict: list[list[bool]]
    copies: list[list[bool]]
    vectors: list[Floats | None]
    truncated: list[bool]

    @classmethod
    def joined(cls, parts: Sequence["ScoredRows"]) -> "ScoredRows":
        """The parts of all processes as one."""
        return cls(*([each for values in column for each in values] for column in zip(*parts, strict=True)))

    def without_texts(self) -> "ScoredRows":
        """What the other processes need: the scores, which answers exist, and which problem each row is about."""
        rows = [{"problem": key_of(row), **({DEPLOYED: row[DEPLOYED]} if DEPLOYED in row else {})} for row in self.rows]
        parsed: list[Answers] = [[None if answer is None else "" for answer in answers] for answers in self.parsed]
        return self._replace(rows=rows, texts=[], parsed=parsed)


def rows_of(prompts: Sequence[Any], columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of the data set that completions belong to, out of its columns. Other arguments are dropped."""
    full = {
        name: values for name, values in columns.items() if isinstance(values, list) and len(values) == len(prompts)
    }
    return [
        {"prompt": prompt, **{name: values[index] for name, values in full.items()}}
        for index, prompt in enumerate(prompts)
    ]


def group_indices(rows: Sequence[Mapping[str, Any]], size: int) -> list[list[int]]:
    """The indices of each group: by its size where that divides the rows, else by problem; a size of 0 is unknown."""
    if size and len(rows) % size == 0:
        return [list(range(start, start + size)) for start in range(0, len(rows), size)]
    return list(group_by(range(len(rows)), lambda index: key_of(rows[index])).values())


def text_of(completion: Any) -> str:
    """The text of a completion: itself, or that of its last message, joined where the message has several parts.

    Of several turns, with the results of tools between them, only the last counts, and only if the policy wrote it.
    """
    if isinstance(completion, str):
        return completion
    last = completion[-1] if completion else {}
    content = last.get("content") if last.get("role", "assistant") == "assistant" else None
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def key_of(row: Mapping[str, Any]) -> str:
    """What tells the problem of a row from others: its name, or else its prompt."""
    return str(row["problem"]) if "problem" in row else repr(row["prompt"])
