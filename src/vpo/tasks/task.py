"""The base class of tasks: objectives, problems, prompts that request m answers, and a score vector for each answer."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np

from vpo.core.checks import as_integer, check_weights
from vpo.tasks import answers as answer_format
from vpo.tasks.fences import OPAQUE
from vpo.tasks.forms import TAGS, Example, Form, find_sections, instruction, labelled
from vpo.tasks.hooks import PictureHooks, SearchHooks
from vpo.tasks.reading import Native, Reading, Section, read_natives, read_sections
from vpo.tasks.thoughts import blank_thoughts, prompted_end
from vpo.tasks.validation import Flaw, validate
from vpo.util.errors import InputError

Message: TypeAlias = dict[str, str]
Vector: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class Objective:
    """One component of a reward vector: its name and its meaning, in one line."""

    name: str
    meaning: str


class Problem(Protocol):
    """What every problem has. Problems are frozen dataclasses of plain data."""

    @property
    def id(self) -> str:
        """Unique within a split."""


P = TypeVar("P", bound=Problem)


class Task(PictureHooks[P], SearchHooks[P], ABC):
    """A domain of problems whose answers are scored as vectors in [0, 1]^D, higher is better.

    A new task subclasses this, defines `name`, `summary`, `objectives` and `weights`, and implements `problems`,
    `question` and `score`. The keywords of its constructor are settings: `--set KEY=VALUE` on the command line.

    An answer that cannot be parsed scores zero everywhere; scoring never raises, whatever the text. A score that is
    unknown, since the scorer itself failed, is None: never zero.

    Attributes:
        name: as users type it.
        summary: one line for `vpo tasks`.
        objectives: the components of the reward vector.
        weights: w*, the weighting that is deployed and reported; sums to 1.
        ragged: whether problems differ in their number of objectives. Such a task overrides `names_of`, and w* is
            uniform over the objectives of each problem.
        unbounded: whether scores may be any numbers, as a search takes them; those outside of [0, 1] are unknown in
            training.
        example: an invented question with answers to it, for prompts that ask for several answers, or for one in tags.
        wraps_single: whether a single answer is requested in `<answer>` tags. False where the task has a form of its
            own, which `single` asks for, unless the question does.
        single: how a prompt asks for a single answer in the task's own form.
        answer_tokens: token budget of an answer, for a model that was not trained with another.
        files: settings that are files or folders.
        validation: the split of problems to choose settings and checkpoints on; None where there is none.
        form: of several answers; ``get(task, format=NAME)`` chooses another.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    objectives: ClassVar[tuple[Objective, ...]]
    weights: ClassVar[Vector]
    ragged: ClassVar[bool] = False
    unbounded: ClassVar[bool] = False
    example: ClassVar[Example | None] = None
    wraps_single: ClassVar[bool] = True
    single: ClassVar[str] = ""
    answer_tokens: int = 256
    files: ClassVar[tuple[str, ...]] = ("data",)
    validation: ClassVar[str | None] = None
    form: Form = TAGS

    # To implement

    @abstractmethod
    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[P]:
        """The problems of a split, or the first `count` of them."""

    @abstractmethod
    def question(self, problem: P) -> list[Message]:
        """The problem as chat messages, without the form and number of answers. The last message is the user's."""

    @abstractmethod
    def score(self, problem: P, answer: str) -> Vector | None:
        """The score of one answer on each objective of the problem, or None where it is unknown."""

    # To override where the default does not fit

    def set_question(self, problem: P) -> list[Message]:
        """The problem for prompts that ask for several answers. Override it where `question` has the form of one."""
        return self.question(problem)

    def example_for(self, problem: P) -> Example | None:
        """The example in prompts that ask for several answers. Override it where problems ask for different things."""
        return self.example

    def solved(self, vector: Sequence[float]) -> bool:
        """Whether an answer with these scores solves its problem: by default, all objectives are 1."""
        return all(score >= 1 - 1e-9 for score in vector)

    def names_of(self, problem: P) -> tuple[str, ...]:
        """The names of a problem's objectives: by default, all of the task's."""
        return self.names

    def score_all(self, problems: Sequence[P], answers: Sequence[str | None]) -> list[Vector | None]:
        """The score of each pair of problem and answer; a missing answer, None, scores zero.

        Override it where a batch is scored faster than one answer after another.
        """
        return [
            (0.0,) * len(self.names_of(problem)) if answer is None else self.score(problem, answer)
            for problem, answer in zip(problems, answers, strict=True)
        ]

    def score_sets(self, problems: Sequence[P], sets: Sequence[Sequence[str | None]]) -> list[list[Vector | None]]:
        """The scores of sets of answers, one set for each problem, all in one call of `score_all`.

        Override it where the score of an answer depends on the others of its set.
        """
        repeated = [problem for problem, answers in zip(problems, sets, strict=True) for _ in answers]
        vectors = iter(self.score_all(repeated, [answer for answers in sets for answer in answers]))
        return [list(islice(vectors, len(answers))) for answers in sets]

    def solved_all(
        self, problems: Sequence[P], answers: Sequence[str | None], vectors: Sequence[Vector | None]
    ) -> list[bool | None]:
        """Whether each answer, with these scores, solves its problem; None where that is unknown.

        Evaluation and search call it. Override it where more than the scores decides, such as tests that are held out
        from the reward.
        """
        return [None if vector is None else self.solved(vector) for vector in vectors]

    def normal_form(self, answer: str) -> Hashable:
        """Equal for answers that are duplicates; None for one that cannot be parsed. By default, the words."""
        return " ".join(answer.split())

    def read(self, completion: str, answers: int) -> Reading:
        """The m answers of a completion, which of them are in the form that was asked for, and their parts.

        Answers in tags count where a tag is there, tags without numbers in their order; else those in the task's own
        form, as `native` finds them; without any, those of a set after labels such as ``Answer 1:``. Tags in a thought
        that the prompt opened do not count where an answer in the task's own form comes after it, nor do tags without
        any text where one comes before them. A single answer may stand in ``<answer_1>``.
        """
        found = [self.sections(completion, answers)]
        if answers > 1:
            unnumbered = enumerate(answer_format.sections(completion, 1))
            found.append([each._replace(answer=index, strict=False) for index, each in unnumbered])
        else:
            found[0] = [each._replace(strict=each.strict and self.wraps_single) for each in found[0]]
            found.append(answer_format.numbered_single(completion))
        thought = prompted_end(completion, OPAQUE)
        tagged = next((each for each in found if each and each[-1].end > thought), [])
        natives: Sequence[Native] = []
        if all(each.text is None for each in tagged):
            end = answer_format.before_tags(completion, tagged) if tagged else len(completion)
            natives = self.native(blank_thoughts(completion, OPAQUE)[:end], answers)
        if not natives and not tagged and answers > 1:
            tagged = labelled(completion)
        if not natives and (tagged := tagged or next(filter(None, found), [])):
            reading = read_sections(tagged, len(completion), answers)
        else:
            natives = [each._replace(strict=each.strict and not self.wraps_single) for each in natives]
            reading = read_natives(natives, len(completion), answers)
        # What follows a tag that is mentioned, and never closed, may be anything.
        bare = [
            each if each is None or index == reading.unclosed else self.bare(each)
            for index, each in enumerate(reading.answers)
        ]
        return reading._replace(answers=bare)

    def bare(self, answer: str) -> str:
        """An answer without what is around it, where that can be told apart: `read` calls it. By default, as it is."""
        return answer

    def sections(self, completion: str, answers: int) -> list[Section]:
        """The answers that are in the form that was asked for or another one, see `find_sections`; one in its tags."""
        return answer_format.sections(completion, 1) if answers == 1 else find_sections(self.form, completion, answers)

    def native(self, text: str, answers: int) -> Sequence[Native]:
        """The answers of a text without tags, in their order, where they are in the form that the task knows.

        A completion of m answers has the first m of them; one that should have a single answer has the last. By default
        the whole text is a single answer, and there is none of a set. Thoughts are spaces in the text.
        """
        whole = text.strip()
        return [Native(0, len(text), whole)] if whole and answers == 1 else []

    def described(self) -> dict[str, Any]:
        """What scores depend on besides the settings, as plain data. It is saved with a run, and must not change."""
        return {}

    def counted(self) -> dict[str, tuple[float, int]]:
        """Metrics of the scoring since the last call: name → total and count.

        The mean is logged, or the total where the count is 0.
        """
        return {}

    def prepare(self, problems: Sequence[P]) -> None:
        """Compute what scoring these problems needs beyond what `problems` reads, for all of them together.

        Called before training, evaluation and search. Override it where that takes long: `problems` alone, and the
        prompts, should not have to wait for it. Scoring must work without it.
        """

    def probe(self) -> None:
        """Raise `InputError` where a service that scoring needs does not answer. Called before training."""

    def why_unknown(self) -> str:
        """Why scores were unknown so far, in a few words, for messages; empty where nothing is known of it."""
        return ""

    def gold(self, problem: P) -> str | None:
        """A best answer, or None where the task knows none."""
        return None

    def expected(self, problem: P) -> Vector:
        """The scores of the gold answer."""
        return (1.0,) * len(self.names_of(problem))

    def best(self, problem: P, target: Sequence[float] | None = None) -> float | None:
        """The largest w·r of any answer, under w* or another target, or None where it is unknown."""
        return None

    def demonstrations(self, problem: P, count: int, random: Random) -> list[str]:
        """Answers to imitate: by default, `count` copies of the gold answer."""
        gold = self.gold(problem)
        if gold is None:
            raise InputError(f"task {self.name} has no demonstrations: problem {problem.id!r} has no gold answer")
        return [gold] * count

    def in_set(self, problem: P, answer: str) -> str:
        """An answer that was written alone, as it stands in a set: without the words around it."""
        return answer

    # Derived from the above

    def __init_subclass__(cls) -> None:
        """Refuse a task whose answers and parts would disagree."""
        super().__init_subclass__()
        for name in ("parse", "parts"):
            if name in vars(cls):
                raise InputError(f"{cls.__name__}.{name}: override read, which parse and parts are derived from")

    def parse(self, completion: str, answers: int) -> list[str | None]:
        """The m answers of a completion, None for a missing one."""
        return self.read(completion, answers).answers

    def parts(self, completion: str, answers: int) -> list[tuple[int, int]]:
        """Where the part of each answer of a set ends, and its index."""
        return self.read(completion, answers).parts

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the objectives."""
        return tuple(objective.name for objective in self.objectives)

    @property
    def target(self) -> dict[str, float] | None:
        """w* by name; None, which means uniform, where problems differ in their objectives."""
        return None if self.ragged else dict(zip(self.names, self.weights, strict=True))

    def ask(
        self, problem: P, answers: int = 1, target: Sequence[float] | None = None, *, review: str = ""
    ) -> list[Message]:
        """The prompt, as chat messages, that requests a number of answers.

        Args:
            problem: of this task.
            answers: m, the number of answers in one completion.
            target: weights of the objectives to write into the prompt, for goal-conditioned policies.
            review: of earlier answers, with the request to repair them; it stands before the form of answers.
        """
        as_integer(answers, "answers", 1)
        *before, last = self.question(problem) if answers == 1 else self.set_question(problem)
        goal = "" if target is None else self.goal(problem, target)
        single = self.request(1) if answers == 1 else ""
        content = "\n\n".join(filter(None, [last["content"], review, goal, single]))
        messages = [*before, {**last, "content": content}]
        return messages if answers == 1 else self.form.ask(messages, answers, self.example_for(problem))

    def request(self, answers: int) -> str:
        """The text of a prompt that asks for so many answers, and shows their form; empty where the question does."""
        if answers > 1:
            return self.form.request(answers, self.example)
        return instruction(1, self.example) if self.wraps_single else self.single

    def goal(self, problem: P, target: Sequence[float]) -> str:
        """The sentence that states a weighting of a problem's objectives."""
        names = self.names_of(problem)
        if len(target) != len(names):
            raise InputError(f"target must hold {len(names)} weights, not {len(target)}")
        check_weights(np.asarray(target, dtype=np.float64), "target")
        shares = ", ".join(f"{name} {weight:.0%}" for name, weight in zip(names, target, strict=True))
        return f"What counts in this answer: {shares}."

    def validate(self, problems: Iterable[P]) -> Iterator[Flaw | None]:
        """Grade the gold answer of each problem, without a model: None where it scores as it should."""
        return validate(self, problems)


def scoring_note(task: Task[Any]) -> dict[str, Any]:
    """What a run records of how its task scores, under `scoring`; empty where the settings say all."""
    described = task.described()
    return {"scoring": described} if described else {}
