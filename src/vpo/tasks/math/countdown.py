"""countdown: make a target from given numbers with + - * /, each used once: valid, the numbers, how close, exact."""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from random import Random
from typing import Any, ClassVar

from vpo.tasks.data import Published, check_split, field, items, read_data, take, unique
from vpo.tasks.forms import ONE_SHOT, Example, Form
from vpo.tasks.lines import bare_line, begins_turn, lines_of
from vpo.tasks.math.answers import boxes
from vpo.tasks.math.arithmetic import Expression, Number, Token, evaluate, open_brackets, parse_number
from vpo.tasks.math.solver import solutions
from vpo.tasks.reading import Native
from vpo.tasks.task import Message, Objective, Task, Vector
from vpo.util.errors import InputError

LONGEST = 200  # characters of an answer; a longer one is not parsed
MOST_NUMBERS = 5  # of a problem for which solutions are searched
SPLITS = ("train", "test")
PUBLISHED = Published(
    title="Countdown, rows of nums and target",
    hub="Jiayi-Pan/Countdown-Tasks-3to4",
    files={"train": ("train",), "test": ("test",)},
    hub_splits={"train": "train[:-1024]", "test": "train[-1024:]"},  # there is one split, of 490,364 rows
)
FORM = """\
Use each number exactly once, and + - * / and brackets. The answer is the expression alone."""

_TOKEN = re.compile(r"[0-9]+|[-+*/()=]")
_SPACE = re.compile(r"[ \t\n]+")
_LATEX = re.compile(r"\\(?:(times|cdot|ast|div|left|right)(?![A-Za-z])|\*)")
_OPERATOR_OF = {"div": "/", "left": "", "right": ""}  # the others are *
_LETTER_X = re.compile(r"(?<=[0-9)\s])[xX](?=[0-9(\s])")
_EQUALS = re.compile(r"`?[ \t]{1,3}(?:which )?equals[ \t]{1,3}`?", re.IGNORECASE)
_CHECK = re.compile(
    r"[\s*_#>-]*(?:let'?s |let me |we |to )?(?:double[- ])?(?:check|verif(?:y|ying|ication))", re.IGNORECASE
)
_AFTER = " \t.,;!✓✔✅"
_NAMED = re.compile(r"\b(?:answer|expression)\b", re.IGNORECASE)
_OPERATORS = str.maketrans({"×": "*", "÷": "/", "−": "-", "·": "*", "⋅": "*", "∗": "*"})


@dataclass(frozen=True)
class CountdownProblem:
    """Numbers, and a target to make from them.

    Attributes:
        id: the split and the index of its row.
        numbers: each to be used once.
        target: the value that the expression must have.
    """

    id: str
    numbers: tuple[int, ...]
    target: int


