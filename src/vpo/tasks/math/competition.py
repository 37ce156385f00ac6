r"""math: competition problems of MATH (arXiv 2103.03874) and AIME: the answer, in one box, and brevity."""

import math
import re
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from vpo.tasks.data import Published, check_split, field, read_data, take, unique
from vpo.tasks.forms import ONE_SHOT, Example, Form
from vpo.tasks.lines import sentence_ends
from vpo.tasks.math.answers import boxes, final_answer, form_of, one_box, own_turn, solutions_in
from vpo.tasks.math.checker import grade_final_answers, require_math_verify
from vpo.tasks.math.gsm8k import brevity
from vpo.tasks.math.plain import plain_number, unstyled
from vpo.tasks.reading import Native
from vpo.tasks.task import Message, Objective, Task, Vector
from vpo.util.errors import InputError, nearest

BRIEF = 2_000  # characters of a brief answer, where the data has no solution
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
_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
SUM = Example(
    "What is the sum of the integers from 1 to 10?",
    (
        r"The sum of the first $n$ integers is $\frac{n(n+1)}{2}$, which is $\frac{10 \cdot 11}{2} = \boxed{55}$.",
        r"Pair them: $1 + 10 = 2 + 9 = \dots = 5 + 6 = 11$. Five pairs make $5 \cdot 11 = \boxed{55}$.",
        r"Their mean is $5.5$, and there are $10$ of them: $10 \cdot 5.5 = \boxed{55}$.",
    ),
)


@dataclass(frozen=True)
class CompetitionProblem:
    """A problem with a short answer.

    Attributes:
        id: as in the data set, or the split and the index of its row.
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

    answer is 1 if the final answer is right. boxed is 1 if it is in a box, and no other box has another content.
    brevity is 1 up to the length of the gold solution (2,000 characters where the data has none), then that over the
    answer's length, and 0 for a wrong answer. A solution without a final answer scores 0 everywhere. A problem is
    solved if the answer is right.
    """

    name: ClassVar[str] = "math"
    summary: ClassVar[str] = "competition problems of MATH and AIME: the answer, in a box, and brevity"
    objectives: ClassVar[tuple[Objective, ...]] = (
        Objective("answer", "the final answer is right"),
        Objective("boxed", "it is in a box, and no other box has another content"),
        Objective("brevity", "a right answer that is no longer than the gold solution"),
    )
    wraps_single: ClassVar[bool] = False
    answer_tokens: int = 512
    single: ClassVar[str] = r"Put the final answer into one \boxed{}."
    form: Form = ONE_SHOT
    example: ClassVar[Example | None] = SUM
    weights: ClassVar[Vector] = (0.6, 0.2, 0.2)

    def __init__(self, *, data: str | None = None, source: str = "math") -> None:
        """Make the task.

        Args:
            data: file or folder of MATH or AIME, or "hub".
            source: "math", or "aime": one split, answers are integers from 0 to 999.
        """
        if source not in SOURCES:
            raise InputError(f"source {source!r} is not known: {nearest(source, SOURCES)}")
        self.data, self.source = data, source

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[CompetitionProblem]:
        """The splits of MATH, "train" (7500) and "test" (5000), or AIME's problems, which are all "test"."""
        published = SOURCES[self.source]
        check_split(split, tuple(published.files), f"{self.name} on {self.source}")
        require_math_verify(self.name)
        rows = read_data(self.name, published, self.data, split)
        read = [_problem(row, f"{split}-{index}", where) for index, (where, row) in enumerate(rows)]
        problems = [each for each in read if each is not None]
        if len(problems) < len(read):
            first = f"the first is {split}-{read.index(None)}"
            warnings.warn(
                f"left out {len(read) - len(problems)} rows of {self.name} whose answer is empty; {first}", stacklevel=2
            )
        if self.source == "aime":
            _check_aime(problems)
        return take(unique(problems, self.name), count)

    def question(self, problem: CompetitionProblem) -> list[Message]:
        """The problem."""
        return [{"role": "user", "content": f"{problem.question}\n\nReason step by step."}]

    def score(self, problem: CompetitionProblem, answer: str) -> Vector | None:
        """answer, boxed and brevity."""
        return self.score_all([problem], [answer])[0]

    def score_all(self, problems: Sequence[CompetitionProblem], answers: Sequence[str | None]) -> list[Vector | None]:
        """As `score`; all final answers are compared in one call."""
        golds, questions = [each.answer for each in problems], [each.question for each in problems]
        finals = grade_final_answers(golds, answers, questions)
        return [
            (0.0, 0.0, 0.0) if answer is None or final is None else _vector(problem, answer, equal)
            for problem, answer, (final, equal) in zip(problems, answers, finals, strict=True)
        ]

    def solved(self, vector: Sequence[float]) -> bool:
        """Whether the answer is right."""
        return bool(vector[0] >= 1)

    def native(self, text: str, answers: int) -> Sequence[Native]:
        """Solutions, each with its final answer; a single one is the whole text."""
        if answers > 1:
            return solutions_in(text)
        own = own_turn(text)
        return [Native(0, len(text), own.strip(), form_of(own) == r"\boxed")] if final_answer(own) else []

    def steps(self, problem: CompetitionProblem, answer: str) -> list[int]:
        """The ends of lines and sentences."""
        return sentence_ends(answer)

    def normal_form(self, answer: str) -> Hashable:
        r"""The final answer, without white space and font; ``\dfrac`` is ``\frac``."""
        final = final_answer(answer)
        if final is None:
            return None
        number = plain_number(final)
        return "".join(_FRACTION.sub(r"\\frac", unstyled(final)).split()) if number is None else str(number)

    def gold(self, problem: CompetitionProblem) -> str:
        """The gold solution, or the answer in a box."""
        return problem.solution or f"\\boxed{{{problem.answer}}}"

    def expected(self, problem: CompetitionProblem) -> Vector:
        """1 everywhere, except boxed for a gold solution with several different boxes, or none."""
        return 1.0, float(one_box(self.gold(problem))), 1.0


