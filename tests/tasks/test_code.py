"""The task code: programs extracted from answers, objectives and hidden tests, and unknown scores."""

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
from vpo.tasks.code.answers import extract_program, fenced, program_form
from vpo.tasks.code.problem import Check, Draft, choose_tests

ADD = "def add(a, b):\n    return a + b\n"


@pytest.fixture
def adding(tmp_path):
    """A task on a row with 42 inputs."""
    task = task_on(tmp_path, [code_rows.mbppplus_row()])
    return task, only(task)


# Answers


@pytest.mark.parametrize(
    ("answer", "program"),
    [
        ("```python\nx = 1\n```", "x = 1"),
        ("First.\n```python\nx = 1\n```\nBetter:\n```py\nx = 2\n```\nDone.", "x = 2"),
        ("```\nx = 1\n```", "x = 1"),
        ("```Python3\nx = 1\n```", "x = 1"),
        ("```python\nx = 1\n```\n```text\n3\n```", "x = 1"),
        ("```python\nx = 1\n```\nIt prints\n```\n3\n```", "x = 1"),
        ("```python\nx = '\x0c\u2028'\n```", "x = '\x0c\u2028'"),
        ("```python\nx = 1\n```\n```python\nx = ", "x = 1"),
        ("  ```python\n  x = 1\n  ```", "x = 1"),
        ("x = 1", "x = 1"),
        ("```python\nx = 1", "x = 1"),
        ("```python\n\n```", None),
        ("```text\nx\n```", None),
        ("", None),
        (" \n", None),
        ("x" * 200_000, None),
        ("```python\ndef f(): 1\n```\nUse it:\n```python\nprint(f())\n```", "def f(): 1"),
        ("```python\nn = input()\n```\nUse it:\n```python\nprint(5)\n```", "n = input()"),
        ('```python\ndef f():\n    """\n    ```\n    f()\n    ```\n    """\n```', None),
        ("```python\nx = 1\n```python\nx = 2\n```", "x = 2"),
        ("```python\nx = 1\n``` This is it.", "x = 1"),
        ("```python\nx = 1\n```.\nThis is it.", "x = 1"),
        ("```python\nx = 1\n```output\n1\n```", "x = 1"),
        ("```python\nx = 1\n```json title=a.json\n1\n```", "x = 1"),
        ("```python title=a.py\nx = 1\n```", "x = 1"),
        ("```python:a.py\nx = 1\n```", "x = 1"),
        ("```python3.11\nx = 1\n```", "x = 1"),
        ("```{python}\nx = 1\n```", "x = 1"),
        ("```pycon\n>>> x\n```", None),
        ("````python\nx = 1\n```\n````", "x = 1\n```"),
        ("Here: ```python\nif x:\n        x = 1\n```", "if x:\n        x = 1"),
        ("- ```\n  x = 1\n  ```", "x = 1"),
        ("```python\nx = 1```", "x = 1"),
        ("```python\nx = 1\n```\n```python\nx = 2``` \n", "x = 2"),
        ("```python\r\nx = 1\r\ny = 2\r\n```\r\n", "x = 1\ny = 2"),
        ("Say ```x = 1``` or\n```x = 2```", None),
    ],
)
def test_the_program_of_an_answer_is_its_last_closed_fence(answer, program):
    inside = answer.removeprefix("```python\n").removesuffix("\n```")
    assert extract_program(answer) == (inside if program is None and '"""' in answer else program)


F, G, USE = "```python\ndef f(): 1\n```", "```python\ndef g(): 2\n```", "```python\nprint(f())\n```"
OTHER_F = "```python\ndef f(): 3\n```"


