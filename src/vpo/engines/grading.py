"""How an engine reads and scores a completion: by a task, or by a user's score function."""

import inspect
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from vpo.core.types import Floats
from vpo.engines.user_errors import UserErrors
from vpo.tasks import Task, Vector
from vpo.tasks import answers as protocol
from vpo.tasks.reading import Reading
from vpo.tasks.registry import BUILT_IN
from vpo.util.errors import InputError

ScoreFunction: TypeAlias = Callable[..., float | Sequence[float] | Mapping[str, float] | None]
Answers: TypeAlias = list[str | None]
TOLERANCE = 1e-6  # rounding errors beyond [0, 1] that are forgiven


class Grader:
    """Reads and scores completions."""

    def prepare(self) -> None:
        """Compute what scoring needs, for all problems together."""

    def read(self, text: str, answers: int) -> Reading:
        """The answers of a completion, which of them are in the form that was asked for, and their parts."""
        raise NotImplementedError

    def parse(self, text: str, answers: int) -> Answers:
        """The answers of a completion, None for a missing one."""
        return self.read(text, answers).answers

    def parts(self, text: str, answers: int) -> list[tuple[int, int]]:
        """Where the part of each answer ends in the text, and the answer's index."""
        return self.read(text, answers).parts

    def score(self, rows: Sequence[Mapping[str, Any]], parsed: Sequence[Answers]) -> list[Floats | None]:
        """The vectors of each row's answers, (M, D), zeros for missing ones; None where one is not known."""
        raise NotImplementedError

    def copies(self, answers: Answers) -> list[bool]:
        """Which answers of a completion repeat an earlier one. By default, those with the same words."""
        return protocol.duplicates(answers, _words)

    def dimensions(self, row: Mapping[str, Any]) -> int:
        """D, how many objectives a row has."""
        raise NotImplementedError

    def counted(self) -> dict[str, tuple[float, int]]:
        """What was counted in scoring since the last call: name → total, and of how many."""
        return {}

    def why_unknown(self) -> str:
        """Why scores were unknown so far; empty where nothing is known of it."""
        return ""


class TaskGrader(Grader):
    """Scores by a task; rows name their problem."""

    def __init__(self, task: Task[Any], problems: Sequence[Any]) -> None:
        """Rows may name these problems."""
        self.task = task
        self.problems = {problem.id: problem for problem in problems}
        self.built_in = task.name in BUILT_IN
        self.errors = UserErrors(f"task {task.name}")
        self.outside = ""  # the last score of an unbounded task outside [0, 1]

    def prepare(self) -> None:
        """As the task does it."""
        self.task.prepare(list(self.problems.values()))

    def read(self, text: str, answers: int) -> Reading:
        """As the task reads them."""
        return self.task.read(text, answers)

    def score(self, rows: Sequence[Mapping[str, Any]], parsed: Sequence[Answers]) -> list[Floats | None]:
        """All answers are scored in one call of the task; where a user's task raises, each row in one of its own."""
        problems = [self._problem(row) for row in rows]
        try:
            matrices = [_matrix(vectors) for vectors in self.task.score_sets(problems, parsed)]
            self.errors.passed()
        except Exception:
            if self.built_in:  # a bug of this library
                raise
            return [self._score_alone(problem, answers) for problem, answers in zip(problems, parsed, strict=True)]
        for problem, matrix in zip(problems, matrices, strict=True):
            self._check(problem, matrix)
        return [self._in_range(matrix) for matrix in matrices] if self.task.unbounded else matrices

    def copies(self, answers: Answers) -> list[bool]:
        """Those with the same normal form in the task, or the same words where the task cannot parse them."""
        return protocol.duplicates(answers, self._form)

    def counted(self) -> dict[str, tuple[float, int]]:
        """What the task counted."""
        return {**self.task.counted(), **({} if self.built_in else self.errors.counted())}

    def why_unknown(self) -> str:
        """What the task says, or what it raised."""
        return "; ".join(filter(None, [self.task.why_unknown(), self.errors.last, self.outside]))

    def dimensions(self, row: Mapping[str, Any]) -> int:
        """How many the row's problem has."""
        return len(self.task.names_of(self._problem(row)))

    def _score_alone(self, problem: Any, answers: Answers) -> Floats | None:
        try:
            (vectors,) = self.task.score_sets([problem], [answers])
            matrix = _matrix(vectors)
        except Exception as error:
            self.errors.raised(error, answers)
            return None
        self.errors.passed()
        self._check(problem, matrix)
        return matrix

    def _check(self, problem: Any, matrix_MD: Floats | None) -> None:
        """Refuse scores that are too few or not finite, and those outside [0, 1] where a task of this library has one.

        `Alarms` warns of the latter where a user's task has them.
        """
        if matrix_MD is None:
            return
        where, names = f"task {self.task.name}, problem {problem.id!r}", self.task.names_of(problem)
        if matrix_MD.shape[1:] != (len(names),):
            raise InputError(f"{where}: an answer must have {len(names)} scores, not {np.size(matrix_MD[0])}")
        if not np.isfinite(matrix_MD).all():
            raise InputError(f"{where}: scores must be finite numbers, or None for all where one is unknown")
        low, high = matrix_MD.min(), matrix_MD.max()
        if self.built_in and not self.task.unbounded and not (low >= -TOLERANCE and high <= 1 + TOLERANCE):
            raise RuntimeError(f"{where}: scores must lie in [0, 1], not from {low:g} to {high:g}")

    def _in_range(self, matrix_MD: Floats | None) -> Floats | None:
        """The scores of an unbounded task, unknown where one is outside [0, 1]."""
        outside = [] if matrix_MD is None else np.argwhere(np.abs(matrix_MD - 0.5) > 0.5 + TOLERANCE).tolist()
        if matrix_MD is None or not outside:
            return matrix_MD
        answer, objective = outside[0]
        name, score = self.task.names[objective], matrix_MD[answer, objective]
        self.outside = f"{name} is {score:g}, outside [0, 1]: map it there with --set scale={name}=LOW:HIGH"
        return None

    def _form(self, answer: str) -> Hashable:
        form = self.task.normal_form(answer)
        return _words(answer) if form is None else form

    def _problem(self, row: Mapping[str, Any]) -> Any:
        name = row.get("problem")
        if name not in self.problems:
            raise InputError(
                f"the data set's column problem must name one of the problems of the reward function, not {name!r}"
            )
        return self.problems[name]


