"""countdown: make a number of given numbers with + - * /, each used once: valid, the numbers, how close, exact."""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any, ClassVar

from vpo.tasks.data import Published, field, items, read_data, unique
from vpo.tasks.math.arithmetic import Expression, Token, evaluate, number
from vpo.tasks.math.solver import solutions
from vpo.tasks.task import Message, Objective, Task, Vector, check_split, take
from vpo.util.errors import InputError

LONGEST = 200  # characters of an answer; a longer one is not read
MOST_NUMBERS = 5  # of a problem for which solutions are looked for
SPLITS = ("train", "test")
PUBLISHED = Published(
    title="Countdown, rows of nums and target",
    hub="Jiayi-Pan/Countdown-Tasks-3to4",
    files={"train": ("train",), "test": ("test",)},
    hub_splits={"train": "train[:-1024]", "test": "train[-1024:]"},  # there is one split, of 490,364 rows
)
FORM = """\
Use each number exactly once, and + - * / and brackets. Answer with the expression alone, such as (1 + 2) * 3."""

_TOKEN = re.compile(r"[0-9]+|[-+*/()=]")
_SPACE = re.compile(r"[ \t\n]+")
_OPERATORS = str.maketrans({"×": "*", "÷": "/", "−": "-", "·": "*"})


@dataclass(frozen=True)
class CountdownProblem:
    """Numbers, and what to make of them.

    Attributes:
        id: the split and the number of its row, from 0.
        numbers: each to be used once.
        target: what the expression is to come to.
    """

    id: str
    numbers: tuple[int, ...]
    target: int


class CountdownTask(Task[CountdownProblem]):
    """An answer is an expression of whole numbers, + - * / and brackets; it may end in ``=`` and its value.

    valid is 1 if it can be read and computed. numbers is 1 if it uses exactly the given numbers. closeness is
    max(0, 1 − |value − target| / max(|target|, 1)), and 0 for an expression with a number that is not given, or with
    one more often than it is given. exact is 1 if it uses exactly the given numbers and comes to the target. Values are
    exact fractions.
    """

    name: ClassVar[str] = "countdown"
    summary: ClassVar[str] = "make a number of given numbers with + - * /"
    objectives: ClassVar[tuple[Objective, ...]] = (
        Objective("valid", "the answer is an expression that can be computed"),
        Objective("numbers", "it uses exactly the given numbers"),
        Objective("closeness", "how close it comes to the target with the given numbers or some of them"),
        Objective("exact", "it uses exactly the given numbers and comes to the target"),
    )
    weights: ClassVar[Vector] = (0.25, 0.25, 0.25, 0.25)

    def __init__(self, *, data: str | None = None) -> None:
        """Make the task.

        Args:
            data: file or folder of rows with nums and target, or "hub".
        """
        self.data = data

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[CountdownProblem]:
        """Return the problems of "train" or "test"; of the hub's one split, test is the last 1024 rows."""
        check_split(split, SPLITS, self.name)
        rows = read_data(self.name, PUBLISHED, self.data, split)
        found = [_problem(row, f"{split}-{place}", where) for place, (where, row) in enumerate(rows)]
        return take(unique(found, self.name), count)

    def question(self, problem: CountdownProblem) -> list[Message]:
        """Return the numbers, the target, and the form of an answer."""
        numbers = ", ".join(map(str, problem.numbers))
        return [{"role": "user", "content": f"Make {problem.target} of the numbers {numbers}. {FORM}"}]

    def score(self, problem: CountdownProblem, answer: str) -> Vector:
        """Return valid, numbers, closeness and exact."""
        found = read_expression(answer)
        if found is None:
            return 0.0, 0.0, 0.0, 0.0
        used, given = Counter(found.numbers), Counter(problem.numbers)
        distance = abs(found.value - problem.target) / max(abs(problem.target), 1)
        closeness = max(1 - float(distance), 0.0) if used <= given else 0.0
        return 1.0, float(used == given), closeness, float(used == given and distance == 0)

    def solved(self, vector: Sequence[float]) -> bool:
        """Return whether the expression is exact."""
        return bool(vector[-1] >= 1)

    def normal_form(self, answer: str) -> Hashable:
        """Return what expressions share that differ in brackets, and in the order of a sum or product, alone."""
        found = read_expression(answer)
        return None if found is None else found.form

    def gold(self, problem: CountdownProblem) -> str | None:
        """Return an expression that a search finds; None where there is none, or too much to look through."""
        return next(_solutions(problem), None)

    def demonstrations(self, problem: CountdownProblem, count: int, random: Random) -> list[str]:
        """Return different expressions that come to the target, the same ones again where there are too few."""
        found = list(islice(_solutions(problem), 10 * count))
        if not found:
            raise InputError(f"countdown {problem.id} has no demonstrations: no expression was found")
        random.shuffle(found)
        return [found[place % len(found)] for place in range(count)]


def read_expression(answer: str) -> Expression | None:
    """Return what an answer comes to, None for one that is no expression or that claims another value."""
    if len(answer) > LONGEST:
        return None
    tokens = _tokens(answer)
    if tokens is None:
        return None
    left, *claimed = _cut(tokens)
    found = evaluate(left, strict=True)
    if found is None or not claimed:
        return found
    value = evaluate(claimed[0], strict=True) if len(claimed) == 1 else None
    return found if value is not None and value.lone is not None and value.value == found.value else None


def _tokens(answer: str) -> list[Token] | None:
    """Return the tokens of an answer, None where it has anything but ASCII digits, operators and brackets."""
    text = answer.translate(_OPERATORS)
    if _SPACE.sub("", _TOKEN.sub("", text)):
        return None
    found: list[Token] = []
    for piece in _TOKEN.findall(text):
        token = number(piece) if piece[0].isdigit() else piece
        if token is None:
            return None
        found.append(token)
    return found


def _cut(tokens: Sequence[Token]) -> list[list[Token]]:
    """Cut tokens at equals signs."""
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token == "=":
            found.append([])
        else:
            found[-1].append(token)
    return found


def _solutions(problem: CountdownProblem) -> Iterator[str]:
    return solutions(problem.numbers, problem.target) if len(problem.numbers) <= MOST_NUMBERS else iter(())


def _problem(row: Mapping[str, Any], name: str, place: str) -> CountdownProblem:
    numbers = items(row, "nums", int, place)
    if not numbers or min(numbers) < 0:
        raise InputError(f"{place}: nums must hold 1 or more numbers of 0 or more, not {numbers}")
    return CountdownProblem(name, tuple(numbers), field(row, "target", int, place))
