"""math: MATH's and AIME's rows, and their vectors by hand."""

import json

import pytest

from vpo.tasks.math import checker
from vpo.tasks.math.checker import Checker
from vpo.tasks.math.competition import CompetitionProblem, CompetitionTask
from vpo.tasks.math.formulas import copied

pytest.importorskip("math_verify")

HENDRYCKS = {
    "problem": "What is half of one?",
    "level": "Level 1",
    "type": "Prealgebra",
    "solution": r"Half of $1$ is $\boxed{\frac{1}{2}}$.",
}
MATH_500 = {**HENDRYCKS, "answer": r"\frac{1}{2}", "subject": "Prealgebra", "unique_id": "test/prealgebra/1.json"}
AIME = {"ID": "2024-I-1", "Problem": "Find n.", "Solution": "It is 73, clearly.", "Answer": 73}
AMC = {"id": 0, "problem": "Find m + n.", "answer": 142.0, "url": "https://example.com"}
AIME_25 = {"problem": "Find n.", "answer": "073", "id": "0"}


def task_of(tmp_path, rows, name="test.jsonl", **settings):
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return CompetitionTask(data=str(path), **settings)


@pytest.mark.parametrize(
    ("row", "name", "answer", "gold"),
    [
        (HENDRYCKS, "test-0", r"\frac{1}{2}", HENDRYCKS["solution"]),
        (MATH_500, "test/prealgebra/1.json", r"\frac{1}{2}", HENDRYCKS["solution"]),
        (AIME, "2024-I-1", "73", r"\boxed{73}"),
        (AIME_25, "0", "073", r"\boxed{073}"),
        (AMC, "0", "142", r"\boxed{142}"),
        ({**AMC, "answer": 0.5}, "0", "0.5", r"\boxed{0.5}"),
    ],
)
def test_rows_as_published(tmp_path, row, name, answer, gold):
    task = task_of(tmp_path, [row])
    (problem,) = task.problems("test")
    assert (problem.id, problem.answer, task.gold(problem)) == (name, answer, gold)
    assert task.expected(problem) == (1, 1, 1)
    assert list(task.validate([problem])) == [None]
    assert r"\boxed{}" in task.ask(problem)[0]["content"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (r"\boxed{\frac12}", (1, 1, 1)),
        (r"\boxed{0.5}", (1, 1, 1)),
        (r"\boxed{50\%}", (1, 1, 1)),
        ("1/2", (1, 0, 1)),  # no box
        (r"\boxed{2} or \boxed{\frac12}", (1, 0, 1)),  # two boxes: the last one counts
        (r"\boxed{\frac12} or \boxed{2}", (0, 0, 0)),
        (r"\boxed{\frac12, 2}", (0, 1, 0)),
        (r"\boxed{\frac12 \text{ or } 2}", (0, 1, 0)),
        (r"\boxed{1, \frac12, 0.5, 1/2, 50\%}", (0, 1, 0)),  # in many forms
        (r"\boxed{2}", (0, 1, 0)),
        (r"\boxed{}", (0, 0, 0)),
        ("a long\nway to nothing", (0, 0, 0)),
        (r"\boxed{１/２}", (0, 1, 0)),
        ("x" * 19 + r" \boxed{\frac{1}{2}}" + " x" * 20, (1, 1, 37 / 79)),
    ],
)
def test_hand_worked_solutions(tmp_path, answer, expected):
    task = task_of(tmp_path, [HENDRYCKS])
    (problem,) = task.problems("test")
    assert task.score(problem, answer) == pytest.approx(expected)


def test_scores_are_unknown_where_the_checker_fails(tmp_path, monkeypatch):
    broken = Checker(script=tmp_path / "absent.py")
    monkeypatch.setattr(checker, "_shared", lambda process: broken)
    task = task_of(tmp_path, [HENDRYCKS])
    answers = [HENDRYCKS["solution"], "#### 2/4", None]
    assert task.score_all(list(task.problems("test")) * 3, answers) == [(1, 1, 1), None, (0, 0, 0)]


ROOT = CompetitionProblem("p", r"Simplify $\sqrt{180}$, for $x \ge 0.5$.", r"6\sqrt{5}", None)
LINE = CompetitionProblem(
    "p", r"A line meets $y = 2x + 1$ at $x = \frac{1}{2}$. Find $n$ if $n^2 - 1 = 3n$.", "2x+1", None
)


@pytest.mark.parametrize(
    ("problem", "final", "right"),
    [
        *((ROOT, text, True) for text in (r"6\sqrt5", r"\sqrt{5} \cdot 6", r"x=6\sqrt{5}", r"\sqrt{36}\sqrt{5}")),
        *((ROOT, text, False) for text in (r"\sqrt{180}", r"\sqrt {180}.", r"x = \sqrt{180}", r"(\sqrt{180})")),
        *((ROOT, text, False) for text in (r"\sqrt{180} = \sqrt{180}", r"\displaystyle\sqrt{180}", r"{\sqrt{180}}")),
        *((LINE, text, True) for text in ("2x+1", "y=2x+1", r"2 x + 1", "1+2x", "1 + 2 x")),  # the gold answer itself
        (CompetitionProblem("p", "Is $1/2$ more?", r"\frac{1}{2}", None), "1/2", True),
        (CompetitionProblem("p", "In degrees, not 600?", r"60^\circ", None), "60", True),
        (CompetitionProblem("p", r"Reduce $\frac{180}{24}$.", r"\frac{15}{2}", None), r"\dfrac{180}{24}", False),
        (CompetitionProblem("p", "Take $12x+1$.", "1+2x", None), "2x+1", True),  # no formula of the question
    ],
)
def test_a_formula_of_the_question_is_not_computed(problem, final, right):
    assert CompetitionTask().score(problem, rf"\boxed{{{final}}}")[0] == right