@pytest.mark.parametrize(
    ("answer", "entry", "program"),
    [
        (f"{F}\n{USE}", "f", "def f(): 1"),
        (f"{F}\n{G}", "f", "def f(): 1"),
        (f"{F}\n{G}", "g", "def g(): 2"),
        (f"{F}\nNo.\n{OTHER_F}\n{USE}", "f", "def f(): 3"),  # a draft is not the answer
        (f"{F}\n{G}", "h", "def g(): 2"),
        ("```python\nclass S:\n    def f(self): 1\n```\n" + USE, "S.f", "class S:\n    def f(self): 1"),
        (f"{F}\n```python\ndef f(): 9 +", "f", "def f(): 1"),
        ("```\ndef f(): 1\n```\n```python\nassert f() == 1\n```", "f", "def f(): 1"),  # models forget the language
        ("```\ndef f(): 1\n```\n```python\nassert f() == 1\n```", None, "def f(): 1"),
        (f"```\ndef f(): 3\n```\n{F}", "f", "def f(): 1"),
        (f"{F}\n```\ndef f(): 3\n```", "f", "def f(): 1"),
        (f"```\ndef f(): 1\n```\n{G}", "f", "def f(): 1"),
        (f"```python\nf = lambda: 1\n```\n{USE}", "f", "f = lambda: 1"),
        (f"{F}\n```python\nf == lambda: 3\nff = lambda: 3\n```", "f", "def f(): 1"),
        ("def f(): 1\n```", "f", "def f(): 1"),  # the fence was never opened
        ("import os\n\ndef f(): 1\n```\n\nIt returns 1.", "f", "import os\n\ndef f(): 1"),
        (f"def f(): 1\n```\nUse it:\n{USE}", "f", "def f(): 1"),
        (f"def f(): 1\n```\nNo:\n{OTHER_F}", "f", "def f(): 3"),
        (f"I import \ndef f(): 1\n{USE}", "f", "print(f())"),
        ("```python\ndef f(): 1\n```output\n1\n```", "f", "def f(): 1"),
        (f"```python\ndef f(): 1\n{USE}", "f", "def f(): 1"),
        (f"```python\ndef f(): 1\n{OTHER_F}", "f", "def f(): 3"),  # of two, the closed one
        (f"{F}\n```python\ndef f(): 9 +\n{USE}", "f", "def f(): 1"),
        (f"{G}\n```python\ndef f(): 1", "f", "def f(): 1"),
        ("# adds\ndef f(): 1\n```\nThis works.", "f", "# adds\ndef f(): 1"),
        ("N = 1\ndef f(): N\n```\nThis works.", "f", "N = 1\ndef f(): N"),
        ("n, m = 1, input()\n```\nThis works.", None, "n, m = 1, input()"),
        ('"""A text."""\ndef f(): 1\n```\nThis works.', "f", '"""A text."""\ndef f(): 1'),
        ("It is\ndef f(): 1\n```\nThis works.", "f", None),  # nor is the prose a program
        ("# Solution\n\nIt reads stdin.\n```\nprint(5)\n```", None, "print(5)"),
        ("# Solution\ndef f(): 1 is it:\n```\nprint(5)", "f", "print(5)"),
    ],
)
def test_the_program_is_the_last_fence_that_defines_the_entry_point(answer, entry, program):
    assert extract_program(answer, entry) == program


@pytest.mark.parametrize(
    ("completion", "answers", "expected"),
    [
        (f"Here it is.\n{F}\nSo.", 1, [f"Here it is.\n{F}\nSo."]),
        ("I cannot do that.", 1, [None]),
        ("def f(): 1", 1, ["def f(): 1"]),
        (f"<think>{F}</think>", 1, [None]),
        (f"{F}\n<answer> ", 1, [F]),
        (f"{F[:-4]}\n{OTHER_F}", 2, [F[:-4], OTHER_F]),
        (f"{F} It is 1.\n{OTHER_F}", 2, [f"{F} It is 1.", OTHER_F]),
        (f"<answer>{G}</answer>\n{F}", 1, [G]),
        (f"One:\n{F}\nTwo:\n{OTHER_F}\n{USE}", 2, [F, OTHER_F]),
        (f"{F}\n{OTHER_F}\n{F}", 2, [F, OTHER_F]),
        (f"{G}\n{F}\n{OTHER_F}", 3, [F, OTHER_F, None]),
        (f"<answer_1>{F}</answer_1>\n{OTHER_F}", 2, [F, None]),
        (F, 2, [F, None]),
        ("def f(): 1\n```\nIt works.", 1, ["def f(): 1\n```\nIt works."]),
        (f"<think>{F}</think>{OTHER_F}", 2, [OTHER_F, None]),
        ("```python\nprint(input())\n```\n```python\nprint(1)\n```", 2, ["```python\nprint(input())\n```", None]),
    ],
)
def test_programs_are_read_without_tags(completion, answers, expected):
    parsed = CodeTask().parse(completion, answers)
    assert [each and each.strip() for each in parsed] == expected


def test_programs_are_the_same_but_for_layout_comments_and_docstrings():
    task = CodeTask()
    one = fenced('def f(a):\n    """Adds."""\n    return (a + 1)  # one more\n')
    other = "def f(a):\n\n  return a+1"
    assert task.normal_form(one) == task.normal_form(other) is not None
    assert task.normal_form(one) != task.normal_form("def f(b):\n  return b+1")
    assert task.normal_form("def f(:") is None
    assert task.normal_form('"""A text."""') == task.normal_form("# nothing")


DEEP = ["(" * 50_000, "[" * 90 + "]" * 90, "-" * 50_000 + "1", "x" + ".x" * 30_000, "x = " + "1 + " * 20_000 + "1"]
ODD = ["\x00", "\ud800 = 1", "x = '\udfff'", "1" * 50_000, "\\", "'\\d'", "x = 1 is 1", "\f\x0bif", "```\n\x00\n```"]


@pytest.mark.parametrize("text", [*DEEP, *ODD, "if 1:\n" + " " * 9 + "if 1:\n" * 200], ids=range(15))
def test_hostile_text_is_parsed_without_harm(adding, text):
    task, problem = adding
    form = task.normal_form(text)
    assert form is None or isinstance(form, str)
    assert sum(task.score(problem, text)) == 0
    assert sum(task.score(problem, fenced(text))) == 0


@given(st.lists(st.sampled_from(["```", "python", "\n", " ", "def f", "(", ")", ":", "'", "\x00", "#", "x"])))
def test_any_text_is_parsed(pieces):
    source = extract_program("".join(pieces))
    if source is not None:
        program_form(source)


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
