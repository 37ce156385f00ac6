"""A problem of toolrl, and the tool calls that solve it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vpo.tasks.task import Message


@dataclass(frozen=True)
class Call:
    """A call of a tool.

    Attributes:
        name: of the tool, None for a call that could not be parsed.
        parameters: argument → value.
        accepted: for arguments with several right values, the others.
        optional: for arguments that may be omitted, their right values.
    """

    name: str | None
    parameters: Mapping[str, Any]
    accepted: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    optional: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolProblem:
    """A request to a model that has tools.

    Attributes:
        id: as in the data set.
        messages: the tools and the dialogue, as chat messages.
        calls: the gold calls; none where the model should answer in words.
        gold: the whole text of a gold answer.
    """

    id: str
    messages: tuple[Message, ...]
    calls: tuple[Call, ...]
    gold: str
