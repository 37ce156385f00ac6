"""What a completion is worth: its answers are cut out, scored by the task, and valued by the goal of the search."""

import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vpo.search.goals import Goal, goals_of
from vpo.tasks import Task, get

MISSING = "the completion has no such answer"
UNKNOWN = "its score cannot be known"


@dataclass(frozen=True)
class ScoringRequest:
    """A generation to score.

    Attributes:
        number: of the generation; its result has the same.
        problem: id of the problem.
        goal: name of the goal.
        text: the completion, or an answer that was cut out of one.
        answers: how many the completion was asked for; 0 where `text` is an answer already.
        known: how many of them stood in the prefix of the completion, and are not scored.
        count: how many after those are scored; None for all.
    """

    number: int
    problem: str
    goal: str
    text: str
    answers: int
    known: int = 0
    count: int | None = None


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
    """

    answer: str | None
    form: str | None = None
    scores: tuple[float, ...] | None = None
    value: float = 0.0
    solved: bool = False
    failure: str | None = None


@dataclass(frozen=True)
class ScoredGeneration:
    """The new answers of a generation, scored; or why the generation as a whole could not be scored."""

    number: int
    answers: tuple[ScoredAnswer, ...] = ()
    failure: str | None = None


@dataclass(frozen=True)
class GoalScorer:
    """Scores generations: a task, its problems by id and the goals by name."""

    task: Task[Any]
    problems: Mapping[str, Any]
    goals: Mapping[str, Goal]

    def score(self, request: ScoringRequest) -> ScoredGeneration:
        """Whatever the code of a user raises becomes a failure of the answer, or of the generation."""
        try:
            answers = self._answers(request)[request.known :][: request.count]
            scored = tuple(self._score_answer(request, answer) for answer in answers)
            return ScoredGeneration(request.number, scored)
        except (Exception, SystemExit) as error:
            return ScoredGeneration(request.number, failure=_message(error))

    def _answers(self, request: ScoringRequest) -> list[str | None]:
        return [request.text] if request.answers == 0 else self.task.parse(request.text, request.answers)

    def _score_answer(self, request: ScoringRequest, answer: str | None) -> ScoredAnswer:
        if answer is None:
            return ScoredAnswer(None, failure=MISSING)
        problem, goal = self.problems[request.problem], self.goals[request.goal]
        try:
            (vector,) = self.task.score_all([problem], [answer])
            if vector is None:
                return ScoredAnswer(answer, failure=UNKNOWN)
            scores = list(map(float, vector))
            if not all(map(math.isfinite, scores)):
                raise ValueError(f"a score is not a finite number: {scores}")
            value = goal.value(problem, answer, scores)
            solved = goal.solved(problem, answer, scores, value)
            if solved is None:
                return ScoredAnswer(answer, failure=UNKNOWN)
            form = self.task.normal_form(answer)
            return ScoredAnswer(answer, None if form is None else form_text(form), tuple(scores), value, solved)
        except (Exception, SystemExit) as error:
            return ScoredAnswer(answer, failure=_message(error))


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


def _message(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
