"""countdown: expressions by hand, by an independent brute force, and 500 hostile strings."""

import json
import time
from fractions import Fraction
from itertools import permutations, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpo.tasks.math.countdown import CountdownProblem, CountdownTask

TASK = CountdownTask()
PROBLEM = CountdownProblem("p", (3, 5, 10), 50)  # (10 * 5) uses two of three


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("10 * (3 + 5) - 30", (1, 0, 0, 0)),  # 30 is not given
        ("(3 + 5) * 10", (1, 1, 0.4, 0)),  # 80, away by 30 of 50
        ("5 * 10 * 3", (1, 1, 0, 0)),  # 150, away by more than the target
        ("5 * 10 - 3", (1, 1, 0.94, 0)),  # 47
        ("5 × 10 − 3", (1, 1, 0.94, 0)),
        ("5 * 10", (1, 0, 1, 0)),  # the target, of some of the numbers
        ("50", (1, 0, 0, 0)),  # the target itself
        ("5 * 5 * 10 / 5", (1, 0, 0, 0)),  # a number more often than given
        ("5 * 10 - 3 = 47", (1, 1, 0.94, 0)),
        ("5 * 10 - 3 = 50", (0, 0, 0, 0)),  # not true
        ("5 * 10 = 50 = 50", (1, 0, 1, 0)),  # a chain of one value
        ("47 = 5 * 10 - 3", (1, 1, 0.94, 0)),  # the value stands first
        ("50 = 5 * 10 - 3", (0, 0, 0, 0)),
        ("5 * 10 - 3 = 50 - 3 = 47", (1, 1, 0.94, 0)),  # the first side is the answer
        ("50 - 3 = 5 * 10 - 3 = 47", (1, 0, 0, 0)),  # though the second is better
        ("5 * 10 - 3 = 50 = 47", (0, 0, 0, 0)),
        ("47 = 47", (1, 0, 0, 0)),
        ("5 * 10 - 3 =", (0, 0, 0, 0)),
        ("= 5 * 10 - 3", (0, 0, 0, 0)),
        ("5 ⋅ 10 - 3", (1, 1, 0.94, 0)),
        ("5 ∗ 10 - 3", (1, 1, 0.94, 0)),
        ("3 / (10 - 5 - 5)", (0, 0, 0, 0)),  # by zero
        ("-3 + 5 * 10", (0, 0, 0, 0)),  # no signs
        ("3 5 10", (0, 0, 0, 0)),
        ("5(10) - 3", (0, 0, 0, 0)),
        ("", (0, 0, 0, 0)),
        ("the answer is 5 * 10 - 3", (0, 0, 0, 0)),
        ("5 * 10.0 - 3", (0, 0, 0, 0)),
    ],
)
def test_hand_worked_expressions(answer, expected):
    assert TASK.score(PROBLEM, answer) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, "5 * 10 - 3") for text in ("5 x 10 - 3", "5 X 10 - 3", r"5 \* 10 - 3", r"5 \ast 10 - 3")),
        *((f"5 * 10 - 3{mark}", "5 * 10 - 3") for mark in (",", ";", "!", " ✓", ".", " ✅")),
        *((text, text) for text in ("5 ⋅ 10 - 3", "5 ∗ 10 - 3", "47 = 5 * 10 - 3", "5 * 10 - 3 = 50 - 3 = 47")),
        (r"\boxed{47 = 5 \times 10 - 3}", "47 = 5 * 10 - 3"),
        ("The expression `5 * 10 - 3` equals 47.", "5 * 10 - 3 = 47"),
        ("The answer is: 47 = 5 * 10 - 3.", "47 = 5 * 10 - 3"),
        ("5 * 10 - 3 = 47 ✓\n\nCheck:\n5 * 10 = 50\n50 - 3 = 47", "5 * 10 - 3 = 47"),
        ("5 * 10 - 3\n**Verification**: 5 * 10 = 50\n50 - 3 = 47", "5 * 10 - 3"),
        ("5 + 10 + 3\nLet's check: 5 + 10 + 3 = 18\n5 * 10 - 3", "5 + 10 + 3"),  # though the second is better
        ("5 * 10 - 3\n\nHuman: make 8 from 3 and 5\nAssistant:\n3 + 5", "5 * 10 - 3"),
        ("3 + 5 + 10 = 18\nCheck other combinations:\n5 * 10 - 3 = 47\n\\boxed{5 * 10 - 3}", "5 * 10 - 3"),
        ("3 + 5 + 10\nTo check: 18\n5 * 10 = 50\nSo the expression is 5 * 10 - 3.", "5 * 10 - 3"),
        ("5 * 10 - 3\nCheck:\nVerify the answer: 5 * 10 = 50", "5 * 10 - 3"),
        ("Check all of them.\n5 * 10 - 3", "5 * 10 - 3"),  # nothing stands before
        ("3 * 5\n5 * 10 - 3", "5 * 10 - 3"),
    ],
)
def test_one_expression_is_read(text, expected):
    assert TASK.read(text, 1).answers == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The answer is: 47 = 5 * 10 - 3.", "47 = 5 * 10 - 3"),
        ("5 * 10 - 3 = 47 ✓\n\nCheck:\n5 * 10 = 50\n50 - 3 = 47", "5 * 10 - 3 = 47"),
        ("5 * 10 - 3\n**Verification**: 5 * 10 = 50\n50 - 3 = 47", "5 * 10 - 3"),
        ("5 * 10 - 3\n\nHuman: make 8 from 3 and 5\nAssistant:\n3 + 5", "5 * 10 - 3"),
        ("5 + 10 + 3\nLet me verify\n5 * 10 - 3", None),  # two expressions: the check ends in another value
        ("3 * 5\n5 * 10 - 3", None),
    ],
)
def test_an_only_expression_in_tags_is_read(text, expected):
    assert TASK.read(f"<answer>{text}</answer>", 1).answers == [expected or text]


