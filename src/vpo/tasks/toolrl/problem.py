"""Problems of toolrl: a request, and the calls that answer it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vpo.tasks.task import Message


@dataclass(frozen=True)
class Argument:
    """An argument of a gold call of BFCL, which may have several right values.

    Attributes:
        choices: the right values as BFCL lists them: "" where the argument may be omitted, and an object with a list of
            right values for each key.
        kind: the type that the tool declares, as BFCL names it; None without one.
        items: that of the items of a list.
    """

    choices: Sequence[Any]
    kind: str | None = None
    items: str | None = None


@dataclass(frozen=True)
class Call:
    """A call of a tool.

    Attributes:
        name: of the tool, None for a call that could not be parsed.
        parameters: argument → value.
        arguments: for a gold call of BFCL, all arguments that it may have; those without a value in `parameters` are
            optional.
    """

    name: str | None
    parameters: Mapping[str, Any]
    arguments: Mapping[str, Argument] = field(default_factory=dict)

    @property
    def optional(self) -> frozenset[str]:
        """The arguments that may be omitted."""
        return frozenset(self.arguments.keys() - self.parameters.keys())


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
