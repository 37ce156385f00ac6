"""What a scorer is: answers in, a number in [0, 1] for each of its objectives out, or none where it abstains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from vpo.tasks import Message

# A number for each objective of a scorer; None where it abstains, which is never a zero.
Scores: TypeAlias = tuple[float | None, ...]


@dataclass(frozen=True)
class Item:
    """An answer to score.

    Attributes:
        problem: the name of the problem.
        messages: its prompt, as chat messages, without a word on how many answers to give.
        answer: the text.
        row: the columns of the data set, such as a reference.
        others: the other answers of its set, in their order.
        place: of the answer in its set.
    """

    problem: str
    messages: Sequence[Message]
    answer: str
    row: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    place: int = 0


@runtime_checkable
class Scorer(Protocol):
    """Scores answers, many at a time.

    Attributes:
        names: of its objectives.
    """

    names: tuple[str, ...]

    def score(self, items: Sequence[Item]) -> list[Scores]:
        """Return the scores of each item."""

    def described(self) -> dict[str, Any]:
        """Return what it is and how it is calibrated, as plain data, to be saved with a run."""
