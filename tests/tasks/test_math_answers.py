"""Final answers: where they are, when two are equal, and what a hostile one does to the checker."""

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpo.tasks.math import checker
from vpo.tasks.math.answers import boxes, compare_plain, final_answer, one_box, plain_number
from vpo.tasks.math.checker import Checker, equal_all


@pytest.mark.parametrize(
    ("solution", "expected"),
    [
        ("18", "18"),
        ("First 9.\n#### 18", "18"),
        ("#### 17\nno, wait\n#### 18", "18"),  # the last one counts
        (r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"\boxed{1} or \boxed{2}", "2"),
        (r"\boxed{1}" + "\n#### 2", "2"),
        ("#### 2\n" + r"\boxed{1}", "1"),
        (r"\boxed 7", "7"),
        (r"\fbox{7}", "7"),
        (r"$\boxed{\text{a {nested} one}}$", r"\text{a {nested} one}"),
        (r"\boxed{1", r"\boxed{1"),  # never closed: one short line, which equals nothing
        ("$18$", "18"),
        ("a line\nanother line", None),
        ("####\n18", None),
        ("", None),
        ("x" * 101, None),
        ("#### " + "1" * 301, None),
        ("a " * 20_000 + "#### 18", None),
    ],
)
def test_final_answers_are_extracted(solution, expected):
    assert final_answer(solution) == expected


def test_one_box():
    assert one_box(r"\boxed{1} and again \boxed{1}")
    assert not one_box(r"\boxed{1} or \boxed{2}")
    assert not one_box("#### 1")
    assert boxes(r"\boxed{1} \boxed{\boxed{2}}")[-1][1] == r"\boxed{2}"


def test_unclosed_boxes_take_linear_time():
    begin = time.perf_counter()
    assert boxes(r"\boxed{" * 100_000) == []
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("18", 18), ("-3", -3), ("$18.00", 18), (r"\$1,234.50", Fraction(2469, 2)), ("1{,}234", 1234), ("18.", 18)),
        *(("20%", 20), (r"20\%", 20), ("18 eggs", 18), (r"18\text{ dollars}", 18), (".5", Fraction(1, 2)), ("007", 7)),
        *(("18 or twenty", None), ("18 million", None), ("18 20", None), ("1,23", None), ("3/4", None), ("１８", None)),
        *(("two", None), ("", None), ("1e5", None), ("9" * 16, None), ("18 and more", None)),
    ],
)
def test_plain_numbers(text, value):
    assert plain_number(text) == value


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [
        *(("18", "18.0", True), ("18", "19", False), ("18", "$18", True), ("18", "１８", False)),
        *((r"\frac12", r"\frac 12", True), (r"\text{Evelyn}", "evelyn", True), (r"\text{Evelyn}", "nylevE", False)),
        *(("even", r"\text{odd}", False), (r"\frac12", "0.5", None), ("18", "9*2", None), ("x", "y", None)),
    ],
)
def test_plain_answers_are_compared(gold, answer, equal):
    assert compare_plain(gold, answer) is equal


@given(st.text(), st.text())
def test_any_text_is_compared(gold, answer):
    assert compare_plain(gold, answer) in (True, False, None)
    plain_number(answer)
    final_answer(answer)


@pytest.fixture(scope="module")
def checks():
    pytest.importorskip("math_verify")
    made = Checker(limit=5.0, processes=2)
    yield made
    made.close()


EQUAL = [
    *((r"\frac{1}{2}", "0.5"), (r"\frac{1}{2}", r"\dfrac{2}{4}"), ("x^2+1", "1+x^2"), ("2,3", "3,2"), ("18", "x=18")),
    *(("[0,1)", "[0, 1)"), (r"3\sqrt{2}", r"\sqrt{18}"), (r"50\%", "0.5"), (r"90^\circ", "90"), (r"\text{(A)}", "A")),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{bmatrix} 1 \\ 2 \end{bmatrix}"),
]
# Answers that give several values, or mention the right one.
DIFFERENT = [
    *("18 or 20", "18, 20", r"18 \text{ or } 20", r"\{18, 20\}", "[18,20]", "(18, 20)", "18;19", "18 19 20", "18=20"),
    *(r"18} \boxed{20", r"20} \boxed{18", r"20}$ $18$ \boxed{4", r"17 \pm 1", "eighteen", "x<18", "18.0000001", ""),
    *(r"18 \cup 20", "__import__('os').getpid()", r"\mathrm{system('true')}", "\x00", "18\x00", r"\boxed{", "}" * 50),
    *("18 @ 20", "20 @ 18", r"\frac{ 18", r"\begin 18", "# 18", "18 ~~ 20", r"\nothing{18", "^18", "18^", "_18"),
]


def test_the_checker_knows_what_is_equal(checks):
    assert checks.equal(EQUAL) == [True] * len(EQUAL)


def test_answers_that_hedge_are_not_equal(checks):
    results = checks.equal([("18", answer) for answer in DIFFERENT])
    assert [answer for answer, equal in zip(DIFFERENT, results, strict=True) if equal is not False] == []


def test_a_comparison_that_hangs_is_killed_and_the_others_count(checks):
    quick = Checker(limit=1.5, processes=1)
    assert quick.equal([("18", r"\frac{36}{2}")]) == [True]
    begin = time.perf_counter()
    pairs = [("18", "9^{9^{9^{9}}}"), ("18", r"\frac{36}{2}"), ("18", r"(x+y+z+w)^{3000}"), ("18", "9+9")]
    assert quick.equal(pairs) == [False, True, False, True]
    assert time.perf_counter() - begin < 60
    quick.close()


def test_a_process_that_dies_twice_was_killed_by_the_text(tmp_path):
    script = tmp_path / "dies.py"
    script.write_text("print('true', flush=True)\ninput()\n")
    assert Checker(script=script).equal([("18", "9+9")]) == [False]


def test_without_a_process_the_result_is_unknown(tmp_path, monkeypatch):
    assert Checker(script=tmp_path / "absent.py").equal([("18", "9+9"), ("1", "2")]) == [None, None]
    broken = Checker(script=tmp_path / "absent.py")
    monkeypatch.setattr(checker, "_shared", lambda process: broken)
    assert equal_all([("18", "18"), ("18", None), ("18", "19"), ("18", "9+9")]) == [True, False, False, None]


def test_tasks_that_need_the_checker_say_so(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"task gsm8k needs the package math-verify: pip install 'vpo\[math\]'"):
        checker.require_math_verify("gsm8k")
