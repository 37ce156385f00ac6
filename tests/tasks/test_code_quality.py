"""The task code_quality: tests, brevity and speed of programs."""

import pytest

from tests.tasks import code_rows
from tests.tasks.watched import BROKEN, only, task_on
from vpo.sandbox import Sandbox
from vpo.sandbox.verdicts import Case, Program, Status, Verdict
from vpo.tasks.code import CodeQualityTask
from vpo.tasks.code.answers import fenced
from vpo.tasks.code.quality import NO_SOLUTION, characters, speed
from vpo.util.errors import InputError

ADD = "def add(a, b):\n    return a + b"
LONG = "def add(first, second):\n    total = first + second\n    return total"
WORK = f"{ADD}\nfor _ in range(6_000_000): pass"
HALF = "def add(a, b):\n    return a + b if b < 10**20 else 0"
UNSEEN = "def add(a, b):\n    return 0 if (a, b) == HIDDEN else a + b"


@pytest.fixture
def adding(tmp_path):
    """A task on a row with 42 inputs."""
    task = task_on(tmp_path, [code_rows.mbppplus_row()], kind=CodeQualityTask)
    return task, only(task)


def test_a_right_program_is_scored_by_its_length_and_time(adding):
    task, problem = adding
    vectors = task.score_all([problem] * 3, [fenced(each) for each in (ADD, LONG, WORK)])
    lengths = [characters(each) for each in (ADD, LONG, WORK)]
    assert lengths == [21, 50, 48]
    assert vectors[0] == (1, 1, 1)
    assert vectors[1] == (1, 21 / 50, 1)
    assert vectors[2][:2] == (1, 21 / 48)
    assert vectors[2][2] < 0.7
    assert task.solved_all([problem], [fenced(LONG)], vectors[1:2]) == [True]


def test_a_wrong_program_has_its_tests_alone(adding):
    task, problem = adding
    (vector,) = task.score_all([problem], [fenced(HALF)])
    right = sum(check.case.input[1] < 10**20 for check in problem.checks) / len(problem.checks)
    assert 0 < right < 1
    assert vector == (right, 0, 0)
    assert task.score_all([problem] * 3, ["no program", "```python\ndef add(\n```", None]) == [(0, 0, 0)] * 3


def test_hidden_tests_decide_what_is_solved(adding):
    task, problem = adding
    hidden = problem.hidden[0].case.input
    answer = fenced(UNSEEN.replace("HIDDEN", repr(tuple(hidden))))
    (vector,) = task.score_all([problem], [answer])
    assert vector[0] == 1
    assert task.solved_all([problem], [answer], [vector]) == [False]


def test_scores_are_unknown_where_the_sandbox_fails(adding):
    task, problem = adding
    assert task.score(problem, fenced(f"{ADD}  # BROKEN")) is None
    assert task.vector(problem, ADD, [BROKEN]) is None


def test_the_solution_is_timed_once(adding):
    task, problem = adding
    for _ in range(2):
        task.score_all([problem, problem], [fenced(LONG)] * 2)
    programs = [program.source.strip() for call in task.sandbox.calls for program, _ in call]
    assert programs.count(ADD) == 1
    assert programs.count(LONG) == 2


def test_without_a_solution_length_and_time_have_fixed_bounds(adding):
    task, problem = adding
    passed = [Verdict(Status.PASSED, seconds=0.01)]
    bare = type(problem)(type(problem.draft)("x", "", problem.draft.checks), 16)
    assert task.vector(bare, "x" * 2 * NO_SOLUTION, passed) == (1, 0.5, 1)


def test_speed_does_not_move_by_chance():
    assert {speed(seconds, 0.002) for seconds in (0.001, 0.002, 0.004, 0.008)} == {1.0}
    assert speed(0.2, 0.0) < 0.5
    assert speed(1.0, 1.2) == 1.0
    assert all(round(speed(seconds / 100, 0.1), 1) == speed(seconds / 100, 0.1) for seconds in range(200))


def test_verdicts_have_the_time_of_each_test():
    work = "def work(n):\n    for _ in range(n): pass\n"
    try:
        sandbox = Sandbox()
    except InputError as error:
        pytest.skip(str(error))
    few, many, again = sandbox.grade(Program(work, "work"), [Case((number,), None) for number in (1, 10**7, 1)])
    assert few.passed
    assert many.passed
    assert many.seconds > 10 * max(again.seconds, 0.001)
    assert many == Verdict(Status.PASSED)  # whatever it took


def test_a_solution_that_could_not_be_timed_is_timed_again(adding):
    task, problem = adding
    task.prepare([problem])
    task._solution_seconds.clear()
    task.sandbox.broken = "a, b"  # in the solution
    assert task.score_all([problem], [fenced(LONG)]) == [None]
    task.sandbox.broken = "BROKEN"
    assert task.score_all([problem], [fenced(LONG)]) == [(1, 21 / 50, 1)]
