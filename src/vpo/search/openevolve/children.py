"""Requests for completions, the children that their answers become, and ``children.jsonl``, a row for each child."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vpo.util.files import append_rows, write_text
from vpo.util.stored import Fields, read_log

CHILDREN = "children.jsonl"
UNSCORED = "vpo_unscored"  # a metric of our own evaluators: the reason why there is no score
FIELDS: Fields = {
    **{"iteration": int, "completion": int, "place": int, "of": int, "island": int},
    **{"text": str | None, "tokens": int | None},
    **{"id": str | None, "parent": str | None, "code": str | None, "error": str | None},
    **{"changes": str | None, "description": str | None},
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
        program: of OpenEvolve; None where the answer gives none.
        artifacts: of its evaluation.
        error: why it is not in the database: the reason, after a colon the detail.
    """

    iteration: int
    request: CompletionRequest
    position: int
    text: str | None
    tokens: int | None
    program: Any = None
    artifacts: dict[str, Any] = field(default_factory=dict)
    error: str | None = None

    def row(self) -> dict[str, Any]:
        """For children.jsonl: text and tokens of a completion stand in the row of its first child."""
        first = self.position == 0
        scored = self.program is not None and self.error is None
        return {
            "iteration": self.iteration,
            "completion": self.request.number,
            "place": self.position,
            "of": len(self.request.iterations),
            "island": self.request.island,
            "text": self.text if first else None,
            "tokens": self.tokens if first else 0,
            "id": self.program.id if scored else None,
            "parent": self.request.parent.id,
            "code": self.program.code if self.program else None,
            "changes": self.program.metadata["changes"] if self.program else None,
            "description": self.program.changes_description if self.program else None,
            "metrics": self.program.metrics if scored else None,
            "error": self.error,
        }


def read_children(output: Path) -> list[dict[str, Any]]:
    """The rows of all children, by iteration."""
    return sorted(read_log(output / CHILDREN, FIELDS), key=lambda row: int(row["iteration"]))


def add_children(output: Path, children: Sequence[dict[str, Any]]) -> None:
    """Append the rows of new children."""
    append_rows(output / CHILDREN, children)


def drop_incomplete(output: Path) -> None:
    """Remove the children of a completion whose rows were not all written: it will be requested again."""
    rows = read_children(output)
    counts = Counter(row["completion"] for row in rows)
    whole = [row for row in rows if counts[row["completion"]] == row["of"]]
    if (output / CHILDREN).is_file():  # also without an incomplete last line, to which rows would be appended
        write_text(output / CHILDREN, "".join(f"{json.dumps(row)}\n" for row in whole))


def lost_children(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """How many children did not get into the database, by reason."""
    return Counter(str(row["error"]).partition(":")[0] for row in rows if row["error"])
