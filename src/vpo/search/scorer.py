"""What a completion is worth: its answers are cut out, scored by the task, and valued by the goal of the search."""

import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from vpo.search.goals import Goal, goals_of
from vpo.tasks import Task, Vector, get
from vpo.util.files import storable
from vpo.util.grouping import group_by

T = TypeVar("T")
R = TypeVar("R")

MISSING = "the completion has no such answer"
UNKNOWN = "its score cannot be known"


@dataclass(frozen=True)
class ScoringRequest:
    """A generation to score.

    Attributes:
        number: of the generation; its result has the same.
        problem: id of the problem.
        goal: name of the goal.
        text: the completion, or a whole answer.
        answers: how many the completion was asked for; 0 where `text` is a whole answer.
        known: how many of them stood in the prefix of the completion, and are not scored.
        count: how many after those are scored; None for all.
        parent: the answer that its prompt showed, which an answer may be changes to.
    """

    number: int
    problem: str
    goal: str
    text: str
    answers: int
    known: int = 0
    count: int | None = None
    parent: str | None = None


@dataclass(frozen=True)
class ScoredAnswer:
    """One answer with its scores, or with the reason why it has none.

    Attributes:
        answer: its text; None where it is missing.
        form: the normal form, equal for answers that are the same; None for an answer that cannot be read.
        scores: one for each objective; None where it was not scored.
        value: by the goal; 0 where it was not scored.
        solved: whether the goal is reached.
        failure: why it was not scored.
        feedback: what it got wrong, where the task says so.
    """

    answer: str | None
    form: str | None = None
    scores: tuple[float, ...] | None = None
    value: float = 0.0
    solved: bool = False
    failure: str | None = None
    feedback: str = ""


@dataclass(frozen=True)
class ScoredGeneration:
    """The new answers of a generation, scored; or why the generation as a whole could not be scored."""

    number: int
    answers: tuple[ScoredAnswer, ...] = ()
    failure: str | None = None


class GoalScorer:
    """Scores generations, by a task, its problems by id and the goals by name.

    Whatever the code of a user raises becomes the failure of an answer, or of a generation that cannot be parsed.

    Attributes:
        in_batches: whether the task scores many answers in one call; if so, those of many generations are.
    """

    def __init__(self, task: Task[Any], problems: Mapping[str, Any], goals: Mapping[str, Goal]) -> None:
        """Take the task, its problems by id and the goals by name."""
        self.task, self.problems, self.goals = task, problems, goals
        self.in_batches = type(task).score_all is not Task.score_all

    def score(self, requests: Sequence[ScoringRequest]) -> list[ScoredGeneration]:
        """The results of generations, all of whose answers are scored together."""
        read = [self._read(request) for request in requests]
        answers = [
            _Answer(self.problems[request.problem], self.goals[request.goal], each)
            for request, generation in zip(requests, read, strict=True)
            for each in (() if isinstance(generation, str) else generation)
            if isinstance(each, str)
        ]
        scored = iter(self._score_answers(answers))
        return [
            ScoredGeneration(request.number, failure=generation)
            if isinstance(generation, str)
            else ScoredGeneration(
                request.number, tuple(next(scored) if isinstance(each, str) else each for each in generation)
            )
            for request, generation in zip(requests, read, strict=True)
        ]

    def _read(self, request: ScoringRequest) -> list[str | ScoredAnswer] | str:
        """The whole answers of a generation, and results for those that it lacks; or why it cannot be parsed."""
        try:
            answers = [request.text] if request.answers == 0 else self.task.parse(request.text, request.answers)
        except (Exception, SystemExit) as error:
            return _message(error)
        return [self._resolve(request, answer) for answer in answers[request.known :][: request.count]]

    def _resolve(self, request: ScoringRequest, answer: str | None) -> str | ScoredAnswer:
        """The whole answer that an answer stands for, or the result of one that stands for none."""
        if answer is None:
            return ScoredAnswer(None, failure=MISSING)
        answer = storable(answer)
        try:
            problem = self.problems[request.problem]
            if request.answers == 0:
                return self.task.whole(problem, answer)
            return self.task.resolve(problem, answer, request.parent)
        except ValueError as error:
            return ScoredAnswer(answer, failure=str(error))
        except (Exception, SystemExit) as error:
            return ScoredAnswer(answer, failure=_message(error))

    def _score_answers(self, answers: Sequence["_Answer"]) -> list[ScoredAnswer]:
        """The results of whole answers."""
        vectors = _together(self._vectors, answers)
        known = [(each, vector) for each, vector in zip(answers, vectors, strict=True) if not isinstance(vector, str)]
        judged = iter(_together(self._judge, known))
        results = [vector if isinstance(vector, str) else next(judged) for vector in vectors]
        return [
            ScoredAnswer(each.text, failure=result) if isinstance(result, str) else result
            for each, result in zip(answers, results, strict=True)
        ]

    def _vectors(self, answers: Sequence["_Answer"]) -> list[Vector | str]:
        """The scores of answers, or why there are none."""
        vectors = self.task.score_all([each.problem for each in answers], [each.text for each in answers])
        return [
            (self.task.why_unscored(each.problem, each.text) or UNKNOWN) if vector is None else _checked(vector)
            for each, vector in zip(answers, vectors, strict=True)
        ]

    def _judge(self, scored: Sequence[tuple["_Answer", Vector]]) -> list[ScoredAnswer | str]:
        """The results of answers with known scores: their values, whether they are solutions, and what is wrong."""
        values = [each.goal.value(each.problem, each.text, vector) for each, vector in scored]
        solved: dict[int, bool | None] = {}
        for goal, indices in group_by(range(len(scored)), lambda index: scored[index][0].goal).items():
            answers, vectors = zip(*(scored[index] for index in indices), strict=True)
            problems, texts = [each.problem for each in answers], [each.text for each in answers]
            flags = goal.solved_all(problems, texts, vectors, [values[index] for index in indices])
            solved.update(
                (index, None if flag is None else bool(flag)) for index, flag in zip(indices, flags, strict=True)
            )
        forms = [self.task.normal_form(each.text) for each, _ in scored]
        wrong = [index for index in range(len(scored)) if solved[index] is False]
        feedback = dict(zip(wrong, self._feedback([scored[index] for index in wrong]), strict=True))
        return [
            UNKNOWN
            if (is_solved := solved[index]) is None
            else ScoredAnswer(
                each.text,
                None if forms[index] is None else form_text(forms[index]),
                vector,
                values[index],
                is_solved,
                feedback=feedback.get(index, ""),
            )
            for index, (each, vector) in enumerate(scored)
        ]

    def _feedback(self, scored: Sequence[tuple["_Answer", Vector]]) -> list[str]:
        """What the answers got wrong; nothing where the task cannot say it."""
        answers, vectors = [each for each, _ in scored], [vector for _, vector in scored]
        problems, texts = [each.problem for each in answers], [each.text for each in answers]
        try:
            said = list(map(str, self.task.feedback_all(problems, texts, vectors)))
        except (Exception, SystemExit):
            said = []
        return said if len(said) == len(scored) else [""] * len(scored)