class CountdownTask(Task[CountdownProblem]):
    """An answer is an expression of integers, + - * / and brackets; ``=`` and its value may stand before or after it.

    Of several expressions in a row, all of one value, the first is the answer.
    valid is 1 if it can be parsed and computed. numbers is 1 if it uses exactly the given numbers. closeness is
    max(0, 1 − |value − target| / max(|target|, 1)), and 0 for an expression with a number that is not given, or with
    one more often than it is given. exact is 1 if it uses exactly the given numbers and equals the target. Values are
    exact fractions.
    """

    name: ClassVar[str] = "countdown"
    summary: ClassVar[str] = "make a target from given numbers with + - * /"
    objectives: ClassVar[tuple[Objective, ...]] = (
        Objective("valid", "the answer is an expression that can be computed"),
        Objective("numbers", "it uses exactly the given numbers"),
        Objective("closeness", "how close it comes to the target with the given numbers or some of them"),
        Objective("exact", "it uses exactly the given numbers and equals the target"),
    )
    weights: ClassVar[Vector] = (0.25, 0.25, 0.25, 0.25)
    form: Form = ONE_SHOT
    example: ClassVar[Example | None] = Example(
        "make 10 from 1, 2, 3 and 4", ("4 * 3 - 2 * 1", "1 + 2 + 3 + 4", "2 * 3 + 4 * 1")
    )

    def __init__(self, *, data: str | None = None) -> None:
        """Make the task.

        Args:
            data: file or folder of rows with nums and target, or "hub".
        """
        self.data = data

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[CountdownProblem]:
        """The problems of "train" or "test"; of the hub's one split, test is the last 1024 rows."""
        check_split(split, SPLITS, self.name)
        rows = read_data(self.name, PUBLISHED, self.data, split)
        problems = [_problem(row, f"{split}-{index}", where) for index, (where, row) in enumerate(rows)]
        return take(unique(problems, self.name), count)

    def question(self, problem: CountdownProblem) -> list[Message]:
        """The numbers, the target, and the form of an answer."""
        numbers = ", ".join(map(str, problem.numbers))
        return [{"role": "user", "content": f"Make {problem.target} of the numbers {numbers}. {FORM}"}]

    def score(self, problem: CountdownProblem, answer: str) -> Vector:
        """valid, numbers, closeness and exact."""
        expression = parse_expression(answer)
        if expression is None:
            return 0.0, 0.0, 0.0, 0.0
        used, allowed = Counter(expression.numbers), Counter(problem.numbers)
        distance = abs(expression.value - problem.target) / max(abs(problem.target), 1)
        closeness = max(1 - float(distance), 0.0) if used <= allowed else 0.0
        return 1.0, float(used == allowed), closeness, float(used == allowed and distance == 0)

    def steps(self, problem: CountdownProblem, answer: str) -> list[int]:
        """Where each number, operator and bracket ends; an expression may also go on at its end."""
        return [match.end() for match in _TOKEN.finditer(answer.translate(_OPERATORS))]

    def score_partial(self, problem: CountdownProblem, prefix: str) -> Vector:
        """A bound: by the numbers that are used, and by the value where all of them are."""
        bounds = [self._bound(problem, each) for each in _with_last_number(prefix, problem.numbers)]
        return tuple(map(max, *bounds)) if len(bounds) > 1 else bounds[0]

    def _bound(self, problem: CountdownProblem, prefix: str) -> Vector:
        """The same, where no digit follows."""
        tokens = _tokens(prefix)
        left, *claimed = _split_at_equals(tokens or [])
        depth = open_brackets(left)
        if tokens is None or depth is None or len(prefix) > LONGEST:
            return 0.0, 0.0, 0.0, 0.0
        if _lone(left):
            return self._bound_of_value(problem, prefix)
        if claimed:
            return self.score(problem, prefix.partition("=")[0])
        used, allowed = Counter(token.value for token in left if isinstance(token, Number)), Counter(problem.numbers)
        if used < allowed:
            return 1.0, 1.0, 1.0, 1.0
        # One more number is one too many, so brackets alone may follow.
        return 1.0, *self.score(problem, prefix + ")" * depth)[1:]

    def _bound_of_value(self, problem: CountdownProblem, prefix: str) -> Vector:
        """The bound of a number, which may be the expression's first or, before ``=``, its value."""
        digits, equals, rest = prefix.partition("=")
        value = int(digits)
        if not equals:  # digits may follow, too
            begins = value in problem.numbers or str(problem.target).startswith(digits.strip().lstrip("0"))
            return 1.0, 1.0, 1.0, float(begins)
        closeness = max(0.0, 1 - abs(value - problem.target) / max(abs(problem.target), 1))
        bound = (1.0, 1.0, closeness, float(value == problem.target))
        return tuple(map(min, bound, self._bound(problem, rest)))

    def solved(self, vector: Sequence[float]) -> bool:
        """Whether the expression is exact."""
        return bool(vector[-1] >= 1)

    def bare(self, answer: str) -> str:
        """The only expression of an answer, without what is around it; an answer with several, or none, as it is."""
        text = answer.strip()
        emphasised = text.startswith("*") and text.endswith("*")
        if parse_expression(answer) is not None or (_tokens(text) is not None and not emphasised):
            return answer
        found = [native.text for native in _expressions(answer, single=True, checks=False)]
        *_, last = ["", *(native.text for native in _expressions(answer, single=True, checks=True))]
        # A check that ends in another value is an expression of its own.
        return found[0] if len(set(found)) == 1 and _value(found[0]) == _value(last) else answer

    def native(self, text: str, answers: int) -> Sequence[Native]:
        """Lines that are expressions, or end in one after a colon or "the answer is", and the contents of boxes."""
        return list(_expressions(text, single=answers == 1, checks=answers > 1))

    def normal_form(self, answer: str) -> Hashable:
        """The same for expressions that differ only in brackets and in the order of a sum or product."""
        expression = parse_expression(answer)
        return None if expression is None else expression.form

    def gold(self, problem: CountdownProblem) -> str | None:
        """An expression from an exhaustive search; None without a solution, or with too many numbers to search."""
        return next(_solutions(problem), None)

    def demonstrations(self, problem: CountdownProblem, count: int, random: Random) -> list[str]:
        """Different expressions that equal the target, repeated where there are fewer than `count`."""
        expressions = list(islice(_solutions(problem), 10 * count))
        if not expressions:
            raise InputError(f"countdown {problem.id} has no demonstrations: no expression equals the target")
        random.shuffle(expressions)
        return [expressions[index % len(expressions)] for index in range(count)]


