"""What a trainer hands over to be paid: rows of its data set, and completions."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vpo.core.types import Floats
from vpo.engines.grading import Answers
from vpo.engines.prompts import DEPLOYED


class Slice(NamedTuple):
    """The completions of one process: their rows, answers and scores; which were cut off, as far as that is known."""

    rows: list[dict[str, Any]]
    texts: list[str]
    parsed: list[Answers]
    scored: list[Floats | None]
    cut: list[bool]

    def without_texts(self) -> "Slice":
        """Return what the other processes need: which answers are there, and which problem each row is about."""
        rows = [{"problem": key_of(row), **({DEPLOYED: row[DEPLOYED]} if DEPLOYED in row else {})} for row in self.rows]
        there: list[Answers] = [[None if answer is None else "" for answer in answers] for answers in self.parsed]
        return Slice(rows, [], there, self.scored, self.cut)


def rows_of(prompts: Sequence[Any], columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the data set that completions belong to, out of its columns; what is no column is left out."""
    whole = {name: each for name, each in columns.items() if isinstance(each, list) and len(each) == len(prompts)}
    return [
        {"prompt": prompt, **{name: values[place] for name, values in whole.items()}}
        for place, prompt in enumerate(prompts)
    ]


def text_of(completion: Any) -> str:
    """Return the text of a completion: itself, or that of its last message, of its text parts where it has several."""
    if isinstance(completion, str):
        return completion
    content = completion[-1].get("content") if completion else None
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def key_of(row: Mapping[str, Any]) -> str:
    """Return what tells the problem of a row from others: its name, or else its prompt."""
    return str(row["problem"]) if "problem" in row else repr(row["prompt"])
