"""Equations in prose: which are parsed, which are true, and which do not count."""

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpo.tasks.math.arithmetic import MOST_TOKENS, Number, evaluate
from vpo.tasks.math.equations import equations


def read(text):
    return [(equation.text, equation.true) for equation in equations(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("48/2 = 24", [("48/2 = 24", True)]),
        ("48/2 = 25", [("48/2 = 25", False)]),
        ("she earned 0.2 x 50 = $10.", [("0.2 x 50 = $10", True)]),
        ("$1,250 + $50.50 = $1,300.50!", [("1,250 + $50.50 = $1,300.50", True)]),
        ("<<16-3-4=9>>", [("16-3-4=9", True)]),
        ("16 - 3 - 4 = <<16-3-4=9>>9 eggs", [("16 - 3 - 4 = 9", True)]),  # written twice, counts once
        ("Half is <<48/2=24>>24.", [("48/2=24", True)]),
        ("3 × 4 = 12, 12 ÷ 5 = 2.4, 5 − 7 = -2", [("3 × 4 = 12", True), ("12 ÷ 5 = 2.4", True), ("5 − 7 = -2", True)]),
        (r"\(3 \times 4 = 12\)", [(r"3 \times 4 = 12", True)]),
        ("5 apples + 3 pears = 8 fruits", [("5 apples + 3 pears = 8", True)]),
        ("60 miles/hour * 2 hours = 120 miles", [("60 miles/hour * 2 hours = 120", True)]),
        ("He has 5 apples and 3 + 4 = 7 pears", [("3 + 4 = 7", True)]),
        ("2 + 3 = 5 * 2 = 10", [("2 + 3 = 5 * 2", False), ("5 * 2 = 10", True)]),  # a chain is what it says
        ("5 times 3 = 15, 5 plus 3 = 9", [("5 times 3 = 15", True), ("5 plus 3 = 9", False)]),
        ("27(1/3)=9", [("27(1/3)=9", True)]),
        ("(3 + 4 = 7)", [("3 + 4 = 7", True)]),
        ("-5 + 3 = -2", [("-5 + 3 = -2", True)]),
        ("**Total:** 3 + 4 = **7**", [("3 + 4 = **7", True)]),
        ("3 + 4 = 7. 4 + 3 = 7. 3+4=7", [("3 + 4 = 7", True)]),
        # Rounding: to the decimals that are written, and to none for an integer.
        ("10/3 = 3.33", [("10/3 = 3.33", True)]),
        ("10/3 = 3.34", [("10/3 = 3.34", False)]),
        ("10/3 = 3", [("10/3 = 3", False)]),
        ("2/3 = 0.66", [("2/3 = 0.66", False)]),
        # Percentages: as parts, and as results in either way of writing.
        ("50 * 20% = 10", [("50 * 20% = 10", True)]),
        ("3 / 6 = 50%", [("3 / 6 = 50%", True)]),
        ("20/50*100 = 40%", [("20/50*100 = 40%", True)]),
        ("100% - 80% = 20%", [("100% - 80% = 20%", True)]),
        ("20 percent * 50 = 11", [("20 percent * 50 = 11", False)]),
    ],
)
def test_equations_are_parsed_and_checked(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2x + 5 = 15",
            "x - 5 * 2 = 8",
            "x = 5",
            "3x = 12",
            "5 + x = 8",
            "5+(4x-13)=4x-8",
            "11h + h = 3",
            "2 a + 3 = 9",
        ),
        *("20% of 50 + 3 = 13", "half of 10 + 2 = 7", "5 squared + 1 = 26", "2 dozen + 1 = 25"),
        *("2^3 + 1 = 9", "2**3 + 1 = 9", "5² - 3*2 = 19", "√9 + 1 = 4", "5! - 3*4 = 108", r"\frac{1}{2} + 1 = 1.5"),
        *("$400 000 x 3/100 = $12 000", "10:30 + 2 = 12", "1 / 0 = 0", "5 = 5", "18", "", "= 5", "3 + = 5", "3 + 4 ="),
        *("2 quarts = 16 * 2", "Game 3 = 2 * 322", "60 / 15 ≈ 5", "3 + 4 <= 9", "１ + ２ = ４", "1" * 30 + " + 1 = 2"),
        *("5 apples/ box * 2 * 3 = 30", "one + 2 * 3 = 7"),
    ],
)
def test_what_is_not_plain_arithmetic_counts_neither_way(text):
    assert read(text) == []


def test_results_are_exact():
    (one,) = equations("3/4 = 3/4")
    assert one.results == {Fraction(3, 4)}
    (percent,) = equations("1 / 4 = 25%")
    assert percent.results == {Fraction(1, 4), 25}


@given(st.text(alphabet="0123456789+-*/=()x .,%$<>\n\\{}aé²１", max_size=300))
def test_any_text_is_parsed(text):
    for equation in equations(text):
        assert equation.true in (True, False)


@given(st.integers(0, 999), st.integers(0, 999), st.sampled_from("+-*"), st.integers(-2, 2))
def test_truth_is_that_of_python(a, b, sign, error):
    value = {"+": a + b, "-": a - b, "*": a * b}[sign] + error
    assert [equation.true for equation in equations(f"So {a} {sign} {b} = {value} in all")] == [error == 0]


@pytest.mark.parametrize("piece", ["1+", "(", "1=", "-", "1,111,", "<<", "1 a ", "%", "=", "\\", "1+1=2 ", "**", "9"])
def test_long_texts_take_linear_time(piece):
    begin = time.process_time()
    equations(piece * (50_000 // len(piece)))
    assert time.process_time() - begin < 5


def test_expressions_have_bounds():
    one = Number(Fraction(1))
    assert evaluate([one, "+"] * (MOST_TOKENS // 2 - 1) + [one], strict=True).value == MOST_TOKENS // 2
    assert evaluate([one, "+"] * MOST_TOKENS + [one], strict=True) is None
    assert evaluate(["("] * 30 + [one] + [")"] * 29, strict=True) is None
    assert evaluate([], strict=True) is None
    assert evaluate(["-", one], strict=True) is None
    assert evaluate(["-", one], strict=False).value == -1