def _with_last_number(prefix: str, numbers: Sequence[int]) -> list[str]:
    """A prefix as it is, and with each given number that its last digits begin in their place."""
    stem = prefix.rstrip("0123456789")
    digits = prefix[len(stem) :].lstrip("0")
    if len(stem) == len(prefix):
        return [prefix]
    return [prefix, *(f"{stem}{number}" for number in set(numbers) if str(number).startswith(digits))]


def parse_expression(answer: str) -> Expression | None:
    """The expression of an answer, None for other text and where two sides of a ``=`` differ."""
    if len(answer) > LONGEST:
        return None
    tokens = _tokens(answer)
    if tokens is None:
        return None
    sides = _split_at_equals(tokens)
    expressions = [evaluate(side, strict=True) for side in sides]
    expression = expressions[sides.index(_computed(sides))]
    values = {each and each.value for each in expressions}
    return expression if len(values) == 1 else None


def _value(answer: str) -> Fraction | None:
    expression = parse_expression(answer)
    return expression and expression.value


def _expressions(text: str, *, single: bool, checks: bool) -> Iterator[Native]:
    """The lines with an expression.

    After a line that begins a check of the first ones, only a box, or a line that names the answer or expression,
    counts. Whether a check agrees with what it checks does not.

    Args:
        text: a completion, or an answer in tags.
        single: whether it should have one expression: then another turn of a dialogue ends it.
        checks: whether all lines of a check count.
    """
    found = checking = False
    for start, end, line in lines_of(text):
        if single and found and begins_turn(line):
            return
        begins_check = not checks and found and _CHECK.match(line) is not None
        checking |= begins_check
        if checking and not boxes(line) and (begins_check or not _NAMED.search(line)):
            continue
        if (expression := _expression_in(line)) is not None:
            found = True
            yield Native(start, end, expression)


def _expression_in(line: str) -> str | None:
    """The expression of a line, without marks around it; None where it has none.

    Whether it can be computed, and equals what it claims, does not count: of many lines the right one would be left.
    """
    box = max(boxes(line), default=(0, ""))[1]
    line = _EQUALS.sub(" = ", line)
    before, _, stated = line.rpartition(" is ")
    named = _NAMED.search(line)
    ends = (line, line.rpartition(":")[2], stated if _NAMED.search(before) else line[named.end() :] if named else "")
    for candidate in (box, *(bare_line(end.rstrip(_AFTER)) for end in ends)):
        text = _LATEX.sub(lambda match: _OPERATOR_OF.get(match[1], "*"), _LETTER_X.sub("*", candidate.rstrip(_AFTER)))
        side = _computed(_split_at_equals(_tokens(text) or [])) if len(text) <= LONGEST else []
        if not {"+", "-", "*", "/"}.isdisjoint(side) and sum(not isinstance(token, str) for token in side) > 1:
            return text
    return None


def _tokens(answer: str) -> list[Token] | None:
    """The tokens of an answer, None where it has anything but ASCII digits, operators and brackets."""
    text = answer.translate(_OPERATORS)
    if _SPACE.sub("", _TOKEN.sub("", text)):
        return None
    tokens: list[Token] = []
    for piece in _TOKEN.findall(text):
        token = parse_number(piece) if piece[0].isdigit() else piece
        if token is None:
            return None
        tokens.append(token)
    return tokens


def _split_at_equals(tokens: Sequence[Token]) -> list[list[Token]]:
    sides: list[list[Token]] = [[]]
    for token in tokens:
        if token == "=":
            sides.append([])
        else:
            sides[-1].append(token)
    return sides


def _computed(sides: Sequence[list[Token]]) -> list[Token]:
    """The first side that is more than a number; the first where all are numbers."""
    return next((side for side in sides if not _lone(side)), sides[0])


def _lone(side: Sequence[Token]) -> bool:
    return len(side) == 1 and isinstance(side[0], Number)


def _solutions(problem: CountdownProblem) -> Iterator[str]:
    return solutions(problem.numbers, problem.target) if len(problem.numbers) <= MOST_NUMBERS else iter(())


def _problem(row: Mapping[str, Any], name: str, where: str) -> CountdownProblem:
    numbers = items(row, "nums", int, where)
    if not numbers or min(numbers) < 0:
        raise InputError(f"{where}: nums must have 1 or more numbers of 0 or more, not {numbers}")
    return CountdownProblem(name, tuple(numbers), field(row, "target", int, where))
