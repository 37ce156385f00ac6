"""Final answers: where they are, when two are equal, and what a hostile one does to the checker."""

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpo.tasks.math import checker
from vpo.tasks.math.answers import boxes, final_answer, one_box
from vpo.tasks.math.checker import Checker, equal_all
from vpo.tasks.math.formulas import computable, copied
from vpo.tasks.math.plain import compare_plain, plain_number


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
    begin = time.process_time()
    assert boxes(r"\boxed{" * 100_000) == []
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("18", 18), ("-3", -3), ("$18.00", 18), (r"\$1,234.50", Fraction(2469, 2)), ("1{,}234", 1234), ("18.", 18)),
        *(("20%", 20), (r"20\%", 20), ("18 eggs", 18), (r"18\text{ dollars}", 18), (".5", Fraction(1, 2)), ("007", 7)),
        *(("18 or twenty", None), ("18 million", None), ("18 20", None), ("1,23", None), ("3/4", None), ("１８", None)),
        *(("two", None), ("", None), ("1e5", None), ("9" * 16, None), ("18 and more", None)),
        *(("3xy", None), ("2ab", None), ("12m", None), ("3 xy", None), ("3 abc", None), ("3abc", None), ("3 ln", None)),
        *(("3 squared", None), (r"3\text{ squared}", None), ("3 thirds", None), ("3 factorial", None), ("3 pi", None)),
        *(("5cm", 5), ("5 km", 5), (r"5\text{ m}", 5), (r"5\mathrm{cm}^2", 5), ("5 cm^{3}", 5), ("5 m²", None)),
        *(("60 miles per hour", 60), ("12 square feet", 12), ("(073)", 73), (r"\textbf{(073)}", 73), ("9€", 9)),
        *((r"\mathrm{73}.", 73), (r"11,\! 111", 11_111), ("28 percent", 28), ("3 gyms", 3), ("(1)(2)", None)),
        *(("5^2", None), ("5²", None), ("5^{2}", None), ("5!", None), (r"5\mathrm{i}", None), ("5 cm²", 5)),
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
        *(("3xy", "3", False), ("3", "3xy", False), ("3", "3 squared", False), ("3", r"3\text{ cubed}", False)),
        *(("073", r"\textbf{(073)}", True), ("73", r"\textbf{074}", False), (r"\mathrm{Evelyn}", "Evelyn", True)),
        *((r"\text{Evelyn}", r"\mathrm{Evelyn}", True), ("Evelyn", r"\textbf{Debra}", False), ("1", "1,1", False)),
        *(
            ("18", r"\{18\}", False),
            ("18", r"\left\{18\right\}", False),
            ("18", "[18]", False),
            ("1", "1 and 1", False),
        ),
        *(("1", r"1\text{ or }1", False), ("1", "1;1", False), ("1", "x=1, x=1", False), ("1,1", "1", False)),
        *(("1,2", "2,1", None), ("3,-3", r"\pm 3", None), (r"\pm 3", "3,-3", None), ("(1,2)", "1,2", None)),
        *(
            ("50\\%", "0.5", True),
            ("0.5", "50%", True),
            ("50\\%", "50", True),
            ("50", "0.5", False),
            ("5%", "50%", False),
        ),
        *(
            ("0 < x < 1", "(0,1)", None),
            ("(p,q)=(3,2)", "(3,2)", None),
            ("x=1", r"\{1\}", False),
            ("1,000", "1000", True),
        ),
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


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [
        *(("5t", "5", False), ("5", "5t", False), ("x+2t", "x+2", False), ("x+2m", "2m+x", True), ("2ab", "2ba", True)),
        *((r"\frac{2}{3}ab", r"\frac23", False), (r"\frac13", r"\frac13 meters", True), ("12m", "12", False)),
        *(("1,1,2", "1,2,1", True), ("1,1,2", "1,2,2", False), ("1,1", r"1,\frac22", True), ("1,1", "1,2", False)),
        *((r"\frac12", r"\textbf{\dfrac{1}{2}}", True), (r"\frac12", r"\text{\dfrac{1}{3}}", False)),
        *((r"-\frac{5}{3}.", r"-\dfrac53", True), ("3,-3", r"\pm 3", True), (r"\{1,2\}", "2,1", True)),
    ],
)
def test_letters_lists_and_fonts_reach_the_checker_as_they_are_meant(gold, answer, equal):
    pytest.importorskip("math_verify")
    assert equal_all([(gold, answer)]) == [equal]


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


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "9^{9^{9^9}}",
            "9^{9^9}",
            "9^9^9",
            "9**9**9",
            "x^{9^{9^9}}",
            "9^{(9)^9}",
            "9^{99999}",
            "9^99999",
            "9^{9}^{9}",
        ),
        *(
            "1" * 101,
            "1 " * 101,
            "99999!",
            "(x+1)^{9999}",
            r"\binom{99999}{5}",
            "((9!)!)!",
            "3!!",
            r"\frac{1}{9^{9^{9}}}",
            "e^{x^{9^9}}",
            "((9^{999})^{999})^{999}",
            "((((9^{99})^{99})^{99})^{99})",
            "9^{9999*9999}",
            r"9^{9999 \cdot 9999}",
            "9^{9!}",
            "(9999!)^{999}",
            r"(\sqrt{2}+1)^{2015}",
        ),
    ],
)
def test_what_algebra_hangs_on_is_refused(answer):
    assert not computable(answer)
    assert equal_all([("18", answer), (answer, answer)]) == [False, True]


@pytest.mark.parametrize(
    "answer",
    [
        "e^{x^2}",
        "2^{10}",
        "2^{2005}",
        "(x+1)^{100}",
        "(1/2)^{2015}",
        r"\left(2\right)^{2015}",
        r"\{2\}^{2015}",
        r"\sum_{k=1}^{9999} k",
        "x_{n}^{2015}",
        "(x^2+1)^{100}",
        "(2^{10})^{100}",
        "(x^{2005}+1)^2",
        "(5!)^{2}",
        r"e^{2 \cdot \pi i/3}",
        r"\binom{100}{5}",
        "x^2+y^3",
        "x^{2}y^{3}",
        "(n-1)!",
        "2^{2n}3^{n+1}",
        "^",
        "}^^{",
    ],
)
def test_what_algebra_computes_is_not_refused(answer):
    assert computable(answer) == (answer != "}^^{")


@pytest.mark.parametrize(
    "piece", ["^", "{", "9^{", "}", "!", "9", "(", "x=", "{x^", "_{", ")^", "\\frac{1}", "\\text{", "\ud800"]
)
def test_formulas_are_read_in_linear_time(piece):
    text = piece * (200_000 // len(piece))
    begin = time.process_time()
    computable(text)
    copied("Find $x$.", "1", text[:300])
    copied(text, "1", "2x")
    assert time.process_time() - begin < 3


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
    with pytest.raises(ValueError, match=r"task math needs the package math-verify: pip install .*\[math\]"):
        checker.require_math_verify("math")
