"""gsm8k: grade-school word problems (arXiv 2110.14168): the answer, the steps, true equations, and brevity."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from vpo.tasks.data import Published, check_split, field, read_data, take, unique
from vpo.tasks.forms import ONE_SHOT, Example, Form
from vpo.tasks.lines import sentence_ends
from vpo.tasks.math.answers import final_answer, form_of, own_turn, solutions_in
from vpo.tasks.math.checker import grade_final_numbers
from vpo.tasks.math.equations import ANNOTATION, Equation, equations
from vpo.tasks.math.plain import plain_number
from vpo.tasks.reading import Native
from vpo.tasks.task import Message, Objective, Task, Vector
from vpo.util.errors import InputError

SPLITS = ("train", "test")
PUBLISHED = Published(
    title="GSM8K, train.jsonl and test.jsonl",
    hub="openai/gsm8k:main",
    files={"train": ("train",), "test": ("test",)},
    hub_splits={"train": "train", "test": "test"},
)
WORK = "Solve it step by step, and write each calculation as an equation, such as 3 * 4 = 12."
PENS = Example(
    "Tom buys 3 boxes of 4 pens and gives 2 pens away. How many pens does he keep?",
    (
        "Tom buys 3 * 4 = 12 pens.\nHe keeps 12 - 2 = 10 pens.\n#### 10",
        "Two full boxes are 2 * 4 = 8 pens.\nOf the third he keeps 4 - 2 = 2 pens.\nThat is 8 + 2 = 10 pens.\n#### 10",
        "4 + 4 + 4 = 12\n12 - 2 = 10\n#### 10",
    ),
)


@dataclass(frozen=True)
class Gsm8kProblem:
    """A word problem.

    Attributes:
        id: the split and the index of its row.
        question: the problem.
        solution: the gold solution, as published.
        answer: the final answer.
        results: the intermediate results of the gold solution, each once; the answer where there are none.
    """

    id: str
    question: str
    solution: str
    answer: str
    results: tuple[Fraction, ...]


class Gsm8kTask(Task[Gsm8kProblem]):
    """Word problems; a solution has equations and ends in ``#### number``.

    answer is 1 if the final answer is right. steps is the share of the gold solution's intermediate results that are
    the result of an equation: with n of them, of one of the first 2n + 4 different ones.
    equations is the share of different equations that are true, 0 without any. brevity is 1 up to the length
    of the gold solution, then gold's length over the answer's, and 0 for a wrong answer. A solution without a final
    answer scores 0 everywhere. A problem is solved if the answer is right.
    """

    name: ClassVar[str] = "gsm8k"
    summary: ClassVar[str] = "grade-school word problems: the answer, the steps, true equations, brevity"
    objectives: ClassVar[tuple[Objective, ...]] = (
        Objective("answer", "the final answer is right"),
        Objective("steps", "share of the gold solution's intermediate results that are reached"),
        Objective("equations", "share of the written equations that are true"),
        Objective("brevity", "a right answer that is no longer than the gold solution"),
    )
    wraps_single: ClassVar[bool] = False
    single: ClassVar[str] = "End with a line that has #### and the final number, such as:\n#### 12"
    answer_tokens: int = 512  # some models append a program to their solution
    form: Form = ONE_SHOT
    example: ClassVar[Example | None] = PENS
    weights: ClassVar[Vector] = (1 / 2, 1 / 6, 1 / 6, 1 / 6)

    def __init__(self, *, data: str | None = None) -> None:
        """Make the task.

        Args:
            data: file or folder of GSM8K, or "hub".
        """
        self.data = data

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[Gsm8kProblem]:
        """The published splits, "train" (7473) and "test" (1319)."""
        check_split(split, SPLITS, self.name)
        rows = read_data(self.name, PUBLISHED, self.data, split)
        problems = [_problem(row, f"{split}-{index}", where) for index, (where, row) in enumerate(rows)]
        return take(unique(problems, self.name), count)

    def question(self, problem: Gsm8kProblem) -> list[Message]:
        """The problem, and what a solution shows."""
        return [{"role": "user", "content": f"{problem.question}\n\n{WORK}"}]

    def score(self, problem: Gsm8kProblem, answer: str) -> Vector | None:
        """answer, steps, equations and brevity."""
        return self.score_all([problem], [answer])[0]

    def score_all(self, problems: Sequence[Gsm8kProblem], answers: Sequence[str | None]) -> list[Vector | None]:
        """As `score`, of many answers."""
        finals = grade_final_numbers([problem.answer for problem in problems], answers)
        return [
            (0.0,) * len(self.objectives) if answer is None or final is None else _vector(problem, answer, final, equal)
            for problem, answer, (final, equal) in zip(problems, answers, finals, strict=True)
        ]

    def solved(self, vector: Sequence[float]) -> bool:
        """Whether the answer is right."""
        return bool(vector[0] >= 1)

    def native(self, text: str, answers: int) -> Sequence[Native]:
        """Solutions, each with its final answer; a single one is the whole text."""
        if answers > 1:
            return solutions_in(text, number=True)
        own = own_turn(text, number=True)
        strict = form_of(own, number=True) == "####"
        return [Native(0, len(text), own.strip(), strict)] if final_answer(own, number=True) else []

    def steps(self, problem: Gsm8kProblem, answer: str) -> list[int]:
        """The ends of lines and sentences."""
        return sentence_ends(answer)

    def score_partial(self, problem: Gsm8kProblem, prefix: str) -> Vector:
        """An estimate: what is written counts, and what is missing is taken to be right."""
        written, results = equations(prefix), set(problem.results)
        missing = len(results - _reached(problem, written))
        further = max(missing, 1)  # true equations
        still = missing if len(written) < _most_counted(problem) else min(missing, 1)  # the answer itself
        return (
            1.0,
            1 - (missing - still) / len(results),
            (sum(equation.true for equation in written) + further) / (len(written) + further),
            brevity(prefix, len(problem.solution)),
        )

    def normal_form(self, answer: str) -> Hashable:
        """The final answer and the equations: solutions that differ in words only are duplicates."""
        final = final_answer(answer, number=True)
        if final is None:
            return None
        return str(plain_number(final) or final), frozenset(equation.key for equation in equations(answer))

    def gold(self, problem: Gsm8kProblem) -> str:
        """The published solution, with its annotations."""
        return problem.solution

    def expected(self, problem: Gsm8kProblem) -> Vector:
        """1 everywhere, except for equations that are wrong in the data set itself."""
        return 1.0, 1.0, _truth(equations(problem.solution)), 1.0


def _vector(problem: Gsm8kProblem, answer: str, final: str, right: bool) -> Vector:
    in_answer = equations(answer)
    return (
        float(right),
        _steps(problem, in_answer, final),
        _truth(in_answer),
        brevity(answer, len(problem.solution)) * right,
    )


def _steps(problem: Gsm8kProblem, in_answer: Sequence[Equation], final: str) -> float:
    reached = _reached(problem, in_answer) | {plain_number(final)}
    return sum(result in reached for result in problem.results) / len(problem.results)


def _reached(problem: Gsm8kProblem, in_answer: Sequence[Equation]) -> set[Fraction | None]:
    return set().union(*(equation.results for equation in in_answer[: _most_counted(problem)]))


def _most_counted(problem: Gsm8kProblem) -> int:
    return 2 * len(problem.results) + 4


def _truth(in_answer: Sequence[Equation]) -> float:
    return sum(equation.true for equation in in_answer) / len(in_answer) if in_answer else 0.0


def brevity(answer: str, length: int) -> float:
    """1 for an answer up to `length` characters, and for a longer one `length` over its own."""
    return min(1.0, length / max(len(answer), 1))


def _problem(row: Mapping[str, Any], name: str, where: str) -> Gsm8kProblem:
    solution = field(row, "answer", str, where).strip()
    answer = solution.rpartition("####")[2].strip()
    value = plain_number(answer)
    if "####" not in solution or value is None:
        raise InputError(f"{where}: answer must end in #### and a number, not {solution[-40:]!r}")
    return Gsm8kProblem(name, field(row, "question", str, where), solution, answer, _results(solution, value))


def _results(solution: str, answer: Fraction) -> tuple[Fraction, ...]:
    """The results of the annotations, or of all equations where there are none, without the answer."""
    annotated = " \n ".join(match.group() for match in ANNOTATION.finditer(solution))
    values = [equation.right.value for equation in equations(annotated or solution)]
    return tuple(dict.fromkeys(value for value in values if value != answer)) or (answer,)
