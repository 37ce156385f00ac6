"""How an engine reads and scores a completion: by a task, or by a function of the user's."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from vpo.core.types import Floats
from vpo.tasks import Task, Vector
from vpo.tasks import answers as protocol
from vpo.util.errors import InputError

Scorer: TypeAlias = Callable[..., float | Sequence[float] | Mapping[str, float] | None]
Answers: TypeAlias = list[str | None]


class Grader:
    """Reads and scores completions."""

    def parse(self, text: str, answers: int) -> Answers:
        """Return the answers of a completion."""
        return protocol.parse(text, answers)

    def parts(self, text: str, answers: int) -> list[tuple[int, int]]:
        """Return where the part of each answer ends, and its place."""
        return protocol.parts(text, answers)

    def score(self, rows: Sequence[Mapping[str, Any]], parsed: Sequence[Answers]) -> list[Floats | None]:
        """Return the vectors of each row's answers, (M, D), zeros for missing ones; None where one is not known."""
        raise NotImplementedError

    def dimensions(self, row: Mapping[str, Any]) -> int:
        """Return D, how many objectives a row has."""
        raise NotImplementedError

    def counted(self) -> dict[str, tuple[float, int]]:
        """Return what was counted in scoring since this was last asked: name → total and of how many."""
        return {}


class TaskGrader(Grader):
    """Scores by a task; rows name their problem."""

    def __init__(self, task: Task[Any], problems: Sequence[Any]) -> None:
        """Take the problems that rows may name."""
        self.task = task
        self.problems = {problem.id: problem for problem in problems}

    def parse(self, text: str, answers: int) -> Answers:
        """Return the answers of a completion, as the task reads them."""
        return self.task.parse(text, answers)

    def parts(self, text: str, answers: int) -> list[tuple[int, int]]:
        """Return where the part of each answer ends, as the task reads them, and its place."""
        return self.task.parts(text, answers)

    def score(self, rows: Sequence[Mapping[str, Any]], parsed: Sequence[Answers]) -> list[Floats | None]:
        """Return the vectors of the answers to the rows' problems, all of which are scored in one call."""
        return [_matrix(vectors) for vectors in self.task.score_sets([self._problem(row) for row in rows], parsed)]

    def counted(self) -> dict[str, tuple[float, int]]:
        """Return what the task counted in its scoring."""
        return self.task.counted()

    def dimensions(self, row: Mapping[str, Any]) -> int:
        """Return how many objectives the row's problem has."""
        return len(self.task.names_of(self._problem(row)))

    def _problem(self, row: Mapping[str, Any]) -> Any:
        name = row.get("problem")
        if name not in self.problems:
            raise InputError(f"the data set's column problem must name one of the problems given, not {name!r}")
        return self.problems[name]


def _matrix(vectors: Sequence[Vector | None]) -> Floats | None:
    """Return the vectors of a completion's answers, (M, D), or None where one is not known."""
    return None if None in vectors else np.asarray(vectors, dtype=np.float64)


class OwnGrader(Grader):
    """Scores by a user's function, which gets the columns that it has parameters for."""

    def __init__(self, function: Scorer, objectives: tuple[str, ...]) -> None:
        """Take a function of an answer and of columns, and the names of the numbers that it returns."""
        self.function, self.objectives = function, objectives
        first, *parameters = inspect.signature(function).parameters.values()
        self.first = first.name
        self.takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
        self.takes = {each.name for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD}
        self.needs = [each.name for each in parameters if each.name in self.takes and each.default is each.empty]

    def score(self, rows: Sequence[Mapping[str, Any]], parsed: Sequence[Answers]) -> list[Floats | None]:
        """Return what the function says of each answer; None for a row where it says None of one."""
        return [self._score(row, answers) for row, answers in zip(rows, parsed, strict=True)]

    def dimensions(self, row: Mapping[str, Any]) -> int:
        """Return how many numbers the function returns."""
        return len(self.objectives)

    def _score(self, row: Mapping[str, Any], answers: Answers) -> Floats | None:
        for name in self.needs:
            if name not in row:
                raise InputError(f"score wants {name!r}, and the data set has the columns {', '.join(row)}")
        wanted = row.keys() - {self.first} if self.takes_all else row.keys() & self.takes
        given = {name: row[name] for name in wanted}
        matrix = np.zeros((len(answers), len(self.objectives)))
        for place, answer in enumerate(answers):
            if answer is None:
                continue
            found = self.function(answer, **given)
            if found is None:
                return None
            matrix[place] = self._vector(found, answer)
        return matrix

    def _vector(self, found: Any, answer: str) -> Floats:
        """Return a number for each objective, refusing fewer, others, and what is not a finite number."""
        if isinstance(found, Mapping):
            numbers: list[Any] = [found.get(name) for name in self.objectives]
        else:
            numbers = list(found) if isinstance(found, Iterable) else [found]
        if len(numbers) != len(self.objectives):
            raise InputError(f"score must return {len(self.objectives)} numbers, and returned {len(numbers)}")
        vector_D = np.asarray(numbers)
        if vector_D.ndim == 1 and vector_D.dtype.kind in "fiub" and np.isfinite(vector_D).all():
            return vector_D
        for name, number in zip(self.objectives, numbers, strict=True):
            if not isinstance(number, Real) or not math.isfinite(number):
                raise InputError(f"score must return a finite number for {name!r}, not {number!r}, of {answer[:60]!r}")
        return np.asarray([float(number) for number in numbers])  # fractions and the like
