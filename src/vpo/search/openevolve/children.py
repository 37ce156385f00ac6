"""Requests for completions, the children that their answers become, and ``children.jsonl``, a row for each child."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpo.util.files import append_rows, write_text
from vpo.util.stored import Fields, read_log

CHILDREN = "children.jsonl"
FIELDS: Fields = {
    **{"iteration": int, "completion": int, "place": int, "text": str | None, "tokens": int | None},
    **{"id": str | None, "parent": str | None, "code": str | None, "error": str | None},
    "metrics": dict[str, Any] | None,
}


@dataclass(frozen=True)
class CompletionRequest:
    """A completion to request.

    Attributes:
        number: among all completions.
        iterations: of its children.
        island: for the children.
        parent: of all children, a program of OpenEvolve.
        prompt: system and user message.
    """

    number: int
    iterations: range
    island: int
    parent: Any
    prompt: dict[str, Any]


@dataclass(frozen=True)
class Child:
    """One answer of a completion.

    Attributes:
        iteration: its number.
        request: of the completion that it is part of.
        position: in the completion, from 0.
        text: of the whole completion; None where the request failed.
        tokens: of the whole completion; None where the endpoint does not count them.
        program: of OpenEvolve, with its metrics.
        error: why there is no program.
    """

    iteration: int
    request: CompletionRequest
    position: int
    text: str | None
    tokens: int | None
    program: Any = None
    error: str | None = None

    def row(self) -> dict[str, Any]:
        """For children.jsonl: text and tokens of a completion stand in the row of its first child."""
        first = self.position == 0
        return {
            "iteration": self.iteration,
            "completion": self.request.number,
            "place": self.position,
            "text": self.text if first else None,
            "tokens": self.tokens if first else 0,
            "id": self.program.id if self.program else None,
            "parent": self.request.parent.id,
            "code": self.program.code if self.program else None,
            "metrics": (self.program.metrics or None) if self.program else None,
            "error": self.error,
        }


def read_children(output: Path) -> list[dict[str, Any]]:
    """The rows of all children, by iteration."""
    return sorted(read_log(output / CHILDREN, FIELDS), key=lambda row: int(row["iteration"]))


def add_children(output: Path, children: Sequence[dict[str, Any]]) -> None:
    """Append the rows of new children."""
    append_rows(output / CHILDREN, children)


def drop_children_after(output: Path, iteration: int) -> None:
    """Remove the children of later iterations, which are not in the checkpoint and will be made again."""
    if (output / CHILDREN).is_file():
        rows = [row for row in read_children(output) if row["iteration"] <= iteration]
        write_text(output / CHILDREN, "".join(f"{json.dumps(row)}\n" for row in rows))
