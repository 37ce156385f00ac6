"""A task out of any prompts: what scores is a vector of rewards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from vpo.rewards.rows import messages_of
from vpo.rewards.scorer import Item
from vpo.rewards.vector import Vector
from vpo.tasks.data import unique
from vpo.tasks.task import Message, Objective, Task, check_split, take
from vpo.tasks.task import Vector as Numbers
from vpo.util.errors import InputError
from vpo.util.row_files import read_rows

HELD_OUT = 10  # where nothing else is said, each tenth prompt is for testing
SPLITS = ("train", "test", "all")


@dataclass(frozen=True)
class Prompt:
    """A prompt: chat messages, and the columns of its row."""

    id: str
    messages: tuple[Message, ...]
    row: Mapping[str, Any] = field(default_factory=dict)


def read_prompts(prompts: str | Path | Sequence[Mapping[str, Any]], *, start: str = "") -> list[Prompt]:
    """Return the prompts of a file or of rows: `prompt`, a text or messages, optionally `id`, and further columns.

    Args:
        prompts: the file or the rows.
        start: of the ids of those that have none of their own, before their number.
    """
    if isinstance(prompts, str | Path):
        placed: list[tuple[str, str, Any]] = [
            (f"{prompts}:{line}", str(line), row) for line, row in read_rows(Path(prompts))
        ]
    else:
        placed = [(f"row {number}", str(number), row) for number, row in enumerate(prompts, start=1)]
    found = []
    for place, number, row in placed:
        if not isinstance(row, Mapping):
            raise InputError(f"{place}: a row must be an object with a prompt")
        own = row.get("id")
        name = f"{start}{number}" if own is None else str(own)
        found.append(Prompt(name, tuple(messages_of(row.get("prompt"), place)), dict(row)))
    return found


class PromptTask(Task[Prompt]):
    """Prompts whose answers a vector of rewards scores.

    Splits: `test` is a file of its own where one is given; else the rows whose column `split` says so; else, where no
    row has that column, each tenth row. `train` are the others, `all` is everything.
    """

    name: ClassVar[str] = "prompts"
    summary: ClassVar[str] = "any prompts, scored by rewards of your own"
    objectives: ClassVar[tuple[Objective, ...]] = ()  # those of the rewards, known once there is a task
    weights: ClassVar[Numbers] = ()

    def __init__(self, vector: Vector, prompts: Sequence[Prompt], test: Sequence[Prompt] | None = None) -> None:
        """Take the rewards, the prompts, and those of the test split where they are apart."""
        self.vector = vector
        self.splits = _splits(prompts, test)
        for prompt in self.splits["all"]:
            for column, name in vector.columns.items():
                if prompt.row.get(column) is None:
                    raise InputError(f"reward {name} needs the column {column!r}, which prompt {prompt.id!r} lacks")
        meanings = {name: _meaning(each) for each in vector.described()["scorers"] for name in each["objectives"]}
        self.objectives = tuple(Objective(name, meanings[name]) for name in vector.names)  # type: ignore[misc]  # its settings say which
        self.weights = vector.weights  # type: ignore[misc]

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[Prompt]:
        """Return the prompts of a split."""
        check_split(split, SPLITS, self.name)
        return take(unique(self.splits[split], self.name), count)

    def question(self, problem: Prompt) -> list[Message]:
        """Return the prompt."""
        return list(problem.messages)

    def score(self, problem: Prompt, answer: str) -> Numbers | None:
        """Return the score of one answer, of which no set is known."""
        return self.score_sets([problem], [[answer]])[0][0]

    def score_all(self, problems: Sequence[Prompt], answers: Sequence[str | None]) -> list[Numbers | None]:
        """Return the scores of answers, of which no sets are known."""
        return [vector for (vector,) in self.score_sets(problems, [[answer] for answer in answers])]

    def score_sets(
        self, problems: Sequence[Prompt], sets: Sequence[Sequence[str | None]]
    ) -> list[list[Numbers | None]]:
        """Return the scores of sets, all answers that are there in one go, each with the others of its set."""
        vectors: list[list[Numbers | None]] = [[(0.0,) * len(self.names)] * len(answers) for answers in sets]
        places, items = [], []
        for which, (problem, answers) in enumerate(zip(problems, sets, strict=True)):
            for place, answer in enumerate(answers):
                if answer is not None:
                    others = tuple(each for at, each in enumerate(answers) if at != place and each is not None)
                    items.append(Item(problem.id, problem.messages, answer, problem.row, others, place))
                    places.append((which, place))
        for (which, place), vector in zip(places, self.vector.score(items), strict=True):
            vectors[which][place] = vector
        return vectors

    def described(self) -> dict[str, Any]:
        """Return what the rewards are."""
        return self.vector.described()

    def counted(self) -> dict[str, tuple[float, int]]:
        """Return how often each reward abstained, and how much was cut off."""
        return self.vector.counted()


def _splits(prompts: Sequence[Prompt], test: Sequence[Prompt] | None) -> dict[str, list[Prompt]]:
    """Return the prompts of each split, by the rule of the class."""
    if test is not None:
        parts = {"train": list(prompts), "test": list(test)}
    elif any("split" in prompt.row for prompt in prompts):
        parts = {name: [prompt for prompt in prompts if prompt.row.get("split") == name] for name in ("train", "test")}
    else:
        held = set(range(HELD_OUT - 1, len(prompts), HELD_OUT))
        parts = {
            "train": [prompt for place, prompt in enumerate(prompts) if place not in held],
            "test": [prompt for place, prompt in enumerate(prompts) if place in held],
        }
    return {**parts, "all": [*prompts, *(test or [])]}


def _meaning(described: Mapping[str, Any]) -> str:
    """Return a line on a scorer: its kind, and what it is made of."""
    more = described.get("model") or described.get("function") or described.get("measure") or ""
    return f"{described.get('kind', 'reward')} {more}".strip()
