"""A task out of any prompts, scored by a vector reward."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from vpo.rewards.rows import parse_messages
from vpo.rewards.scorer import Sample
from vpo.rewards.vector import VectorReward
from vpo.tasks.data import check_split, take, unique
from vpo.tasks.task import Message, Objective, Task, Vector
from vpo.util.errors import InputError
from vpo.util.row_files import read_rows

TEST_EVERY = 10  # without a column `split`, every tenth prompt is a test prompt
SPLITS = ("train", "test", "all")


@dataclass(frozen=True)
class Prompt:
    """A prompt as chat messages, and all columns of its row."""

    id: str
    messages: tuple[Message, ...]
    row: Mapping[str, Any] = field(default_factory=dict)


def read_prompts(prompts: str | Path | Sequence[Mapping[str, Any]], *, id_prefix: str = "") -> list[Prompt]:
    """Prompts of a file or of rows: `prompt`, text or messages, optionally `id`, and further columns.

    Args:
        prompts: the file or the rows.
        id_prefix: prompts without an id get this prefix and their line number.
    """
    if isinstance(prompts, str | Path):
        rows: list[tuple[str, int, Any]] = [(f"{prompts}:{line}", line, row) for line, row in read_rows(Path(prompts))]
    else:
        rows = [(f"row {number}", number, row) for number, row in enumerate(prompts, start=1)]
    return [_prompt(row, source, f"{id_prefix}{number}") for source, number, row in rows]


def _prompt(row: Any, source: str, default_id: str) -> Prompt:
    if not isinstance(row, Mapping):
        raise InputError(f"{source}: a row must be an object with a prompt")
    messages = parse_messages(row.get("prompt"), source)
    return Prompt(default_id if row.get("id") is None else str(row["id"]), tuple(messages), dict(row))


class PromptTask(Task[Prompt]):
    """Prompts whose answers are scored by a vector reward.

    Split `test` is the test prompts, if there are any; else the rows whose column `split` is "test"; else, where no
    row has that column, every tenth row. `train` is the others, `all` is everything.
    """

    name: ClassVar[str] = "prompts"
    summary: ClassVar[str] = "any prompts, scored by rewards of your own"
    objectives: ClassVar[tuple[Objective, ...]] = ()  # of an instance: those of its reward
    weights: ClassVar[Vector] = ()

    def __init__(self, reward: VectorReward, prompts: Sequence[Prompt], test: Sequence[Prompt] | None = None) -> None:
        """Take the reward, the prompts, and the test prompts where they are apart."""
        self.reward = reward
        self.splits = _splits(prompts, test)
        for prompt in self.splits["all"]:
            for column, name in reward.columns.items():
                if prompt.row.get(column) is None:
                    raise InputError(f"reward {name} needs the column {column!r}, which prompt {prompt.id!r} lacks")
        meanings = {name: _meaning(each) for each in reward.described()["scorers"] for name in each["objectives"]}
        self.objectives = tuple(Objective(name, meanings[name]) for name in reward.names)  # type: ignore[misc]  # per instance
        self.weights = reward.weights  # type: ignore[misc]  # per instance

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[Prompt]:
        """Prompts of a split, or the first `count` of them."""
        check_split(split, SPLITS, self.name)
        return take(unique(self.splits[split], self.name), count)

    def question(self, problem: Prompt) -> list[Message]:
        """The prompt as it stands in the data."""
        return list(problem.messages)

    def score(self, problem: Prompt, answer: str) -> Vector | None:
        """Scores of one answer, as a set of one."""
        return self.score_sets([problem], [[answer]])[0][0]

    def score_all(self, problems: Sequence[Prompt], answers: Sequence[str | None]) -> list[Vector | None]:
        """Scores of answers, each as a set of one."""
        return [vector for (vector,) in self.score_sets(problems, [[answer] for answer in answers])]

    def score_sets(self, problems: Sequence[Prompt], sets: Sequence[Sequence[str | None]]) -> list[list[Vector | None]]:
        """Scores of sets in one call of the reward, so that a scorer sees the other answers of a set too."""
        vectors: list[list[Vector | None]] = [[(0.0,) * len(self.names)] * len(answers) for answers in sets]
        samples, positions = [], []
        for number, (problem, answers) in enumerate(zip(problems, sets, strict=True)):
            for index, answer in enumerate(answers):
                if answer is not None:
                    others = tuple(other for i, other in enumerate(answers) if i != index and other is not None)
                    samples.append(Sample(problem.id, problem.messages, answer, problem.row, others, index))
                    positions.append((number, index))
        for (number, index), vector in zip(positions, self.reward.score(samples), strict=True):
            vectors[number][index] = vector
        return vectors

    def probe(self) -> None:
        """Raise where a service that a reward needs does not answer."""
        self.reward.probe()

    def why_unknown(self) -> str:
        """Why rewards have abstained so far."""
        return self.reward.why_unknown()

    def described(self) -> dict[str, Any]:
        """The reward as JSON data."""
        return self.reward.described()

    def counted(self) -> dict[str, tuple[float, int]]:
        """Counts of the reward for the log: see `VectorReward.counted`."""
        return self.reward.counted()


def _splits(prompts: Sequence[Prompt], test: Sequence[Prompt] | None) -> dict[str, list[Prompt]]:
    """Prompts by split, by the rule of `PromptTask`."""
    if test is not None:
        parts = {"train": list(prompts), "test": list(test)}
    elif any("split" in prompt.row for prompt in prompts):
        parts = {name: [prompt for prompt in prompts if prompt.row.get("split") == name] for name in ("train", "test")}
    else:
        parts = {
            "train": [prompt for number, prompt in enumerate(prompts, start=1) if number % TEST_EVERY],
            "test": list(prompts[TEST_EVERY - 1 :: TEST_EVERY]),
        }
    return {**parts, "all": [*prompts, *(test or [])]}


def _meaning(described: Mapping[str, Any]) -> str:
    """One line on a scorer: its kind, and its model, function or measure."""
    detail = described.get("model") or described.get("function") or described.get("measure") or ""
    return f"{described.get('kind', 'reward')} {detail}".strip()