@pytest.mark.parametrize("text", ["(5 / 3 *", "5 * 10 - 3 *", "5 * 10 - 3 =", "5 * 10 -", "5 * 10 - 3 = 50"])
def test_an_unfinished_expression_in_tags_is_read_as_it_is(text):
    assert TASK.read(f"<answer>{text}</answer>", 1).answers == [text]
    assert TASK.read("<answer>**5 * 10 - 3**</answer>", 1).answers == ["5 * 10 - 3"]


def test_what_is_read_does_not_depend_on_the_problem():
    for numbers, target in (((3, 5, 10), 47), ((1, 2), 3), ((50, 3), 47)):
        problem = CountdownProblem("p", numbers, target)
        chain, other = "50 - 3 = 5 * 10 - 3 = 47", "50 - 3"
        assert TASK.score(problem, chain) == TASK.score(problem, other)


@pytest.mark.parametrize("piece", ["1=", "1+1=", "check\n", "1 x ", "\\*", "5 * 10 - 3\n", " equals ", "✓", "Human:\n"])
def test_expressions_are_read_in_linear_time(piece):
    begin = time.process_time()
    text = piece * (200_000 // len(piece))
    for hostile in (text, f"5 * 10 - 3\n{text}", f"<answer>{text}</answer>"):
        TASK.read(hostile, 1)
        TASK.read(hostile, 3)
    assert time.process_time() - begin < 6


def test_fractions_are_exact():
    problem = CountdownProblem("p", (1, 3, 3), 1)
    assert TASK.score(problem, "1 / 3 * 3") == (1, 1, 1, 1)
    assert TASK.score(CountdownProblem("p", (1, 3), 0), "1 / 3") == pytest.approx((1, 1, 2 / 3, 0))


def test_expressions_that_differ_in_brackets_or_order_are_the_same():
    forms = {TASK.normal_form(text) for text in ("(3 + 5) * 10", "10*(5+3)", "((5+3))*(10) = 80")}
    assert len(forms) == 1
    assert TASK.normal_form("10 - 3") != TASK.normal_form("3 - 10")
    assert TASK.normal_form("10 -") is None


def test_gold_and_demonstrations():
    problem = CountdownProblem("p", (96, 7, 37, 74), 55)
    assert list(TASK.validate([problem])) == [None]
    shown = TASK.demonstrations(problem, 4, Random(0))
    assert len(shown) == 4
    assert all(TASK.score(problem, answer) == (1, 1, 1, 1) for answer in shown)
    assert len(set(TASK.demonstrations(CountdownProblem("p", (1, 2, 3), 6), 3, Random(0)))) == 3
    impossible = CountdownProblem("p", (1, 1), 50)
    assert TASK.gold(impossible) is None
    with pytest.raises(ValueError, match="countdown p has no demonstrations"):
        TASK.demonstrations(impossible, 1, Random(0))


def brute_force(numbers, target):
    """Yield right expressions, by every order, every three operators and every shape: nothing of the library's."""
    shapes = {
        2: ["{} {} {}"],
        3: ["({} {} {}) {} {}", "{} {} ({} {} {})"],
        4: [
            *("(({} {} {}) {} {}) {} {}", "({} {} ({} {} {})) {} {}", "({} {} {}) {} ({} {} {})"),
            *("{} {} (({} {} {}) {} {})", "{} {} ({} {} ({} {} {}))"),
        ],
    }[len(numbers)]
    for order in set(permutations(numbers)):
        for signs in product("+-*/", repeat=len(numbers) - 1):
            pieces = [piece for pair in zip(order, [*signs, ""], strict=True) for piece in pair][:-1]
            exact = [f"Fraction({piece})" if isinstance(piece, int) else piece for piece in pieces]
            for shape in shapes:
                try:
                    if eval(shape.format(*exact), {"Fraction": Fraction}) == target:
                        yield shape.format(*pieces)
                except ZeroDivisionError:
                    continue


@pytest.mark.parametrize("seed", range(5))
def test_what_brute_force_finds_scores_one(seed):
    random = Random(seed)
    numbers = tuple(random.randint(1, 99) for _ in range(3))
    for target in {1, sum(numbers), numbers[0] * numbers[1] - numbers[2]}:
        problem = CountdownProblem("p", numbers, target)
        expressions = list(brute_force(numbers, target))
        assert [TASK.score(problem, text) for text in expressions] == [(1, 1, 1, 1)] * len(expressions)
        assert (TASK.gold(problem) is None) == (not expressions)


def hostile(count=500):
    """Yield strings that would run, hang or fool a careless scorer, some families of them."""
    random = Random(7)
    families = [
        lambda n: f"{n}**{n}**{n}**{n}",
        lambda n: f"9^{n}^9^9",
        lambda n: f"1e{n}999",
        lambda n: f"__import__('os').system('exit {n}')",
        lambda n: f"exec('while True: pass  # {n}')",
        lambda n: f"(lambda: {n})()",
        lambda n: f"().__class__.__bases__[0].__subclasses__()[{n}]",
        lambda n: f"[{n} for _ in iter(int, 1)]",
        lambda n: f"target * {n} / {n}",
        lambda n: f"5 * 10 + 0 * abs({n}) - 3",
        lambda n: f"5 * 10 - 3 # {n}",
        lambda n: f"5 * 10 - 3; {n}",
        lambda n: "(" * (n * 100) + "50" + ")" * (n * 100),
        lambda n: "(" * (90 + n) + "50" + ")" * (90 + n),
        lambda n: "-" * n + "50",
        lambda n: "~" * n + "50",
        lambda n: f"5 * 10 - {chr(0xFF10 + n % 10)}",  # full-width digits
        lambda n: f"{chr(0x660 + n % 10)} + 5 * 10",  # Arabic digits
        lambda n: f"5 * 10 - 3{chr(0xB2 + n % 2)}",  # superscripts
        lambda n: f"{n}" * 5000,
        lambda n: "1+" * (n * 1000) + "1",
        lambda n: f"5 << {n}",
        lambda n: f"5 // {n}",
        lambda n: f"5 % {n}",
        lambda n: f"{n}j * 10",
        lambda n: f"0x{n} + 0b1 + 1_000",
        lambda n: f"5 if {n} else 10",
        lambda n: f"f'{{50:{n}}}'",
        lambda n: f"5 * 10 = {n}0",
        lambda n: f"\\frac{{{n}}}{{1}}",
        lambda n: f"50 / ({n} - {n})",
        lambda n: f"{n} == {n}",
        lambda n: f"50, {n}",
        lambda n: f"5 * 10 - 3\x00{n}",
        lambda n: f"５０ + {n}",
        lambda n: f"5*10-3\u200b{n}",
        lambda n: "=" * n,
        lambda n: "5 * 10 " * n + "*",
        lambda n: f"NaN * {n}",
        lambda n: f"Infinity - {n}",
    ]
    for number in range(count):
        yield families[number % len(families)](random.randint(2, 60))


def test_hostile_strings_neither_run_nor_hang_nor_score():
    strings = list(hostile())
    assert len(set(strings)) > 400
    begin = time.process_time()
    scored = [text for text in strings if any(TASK.score(PROBLEM, text)) or TASK.normal_form(text) is not None]
    assert scored == []
    assert time.process_time() - begin < 5


@given(st.text(alphabet="0123456789+-*/()= ×１²e.^x", max_size=80))
def test_any_expression_yields_a_vector(text):
    vector = TASK.score(PROBLEM, text)
    assert all(0 <= score <= 1 for score in vector)
    assert vector[0] == 1 or not any(vector)


def test_rows_are_checked(tmp_path):
    path = tmp_path / "test.jsonl"
    for row, message in (
        ({"nums": [], "target": 3}, r"test.jsonl:1: nums must have 1 or more numbers of 0 or more, not \[\]"),
        ({"nums": [1, "2"], "target": 3}, "nums must be int, not str"),
        ({"nums": [1, 2]}, "the field 'target' is missing; the row has nums"),
    ):
        path.write_text(json.dumps(row) + "\n")
        with pytest.raises(ValueError, match=message):
            CountdownTask(data=str(path)).problems("test")
    path.write_text(json.dumps({"nums": [1, 2], "target": 3}) + "\n")
    (problem,) = CountdownTask(data=str(path)).problems("test")
    assert problem == CountdownProblem("test-0", (1, 2), 3)
    assert "Make 3 of the numbers 1, 2." in TASK.ask(problem, 3)[-1]["content"]


# Steps and partial scores


def test_steps_are_tokens():
    text = "(3 + 5) × 10 = 80"
    prefixes = ["(", "(3", "(3 +", "(3 + 5", "(3 + 5)", "(3 + 5) ×", "(3 + 5) × 10", "(3 + 5) × 10 =", text]
    assert [text[:end] for end in TASK.steps(PROBLEM, text)] == prefixes


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("", (1, 1, 1, 1)),
        ("5 * (10", (1, 1, 1, 1)),
        ("5 * 1", (1, 1, 1, 1)),  # the beginning of 10
        ("5 * 7", (1, 0, 0, 0)),  # 7 is not given
        ("5 * 10 * 3", (1, 1, 0, 0)),  # all numbers: 150
        ("5 * 10 - (3", (1, 1, 0.94, 0)),
        ("5 * 10 - 3 +", (1, 0, 0, 0)),  # one number too many
        ("5 * 10 =", (1, 0, 1, 0)),
        ("5 * 10 = 5", (1, 0, 1, 0)),
        ("(5 * 10 =", (0, 0, 0, 0)),
        ("5 * 10)", (0, 0, 0, 0)),
        ("5 5", (0, 0, 0, 0)),
        ("* 5", (0, 0, 0, 0)),
        ("five", (0, 0, 0, 0)),
    ],
)
def test_partial_scores_by_hand(prefix, expected):
    assert TASK.score_partial(PROBLEM, prefix) == pytest.approx(expected)


def test_a_partial_score_bounds_what_follows():
    """Every text of up to six pieces is scored, and compared with the partial scores of all of its beginnings."""
    problem = CountdownProblem("p", (1, 2, 12), 11)
    bounds = {}
    for length in range(1, 7):
        for pieces in product(["1", "2", "+", "-", "(", ")", "="], repeat=length):
            text = "".join(pieces)
            bound = bounds[text] = TASK.score_partial(problem, text)
            score = TASK.score(problem, text)
            for end in range(1, length + 1):
                assert all(map(float.__ge__, map(float, bounds[text[:end]]), map(float, score))), (text, text[:end])
            assert all(map(float.__le__, map(float, bound), map(float, bounds.get(text[:-1], bound)))), text
