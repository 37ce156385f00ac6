r"""math: competition problems of MATH (arXiv 2103.03874) and AIME: the answer, in one box, and brevity."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from vpo.tasks.data import Published, field, read_data, unique
from vpo.tasks.math.answers import boxes, final_answer, one_box, plain
from vpo.tasks.math.checker import final_answers, need_checker
from vpo.tasks.math.gsm8k import brevity
from vpo.tasks.task import Message, Objective, Task, Vector, check_split, take
from vpo.util.errors import InputError, nearest

ALLOWED = 2_000  # characters of an answer that is brief, where the data has no solution to measure by
SOURCES = {
    "math": Published(
        title="MATH, rows of problem and solution",
        hub="DigitalLearningGmbH/MATH-lighteval",
        files={"train": ("train",), "test": ("test",)},
        hub_splits={"train": "train", "test": "test"},
    ),
    # Each year is one file, whose one split is named train.
    "aime": Published(
        title="AIME, rows of problem and answer",
        hub="HuggingFaceH4/aime_2024",
        files={"test": ("",)},
        hub_splits={"test": "train"},
    ),
}
FORM = r"Reason step by step, and put the final answer into one \boxed{}."


@dataclass(frozen=True)
class CompetitionProblem:
    """A problem with a short answer.

    Attributes:
        id: as in the data set, or the split and the number of its row, from 0.
        question: the problem.
        answer: the final answer, in LaTeX.
        solution: the gold solution, where there is one.
    """

    id: str
    question: str
    answer: str
    solution: str | None


class CompetitionTask(Task[CompetitionProblem]):
    r"""Problems with a final answer in LaTeX, which a solution gives in ``\boxed{}``.

    answer is 1 if the final answer is right. boxed is 1 if it stands in a box, and no other box holds another answer.
    brevity is 1 up to the length of the gold solution (2,000 characters where the data has none), then that over the
    answer's length, and 0 for a wrong answer. A solution without a final answer scores 0 everywhere. A problem is
    solved if the answer is right.
    """

    name: ClassVar[str] = "math"
    summary: ClassVar[str] = "competition problems of MATH and AIME: the answer, in a box, and brevity"
    objectives: ClassVar[tuple[Objective, ...]] = (
        Objective("answer", "the final answer is right"),
        Objective("boxed", "it stands in a box, the only answer that does"),
        Objective("brevity", "a right answer that is no longer than the gold solution"),
    )
    weights: ClassVar[Vector] = (0.6, 0.2, 0.2)

    def __init__(self, *, data: str | None = None, source: str = "math") -> None:
        """Make the task.

        Args:
            data: file or folder of MATH or AIME, or "hub".
            source: "math", or "aime": one split, answers are whole numbers from 0 to 999.
        """
        if source not in SOURCES:
            raise InputError(f"source {source!r} is not known: {nearest(source, SOURCES)}")
        self.data, self.source = data, source

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[CompetitionProblem]:
        """Return the splits of MATH, "train" (7500) and "test" (5000), or AIME's problems, which are all "test"."""
        published = SOURCES[self.source]
        check_split(split, tuple(published.files), f"{self.name} on {self.source}")
        need_checker(self.name)
        rows = read_data(self.name, published, self.data, split)
        found = [_problem(row, f"{split}-{place}", where) for place, (where, row) in enumerate(rows)]
        if self.source == "aime":
            _check_aime(found)
        return take(unique(found, self.name), count)

    def question(self, problem: CompetitionProblem) -> list[Message]:
        """Return the problem and the form of an answer."""
        return [{"role": "user", "content": f"{problem.question}\n\n{FORM}"}]

    def score(self, problem: CompetitionProblem, answer: str) -> Vector | None:
        """Return answer, boxed and brevity."""
        return self.score_all([problem], [answer])[0]

    def score_all(self, problems: Sequence[CompetitionProblem], answers: Sequence[str | None]) -> list[Vector | None]:
        """Return the scores of all, answers compared in one call."""
        found = final_answers([problem.answer for problem in problems], answers)
        return [
            (0.0, 0.0, 0.0) if answer is None or final is None else _vector(problem, answer, equal)
            for problem, answer, (final, equal) in zip(problems, answers, found, strict=True)
        ]

    def solved(self, vector: Sequence[float]) -> bool:
        """Return whether the answer is right."""
        return bool(vector[0] >= 1)

    def normal_form(self, answer: str) -> Hashable:
        """Return the final answer, without white space."""
        final = final_answer(answer)
        return None if final is None else str(plain(final) or "".join(final.split()))

    def gold(self, problem: CompetitionProblem) -> str:
        """Return the gold solution, or the answer in a box."""
        return problem.solution or f"\\boxed{{{problem.answer}}}"

    def expected(self, problem: CompetitionProblem) -> Vector:
        """Return 1 everywhere, but for a solution that has its answer in several boxes, or in none."""
        return 1.0, float(one_box(self.gold(problem))), 1.0


def _vector(problem: CompetitionProblem, answer: str, right: bool | None) -> Vector | None:
    if right is None:
        return None
    length = ALLOWED if problem.solution is None else len(problem.solution)
    return float(right), float(one_box(answer)), brevity(answer, length) * right


def _problem(row: Mapping[str, Any], name: str, place: str) -> CompetitionProblem:
    """Read a row; those of some years have their fields in capitals."""
    row = {str(key).lower(): value for key, value in row.items()}
    given = next((row[key] for key in ("unique_id", "id") if row.get(key) is not None), name)
    solution = field(row, "solution", str, place).strip() if row.get("solution") else None
    if row.get("answer") is not None:
        answer = str(field(row, "answer", (str, int), place)).strip()
    else:
        answer = max(boxes(solution or ""), default=(0, ""))[1]
    if not answer:
        raise InputError(f"{place}: a row must have an answer, or a solution with one in \\boxed{{}}")
    # A solution that does not end in the answer, in a form that can be read, is no gold answer.
    whole = solution if solution and boxes(solution) else None
    return CompetitionProblem(str(given), field(row, "problem", str, place), answer, whole)


def _check_aime(problems: Sequence[CompetitionProblem]) -> None:
    for problem in problems:
        if not (problem.answer.isascii() and problem.answer.isdecimal() and int(problem.answer) <= 999):
            raise InputError(
                f"{problem.id}: an answer of AIME must be a whole number of 0 to 999, not {problem.answer!r}"
            )
