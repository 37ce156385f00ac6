"""The protocol of a scorer: for each answer, a number in [0, 1] per objective, or None where it abstains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from vpo.tasks import Message

# A number per objective of a scorer; None where it abstains, which is never the same as 0.
Scores: TypeAlias = tuple[float | None, ...]


@dataclass(frozen=True)
class Sample:
    """An answer to score, with its prompt.

    Attributes:
        problem: id of the problem.
        messages: its prompt as chat messages, without the instruction on how many answers to write.
        answer: the text.
        row: columns of the data set, such as a reference.
        others: the other answers of its set, in their order.
        index: of the answer in its set, from 0.
    """

    problem: str
    messages: Sequence[Message]
    answer: str
    row: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    index: int = 0


@runtime_checkable
class Scorer(Protocol):
    """Scores answers in batches, on one or more objectives.

    A scorer may also have: `columns`, the columns of a data set that it needs; `counted()`, how many scores its
    calibration clipped; `spent()`, counts for the log; `call_limit`, seconds after which `score` returns what it has;
    `probe()`, called before training, which raises `InputError` where a service that it needs does not answer;
    `why_unknown()`, the reasons of its failures so far.

    Attributes:
        names: of its objectives.
    """

    names: tuple[str, ...]

    def score(self, samples: Sequence[Sample]) -> list[Scores]:
        """Scores of each sample, in their order."""

    def described(self) -> dict[str, Any]:
        """Everything that its scores depend on, as JSON data; a run is not resumed where it differs."""