def _words(answer: str) -> tuple[str, ...]:
    return tuple(answer.split())


def _matrix(vectors: Sequence[Vector | None]) -> Floats | None:
    """The vectors of a completion's answers, (M, D); None where one is not known."""
    return None if None in vectors else np.asarray(vectors, dtype=np.float64)


class FunctionGrader(Grader):
    """Scores by a function of the user's, which is called with the columns that it has parameters for."""

    def __init__(self, function: ScoreFunction, objectives: tuple[str, ...]) -> None:
        """The function takes an answer and columns; `objectives` names the numbers that it returns."""
        self.function, self.objectives = function, objectives
        self.errors = UserErrors("score")
        first, *parameters = inspect.signature(function).parameters.values()
        self.first = first.name
        self.takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
        named = {each.name: each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD}
        self.takes = set(named)
        self.needs = [name for name, each in named.items() if each.default is each.empty]

    def read(self, text: str, answers: int) -> Reading:
        """A single answer needs no tags, so that prompts can stay as they are."""
        return protocol.read_plain(text, answers)

    def score(self, rows: Sequence[Mapping[str, Any]], parsed: Sequence[Answers]) -> list[Floats | None]:
        """None for a row with an answer of which the function returns None, or on which it raises."""
        return [self._score(row, answers) for row, answers in zip(rows, parsed, strict=True)]

    def counted(self) -> dict[str, tuple[float, int]]:
        """How often the function raised."""
        return self.errors.counted()

    def why_unknown(self) -> str:
        """What the function raised."""
        return self.errors.last

    def dimensions(self, row: Mapping[str, Any]) -> int:
        """How many numbers the function returns."""
        return len(self.objectives)

    def _score(self, row: Mapping[str, Any], answers: Answers) -> Floats | None:
        for name in self.needs:
            if name not in row:
                raise InputError(f"score needs {name!r}, and the data set has the columns {', '.join(row)}")
        names = row.keys() - {self.first} if self.takes_all else row.keys() & self.takes
        columns = {name: row[name] for name in names}
        vectors_MD = np.zeros((len(answers), len(self.objectives)))
        for index, answer in enumerate(answers):
            if answer is None:
                continue
            try:
                scores = self.function(answer, **columns)
            except Exception as error:
                self.errors.raised(error, [answer])
                return None
            self.errors.passed()
            if scores is None:
                return None
            vectors_MD[index] = self._vector(scores, answer)
        return vectors_MD

    def _vector(self, scores: Any, answer: str) -> Floats:
        """A number for each objective, refusing fewer, others, and what is not a finite number."""
        if isinstance(scores, Mapping):
            numbers: list[Any] = [scores[name] for name in self.objectives if name in scores]
        else:
            numbers = list(scores) if isinstance(scores, Iterable) and not isinstance(scores, str) else [scores]
        if len(numbers) != len(self.objectives):
            names = ", ".join(self.objectives)
            raise InputError(f"score must return one number for each of {names}, not {scores!r:.200}")
        vector_D = np.asarray(numbers)
        if vector_D.ndim == 1 and vector_D.dtype.kind in "fiub" and np.isfinite(vector_D).all():
            return vector_D
        for name, number in zip(self.objectives, numbers, strict=True):
            if not isinstance(number, Real) or not math.isfinite(number):
                raise InputError(f"score must return a finite number for {name!r}, not {number!r}, of {answer[:60]!r}")
        return np.asarray([float(number) for number in numbers])  # fractions and the like
