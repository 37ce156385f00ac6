"""eureqa: chains of masked entities (arXiv 2404.01266), an objective per entity."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from vpo.tasks.data import Published, check_split, items, read_data, shuffled, take, unique
from vpo.tasks.forms import Example
from vpo.tasks.reading import Native
from vpo.tasks.task import Message, Objective, Task, Vector
from vpo.tasks.text import normalise, without_punctuation
from vpo.util.errors import InputError

LETTERS = "ABCDE"
PUBLISHED = Published(
    title="EUREQA, questions_normal_5 and questions_hard_5",
    hub="vincentleebang/EUREQA",
    files={"normal": ("normal_5",), "hard": ("hard_5",)},
    hub_splits={"normal": "questions_normal_5", "hard": "questions_hard_5"},
)
LONGEST = 100_000  # characters of an answer; a longer one is not parsed
# A list marker, and marks of emphasis around the letter, are skipped.
_MARKS = " \t*_`"
_START = rf"^[{_MARKS}]*+(?:(?:[-+•]|[0-9]{{1,3}}[.)])[{_MARKS}]*+)?+(?:entity[ _])?+([A-E])"
_LINE = re.compile(rf"{_START}[{_MARKS}]*+[:=]([^\n]*+)$", re.MULTILINE | re.IGNORECASE)
# A) name, A. name, A - name: prose may begin so, too (C. S. Lewis).
_OTHER_LINE = re.compile(rf"{_START}[*_`]*+(?:[).]|[ \t]++[-–—])[*_`]*+[ \t]++([^\n]*+)$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class EureqaProblem:
    """A narrative of masked entities.

    Attributes:
        id: the level and the index of the row.
        narrative: the sentences, with masks for entities.
        masks: the mask of each hidden entity, first to last; at most five.
        entities: their names.
    """

    id: str
    narrative: str
    masks: tuple[str, ...]
    entities: tuple[str, ...]


class EureqaTask(Task[EureqaProblem]):
    """Narratives of masked entities; an answer names them, a line each, such as ``A: Marie Curie``.

    entity_X is 1 if the name is the gold one after normalising case, articles, punctuation and underscores; entities
    that a narrative does not have are 1. An answer that names nothing scores 0 everywhere. A line may be an item of a
    list, ``- A: …`` or ``1. A: …``, and its letter in bold, italics or backticks, ``**A**: …``.
    """

    name: ClassVar[str] = "eureqa"
    summary: ClassVar[str] = "chains of masked entities: name all five"
    objectives: ClassVar[tuple[Objective, ...]] = tuple(
        Objective(f"entity_{letter}", f"entity {letter} is named correctly") for letter in LETTERS
    )
    weights: ClassVar[Vector] = (0.2,) * 5
    wraps_single: ClassVar[bool] = False
    example: ClassVar[Example | None] = Example(
        "a text with three masked entities",
        (
            "A: Marie Curie\nB: University of Paris\nC: Warsaw",
            "A: Irène Joliot-Curie\nB: University of Paris\nC: Paris",
            "A: Marie Curie\nB: Sorbonne\nC: Poland",
        ),
    )

    def __init__(self, *, data: str | None = None) -> None:
        """Make the task.

        Args:
            data: file or folder of EUREQA, or "hub".
        """
        self.data = data

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[EureqaProblem]:
        """The published splits: "train" is all of normal_5 and half of hard_5, "test" the other half."""
        check_split(split, ("train", "test"), self.name)
        if split == "train" and self.data is not None and Path(self.data).is_file():
            raise InputError(f"{self.data}: the train split of eureqa has two files: pass their folder")
        hard = shuffled(self._part("hard"), seed=0)
        half = len(hard) // 2
        problems = [*self._part("normal"), *hard[:half]] if split == "train" else hard[half:]
        return take(unique(problems, self.name), count)

    def _part(self, part: str) -> list[EureqaProblem]:
        rows = read_data(self.name, PUBLISHED, self.data, part)
        return [_problem(row, f"{part}-{number}", where) for number, (where, row) in enumerate(rows)]

    def question(self, problem: EureqaProblem) -> list[Message]:
        """The narrative and the form of an answer."""
        listed = "\n".join(
            f"{letter}: the name of {mask}" for letter, mask in zip(LETTERS, problem.masks, strict=False)
        )
        content = (
            "In this text, names of entities are masked. Each follows from what is said about it.\n\n"
            f"{problem.narrative}\n\nName the masked entities, one a line:\n{listed}"
        )
        return [{"role": "user", "content": content}]

    def score(self, problem: EureqaProblem, answer: str) -> Vector:
        """1 for each entity that is named correctly."""
        named = parse_names(answer)
        right = [
            float(named.get(letter) == normal_name(entity))
            for letter, entity in zip(LETTERS, problem.entities, strict=False)
        ]
        if not any(right) and not any(normalise(name) for name in named.values()):
            return (0.0,) * len(self.objectives)
        return (*right, *[1.0] * (len(self.objectives) - len(right)))

    def native(self, text: str, answers: int) -> Sequence[Native]:
        """Lists of names, each of which begins where a letter does not come after the one before it.

        A single answer is the last list of those with the most names.
        """
        lists: list[list[re.Match[str]]] = []
        for match in _lines(text):
            if not lists or match[1].upper() <= lists[-1][-1][1].upper():
                lists.append([])
            lists[-1].append(match)
        if answers == 1:
            most = max(map(len, lists), default=0)
            lists = [each for each in lists if len(each) == most]
        return [Native(each[0].start(), each[-1].end(), "\n".join(line.group() for line in each)) for each in lists]

    def normal_form(self, answer: str) -> Hashable:
        """The normalised names."""
        return tuple(sorted(parse_names(answer).items()))

    def gold(self, problem: EureqaProblem) -> str:
        """The gold names."""
        return "\n".join(f"{letter}: {name}" for letter, name in zip(LETTERS, problem.entities, strict=False))


def normal_name(name: str) -> str:
    """A name as names are compared; underscores are spaces, as in Wikipedia's URLs.

    Of a name that is nothing but articles and punctuation, such as The The or !!!, these are kept.
    """
    spaced = name.replace("_", " ")
    return normalise(spaced) or without_punctuation(spaced) or " ".join(spaced.lower().split())


def parse_names(answer: str) -> dict[str, str]:
    """Letter → normalised name; the first where a letter is named twice.

    One of nothing but articles and punctuation counts where there is no other.
    """
    if len(answer) > LONGEST:
        return {}
    named: dict[str, str] = {}
    for line in _lines(answer):
        letter, name = line.groups()
        key, normal = letter.upper(), normal_name(name.strip(f"{_MARKS}\r"))
        if normal and not normalise(named.get(key, "")) and (key not in named or normalise(normal)):
            named[key] = normal
    return named


def _lines(text: str) -> list[re.Match[str]]:
    """The lines that name an entity: those with a colon or equals sign, where there are any."""
    return list(_LINE.finditer(text)) or list(_OTHER_LINE.finditer(text))


def _problem(row: Mapping[str, Any], name: str, where: str) -> EureqaProblem:
    question = [row["question"]] if isinstance(row.get("question"), str) else items(row, "question", str, where)
    masks, entities = items(row, "entity_masks", str, where), items(row, "entities", str, where)
    if len(masks) != len(entities) or not 2 <= len(masks) <= len(LETTERS) + 1:
        raise InputError(f"{where}: entity_masks and entities must both have 2 to {len(LETTERS) + 1} texts")
    return EureqaProblem(
        id=name,
        narrative=" ".join(question),
        masks=tuple(masks[:-1]),  # the last entity is shown
        entities=tuple(entities[:-1]),
    )