NAMES = (
    r"Of $-i$, $1+i$, $-2^{49}$, $\frac{3}{4}$, even or odd: $(\text{A})\ \frac{1}{2}$, \textbf{(H)} $\frac{180}{360}$."
)


@pytest.mark.parametrize(
    ("gold", "answer", "copy"),
    [
        *(("-i", "(-i)", False), ("x=-i", "(-i)", False), ("-i", "x=(-i)", False), ("1+i", "(1+i)", False)),
        *((r"(\text{H})", text, False) for text in ("H", "(H)", r"\textbf{(H)}", r"\text{(H)}", r"(\mathrm{H})")),
        *((r"\text{(H)}", "(A)", False), (r"\text{Even}", "even", False), ("-2^{49}", "(-2^{49})", False)),
        *((r"\frac{3}4", r"\frac{3}{4}", False), (r"\frac34", r"\frac 3{4}", False)),
        *(
            ("0.5", r"\frac{1}{2}", False),
            ("0.5", r"\frac{180}{360}", True),
            (r"\frac{1}{2}", r"\frac{180}{360}", True),
        ),
        *(
            (r"(1+i)\text{ m}", "1+i", False),
            ("7", "(1+i)", True),
            ("7", r"\left(1+i\right)", True),
            ("7", "1+i+0", False),
        ),
    ],
)
def test_a_right_answer_and_a_name_are_no_copies(gold, answer, copy):
    assert copied(NAMES, gold, answer) == copy


def test_without_a_solution_2000_characters_are_brief(tmp_path):
    task = task_of(tmp_path, [AIME_25])
    (problem,) = task.problems("test")
    assert task.score(problem, "x " * 900 + r"\boxed{73}") == (1, 1, 1)
    assert task.score(problem, "x " * 1995 + r"\boxed{73}") == (1, 1, 0.5)


def test_a_solution_with_several_boxes_is_not_expected_to_have_one(tmp_path):
    row = {**HENDRYCKS, "solution": r"\boxed{1} divided by two: \boxed{\frac{1}{2}}"}
    task = task_of(tmp_path, [row])
    (problem,) = task.problems("test")
    assert task.expected(problem) == (1, 0, 1)
    assert list(task.validate([problem])) == [None]


def test_answers_that_look_alike_are_the_same():
    task = CompetitionTask()
    assert task.normal_form(r"\boxed{73}") == task.normal_form("#### 73.0") == task.normal_form("73")
    assert task.normal_form(r"\boxed{x + 1}") == task.normal_form(r"so \boxed{x+1}")
    assert task.normal_form(r"\boxed{\dfrac{x}{2}}") == task.normal_form(r"\boxed{\frac{x}{2}}")
    assert task.normal_form(r"\boxed{\textbf{(073)}}") == task.normal_form("73")
    assert task.normal_form(r"\boxed{3xy}") != task.normal_form("3")
    assert task.normal_form("two\nlines") is None


def test_aime_has_one_split_whatever_its_file_is_called(tmp_path):
    task = task_of(tmp_path, [AIME], "train-00000-of-00001.jsonl", source="aime")
    assert len(task.problems("test")) == 1
    with pytest.raises(ValueError, match="no split 'train' in math on aime"):
        task.problems("train")


def test_rows_without_an_answer_are_left_out(tmp_path):
    rows = [{"problem": "p", "answer": answer} for answer in (None, "1", " ", "2")]
    task = task_of(tmp_path, rows)
    with pytest.warns(UserWarning, match="left out 2 rows of math whose answer is empty; the first is test-0"):
        assert [(each.id, each.answer) for each in task.problems("test")] == [("test-1", "1"), ("test-3", "2")]
    solved = {"problem": "p", "answer": None, "solution": r"\boxed{3}"}
    assert task_of(tmp_path, [solved]).problems("test")[0].answer == "3"


@pytest.mark.parametrize(
    ("row", "settings", "message"),
    [
        ({"problem": "p", "solution": "none"}, {}, r"test.jsonl:1: a row must have an answer, or a solution with one"),
        ({"problem": "p", "answer": "1000"}, {"source": "aime"}, "must be an integer in 0..999, not '1000'"),
        ({**AMC, "answer": float("inf")}, {}, "test.jsonl:1: an answer must be a finite number, not inf"),
        ({"answer": "1"}, {}, "the field 'problem' is missing; the row has answer"),
        (AIME, {"source": "amie"}, "source 'amie' is not known: did you mean 'aime'?"),
    ],
)
def test_rows_are_checked(tmp_path, row, settings, message):
    with pytest.raises(ValueError, match=message):
        task_of(tmp_path, [row], **settings).problems("test")