@dataclass(frozen=True)
class _Answer:
    """A whole answer, to be scored."""

    problem: Any
    goal: Goal
    text: str


@dataclass(frozen=True)
class TaskSource:
    """Where the task, its problems and the goals come from, so that another process can load them too.

    Attributes:
        task: its name, or a .py file.
        settings: of the task.
        split: of the problems.
        count: how many problems; None for all.
        goals: the arguments of `goals_of`.
    """

    task: str
    settings: dict[str, Any]
    split: str
    count: int | None
    goals: Mapping[str, list[str]] = field(default_factory=dict)

    def load(self, pickled_problems: bytes | None = None) -> GoalScorer:
        """Load the task, and its problems too where they do not come pickled from another process."""
        task: Task[Any] = get(self.task, **self.settings)
        problems = pickle.loads(pickled_problems) if pickled_problems else task.problems(self.split, count=self.count)
        by_id = {problem.id: problem for problem in problems}
        return GoalScorer(task, by_id, {goal.name: goal for goal in goals_of(task, **self.goals)})


def form_text(form: Any) -> str:
    """A normal form as text that is the same in every process: sets are sorted."""
    if isinstance(form, set | frozenset):
        return f"{{{', '.join(sorted(map(form_text, form)))}}}"
    return f"({', '.join(map(form_text, form))})" if isinstance(form, list | tuple) else repr(form)


def _together(function: Callable[[Sequence[T]], list[R | str]], items: Sequence[T]) -> list[R | str]:
    """The results of a function for many items in one call; where that raises, for each alone, or why there is none."""
    try:
        return function(items) if items else []
    except (Exception, SystemExit) as error:
        return [_message(error)] if len(items) == 1 else [_together(function, [item])[0] for item in items]


def _checked(vector: Vector) -> Vector | str:
    """Scores as finite numbers, or why they are none."""
    scores = tuple(map(float, vector))
    return scores if all(map(math.isfinite, scores)) else f"a score is not a finite number: {list(scores)}"


def _message(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