def _vector(problem: CompetitionProblem, answer: str, right: bool | None) -> Vector | None:
    if right is None:
        return None
    length = BRIEF if problem.solution is None else len(problem.solution)
    return float(right), float(one_box(answer)), brevity(answer, length) * right


def _problem(row: Mapping[str, Any], name: str, where: str) -> CompetitionProblem | None:
    """Read a row, None where its answer is empty; the field names of some years are in capitals."""
    row = {str(key).lower(): value for key, value in row.items()}
    row_id = next((row[key] for key in ("unique_id", "id") if row.get(key) is not None), name)
    solution = field(row, "solution", str, where).strip() if row.get("solution") else None
    if row.get("answer") is not None:
        answer = _answer_text(field(row, "answer", (str, int, float), where), where)
    else:
        answer = max(boxes(solution or ""), default=(0, ""))[1]
    if not answer and "answer" in row:
        return None
    if not answer:
        raise InputError(f"{where}: a row must have an answer, or a solution with one in \\boxed{{}}")
    # A solution without a box is no gold answer.
    gold = solution if solution and boxes(solution) else None
    return CompetitionProblem(str(row_id), field(row, "problem", str, where), answer, gold)


def _answer_text(answer: str | float, where: str) -> str:
    """AMC's answers are floating-point numbers, mostly whole ones: 142.0."""
    if isinstance(answer, float):
        if not math.isfinite(answer):
            raise InputError(f"{where}: an answer must be a finite number, not {answer}")
        answer = int(answer) if answer.is_integer() else answer
    return str(answer).strip()


def _check_aime(problems: Sequence[CompetitionProblem]) -> None:
    for problem in problems:
        if not (problem.answer.isascii() and problem.answer.isdecimal() and int(problem.answer) <= 999):
            raise InputError(f"{problem.id}: an answer of AIME must be an integer in 0..999, not {problem.answer!r}")
