"""The task code: the choice of tests, prompts, objectives and hidden tests, and unknown scores."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks import code_rows
from tests.tasks.watched import WatchedSandbox, only, task_on
from vpo import set_reward
from vpo.evaluation.score import UnscoredCompletion, score_completions
from vpo.evaluation.scored import ScoreCounts
from vpo.sandbox.verdicts import Case, Program, Status, Verdict
from vpo.tasks.answers import write
from vpo.tasks.code import CodeTask
from vpo.tasks.code.answers import fenced
from vpo.tasks.code.problem import Check, Draft, choose_tests

ADD = "def add(a, b):\n    return a + b\n"


@pytest.fixture
def adding(tmp_path):
    """A task on a row with 42 inputs."""
    task = task_on(tmp_path, [code_rows.mbppplus_row()])
    return task, only(task)


DEEP = ["(" * 50_000, "[" * 90 + "]" * 90, "-" * 50_000 + "1", "x" + ".x" * 30_000, "x = " + "1 + " * 20_000 + "1"]
ODD = ["\x00", "\ud800 = 1", "x = '\udfff'", "1" * 50_000, "\\", "'\\d'", "x = 1 is 1", "\f\x0bif", "```\n\x00\n```"]


@pytest.mark.parametrize("text", [*DEEP, *ODD, "if 1:\n" + " " * 9 + "if 1:\n" * 200], ids=range(15))
def test_hostile_text_is_parsed_without_harm(adding, text):
    task, problem = adding
    form = task.normal_form(text)
    assert form is None or isinstance(form, str)
    assert sum(task.score(problem, text)) == 0
    assert sum(task.score(problem, fenced(text))) == 0


# The choice of tests


def checks(sizes):
    return tuple(Check(Case("x" * size, "", compare="text")) for size in sizes)


def test_tests_are_spread_over_their_sizes():
    draft = Draft("p", "", checks(np.random.default_rng(0).permutation(160)))
    chosen, hidden = choose_tests(draft, 16, seed=0)
    assert [check.size // 10 for check in chosen] == list(range(16))  # one of each sixteenth
    assert sorted(check.size for check in chosen + hidden) == list(range(160))
    assert choose_tests(draft, 16, seed=0) == (chosen, hidden)
    assert choose_tests(draft, 16, seed=1)[0] != chosen
    assert [check.size for check in choose_tests(Draft("p", "", checks([3, 1, 2])), 16, 0)[0]] == [1, 2, 3]
    assert len(choose_tests(Draft("p", "", checks(range(17))), 16, 0)[1]) == 1


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(1, 16), st.integers(0, 5))
def test_every_test_is_chosen_or_hidden(sizes, most, seed):
    chosen, hidden = choose_tests(Draft("p", "", checks(sizes)), most, seed)
    assert len(chosen) == min(most, len(sizes))
    assert sorted(check.size for check in chosen + hidden) == sorted(sizes)


def test_settings(tmp_path):
    problem = only(task_on(tmp_path, [code_rows.mbppplus_row()], tests=3))
    assert (len(problem.checks), len(problem.hidden)) == (3, 39)
    for tests in (0, 17):
        with pytest.raises(ValueError, match=rf"tests must lie in 1\.\.16, not {tests}"):
            CodeTask(tests=tests)


def test_problems_are_plain_data(adding):
    _, problem = adding
    assert pickle.loads(pickle.dumps(problem)) == problem


# Prompts


def test_the_question_says_how_a_program_is_called_and_nothing_of_its_tests(tmp_path):
    secret = [{"input": "31415\n", "output": "27182\n", "testtype": "stdin"}]
    row = code_rows.livecodebench_row(public_test_cases="[]", private_test_cases=code_rows.packed(secret))
    task = task_on(tmp_path, [row])
    (message,) = task.ask(only(task))
    assert "reads standard input and prints" in message["content"]
    assert "```python" in message["content"]
    assert "31415" not in message["content"]
    assert "27182" not in message["content"]
    method = task_on(tmp_path, [code_rows.livecodebench_row(functional=True)])
    assert "as the method Solution.work" in method.question(only(method))[0]["content"]
    function = task_on(tmp_path, [code_rows.mbpp_row()])
    content = function.question(only(function, "train"))[0]["content"]
    assert "as the function order" in content
    assert "def order(items, up=True):" in content
    assert "[3]" not in content


# Scores


def test_each_test_is_an_objective_and_the_sets_of_programs_differ(adding):
    task, problem = adding
    assert task.names_of(problem) == tuple(f"test_{number}" for number in range(1, 17))
    small = task.score(problem, "def add(a, b):\n    return a + b if a < 20 else 0")
    large = task.score(problem, "def add(a, b):\n    return a + b if a >= 20 else 0")
    assert np.add(small, large).tolist() == [1] * 16
    assert 6 <= sum(small) <= 10
    assert set_reward([small, large]) > max(set_reward([small]), set_reward([large])) + 0.01


def test_an_answer_without_a_program_is_not_run(adding):
    task, problem = adding
    task.sandbox.calls.clear()
    assert task.score_all([problem] * 2, [None, "```text\nx"]) == [(0.0,) * 16] * 2
    assert task.sandbox.calls == []
    assert task.score_all([problem], ["def ("]) == [(0.0,) * 16]
    syntax = task.sandbox.grade_many([(Program("def (", "add"), [problem.checks[0].case])])[0][0]
    assert (syntax.reason, syntax.detail[:11]) == ("exception", "SyntaxError")  # seen by the judge, without a start


def test_all_programs_are_run_in_one_call_the_same_one_once(adding):
    task, problem = adding
    task.sandbox.calls.clear()
    vectors = task.score_all([problem] * 4, [ADD, fenced(ADD), None, "def add(a, b): return 0"])
    assert [sum(vector) for vector in vectors] == [16, 16, 0, 0]
    ((*run,),) = task.sandbox.calls
    assert [cases for _, cases in run] == [16, 16, 16]  # ADD ends in an empty line, and in its fence does not


def test_scores_are_unknown_where_the_sandbox_fails(adding):
    task, problem = adding
    good, unknown = task.score_all([problem] * 2, [ADD, f"{ADD}# BROKEN"])
    assert sum(good) == 16
    assert unknown is None
    assert task.score(problem, f"{ADD}# BROKEN") is None
    assert task.solved_all([problem], [ADD], [None]) == [None]


def test_tests_that_were_not_run_are_not_passed(adding):
    task, problem = adding
    outcomes = [Status.PASSED, Status.FAILED, Status.NOT_RUN] + [Status.PASSED] * 13
    task.sandbox.grade_many = lambda jobs: [[Verdict(each) for each in outcomes] for _ in jobs]
    assert task.score(problem, ADD) == (1, 0, 0, *[1] * 13)


# Hidden tests


def test_hidden_tests_are_run_only_where_the_chosen_ones_pass(adding):
    task, problem = adding
    seen = {check.case.input for check in problem.checks}
    cheat = f"def add(a, b):\n    return a + b if (a, b) in {seen!r} else None"
    answers = [ADD, cheat, "def add(a, b): return 0", None, "def ("]
    task.sandbox.calls.clear()
    vectors = task.score_all([problem] * 5, answers)
    assert sum(vectors[1]) == 16
    assert {cases for _, cases in task.sandbox.calls[0]} == {16}
    assert task.solved_all([problem] * 5, answers, vectors) == [True, False, False, False, False]
    assert [cases for _, cases in task.sandbox.calls[1]] == [26, 26]


def test_solved_is_unknown_where_the_sandbox_fails_on_hidden_tests(adding):
    task, problem = adding
    vectors = task.score_all([problem], [ADD])
    task.sandbox = WatchedSandbox(broken="def add")
    assert task.solved_all([problem], [ADD], vectors) == [None]


def test_a_pool_of_code_is_ragged_and_skips_unknown_scores(tmp_path):
    rows = [code_rows.mbppplus_row(), code_rows.mbppplus_row(task_id="Mbpp/9002", plus_input=[])]
    task = task_on(tmp_path, rows)
    large, small = task.problems()
    counts = ScoreCounts()
    completions = [
        UnscoredCompletion(large, write([fenced(ADD), "x"]), 2, {"generation": 0}),
        UnscoredCompletion(small, write([fenced(ADD), fenced(f"{ADD}# BROKEN")]), 2, {"generation": 0}),
        UnscoredCompletion(small, write([fenced(ADD), fenced("pass")]), 2, {"generation": 1}),
    ]
    rows = []
    for each in score_completions(task, completions):
        counts.add(each)
        rows += each.rows
    assert [(row["problem"], len(row["scores"]), row["solved"]) for row in rows] == [
        ("Mbpp/9001", 16, True),
        ("Mbpp/9001", 16, False),
        ("Mbpp/9002", 2, True),
        ("Mbpp/9002", 2, False),
    ]
    assert (counts.completions, counts.unknown, counts.answers) == (3, 1, 4)
    assert counts.data()["mean"]["test_16"] == 0.5
    assert counts.data()["mean"]["test_1"] == 0.5


def test_what_is_imported_from_the_future_comes_before_the_prompt(tmp_path):
    task = task_on(tmp_path, [code_rows.humaneval_row()])
    answer = "from __future__ import annotations\n\ndef half(x: Missing) -> float:\n    return x / 2\n"
    assert task.score(only(task), answer) == (1, 1)


def test_contests_are_no_test(tmp_path):
    unnamed = task_on(tmp_path, [code_rows.codecontests_row()], "codecontests.jsonl")
    assert len(unnamed.problems("train")) == len(unnamed.problems("test")) == 1
    task = task_on(tmp_path, [code_rows.codecontests_row()], "codecontests_train.jsonl")
    assert len(task.problems("train")) == 1
    with pytest.raises(ValueError, match="by its name this is the part 'train', not 'test'"):
        task.problems("test")


def test_unknown_scores_are_none():
    with pytest.raises(ValueError, match="the scores of all 3 completions are unknown: see vpo doctor"):
        ScoreCounts(completions=3, unknown=3).data()
