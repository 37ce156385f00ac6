"""Searching for programs: repairs by the tests that fail, an archive of complementary programs, hidden tests."""

import json
import re

import pytest

pytest.importorskip("transformers")

from tests.endpoint import endpoint
from tests.tasks.code_rows import mbppplus_row
from vpo.sandbox import ISOLATIONS, SAFE, unavailable_reason
from vpo.search.candidates import Candidate, Move, SearchProblem
from vpo.search.config import SearchConfig
from vpo.search.goals import goals_of
from vpo.search.log import CANDIDATES, GENERATIONS
from vpo.search.operators import request_for_move
from vpo.search.run import search_into
from vpo.search.scorer import GoalScorer, ScoringRequest
from vpo.tasks import get

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # those of other packages
    pytest.mark.skipif(
        all(unavailable_reason(ISOLATIONS[name]) for name in SAFE), reason="no isolation backend works here"
    ),
]
SQUARE = mbppplus_row(
    prompt='"""\nWrite a function to square a number.\n"""\n',
    entry_point="square",
    canonical_solution="\ndef square(n):\n    return n * n\n",
    base_input=[[number] for number in range(1, 9)],
    plus_input=[],
)


@pytest.fixture
def data(tmp_path):
    def write(row=SQUARE):
        path = tmp_path / "rows.jsonl"
        path.write_text(json.dumps(row))
        return str(path)

    return write


def rows(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def program(name, table):
    """Squares from a table, whose name says how it grows."""
    return f"```python\n{name} = {table!r}\ndef square(n):\n    return {name}.get(n)\n```"


def tables(text):
    """The tables of the programs that a prompt shows."""
    return [(name, eval(table)) for name, table in re.findall(r"^(CAPPED|OPEN) = (\{.*\})$", text, re.MULTILINE)]


def repairer(request, number):
    """A model that repairs one failing test at a time, by the input and the expected output that it is shown.

    Most of its fresh programs pass half of the tests and can hold no more: each repair breaks what they passed before.
    The others pass one test, and can hold all.
    """
    prompt = request["messages"][-1]["content"]
    shown = tables(prompt)
    if not shown:
        return (
            program("OPEN", {8: 64})
            if request["seed"] % 4 == 0
            else program("CAPPED", {n: n * n for n in (1, 2, 3, 4)})
        )
    name, table = shown[0]
    for _, other in shown[1:]:
        table = {**other, **table}
    failing = re.search(r"`square\((\d+)\)` returns .*; expected: `(\d+)`", prompt)
    table[int(failing[1])] = int(failing[2])
    if name == "CAPPED":
        table = dict(list(table.items())[-4:])
    return program(name, table)


def search(folder, data, answer, **settings):
    settings = {"operators": {"fresh": 0.2, "repair": 0.8}, "iterations": 60, "seed": 3, **settings}
    with endpoint(answer) as (address, seen):
        config = SearchConfig(
            model="m", endpoint=address, task="code", task_settings={"data": data}, answers=1, processes=1, **settings
        )
        return search_into(folder, config), seen


def test_a_front_solves_what_the_best_alone_does_not(data, tmp_path):
    front, _ = search(tmp_path / "front", data(), repairer)
    best, _ = search(tmp_path / "best", data(), repairer, parents="best")
    assert front.settings["parents"] == "weighting"  # without a setting
    assert front.solved_at["iterations"][0] < 45
    assert best.spent["iterations"][0] == 60
    assert not best.solved


def test_crossing_two_programs_joins_what_they_pass(data, tmp_path):
    halves = [{n: n * n for n in (1, 2, 3, 4)}, {n: n * n for n in (5, 6, 7, 8)}]

    def answer(request, number):
        shown = tables(request["messages"][-1]["content"])
        assert len({str(table) for _, table in shown}) == len(shown)
        if len(shown) == 2:
            return program("OPEN", {**shown[0][1], **shown[1][1]})
        return program("OPEN", halves[request["seed"] % 2])

    result, seen = search(tmp_path / "search", data(), answer, operators={"fresh": 0.5, "cross": 0.5})
    assert result.solved
    crossed = [row for row in rows(tmp_path / "search", CANDIDATES) if row["operator"] == "cross"]
    assert crossed[-1]["solved"]
    assert {crossed[-1]["parent"], crossed[-1]["second"]} <= {
        row["number"] for row in rows(tmp_path / "search", CANDIDATES)
    }
    asked = next(request for request in seen if "Earlier answer B:" in request["messages"][-1]["content"])
    assert "It passes 4 of 8 tests, and fails:" in asked["messages"][-1]["content"]


def test_hidden_tests_decide_and_are_never_shown(data, tmp_path):
    row = {**SQUARE, "base_input": [[10_000]], "plus_input": [[number] for number in range(10_001, 10_033)]}
    problem = get("code", data=data(row)).problems()[0]
    held_out = {str(check.case.input[0]) for check in problem.hidden}
    assert len(held_out) == 33 - 16
    shown = {check.case.input[0] for check in problem.checks}
    passing = f"```python\ndef square(n):\n    return n * n if n in {shown} else 0\n```"
    result, seen = search(tmp_path / "search", data(row), lambda request, number: passing, iterations=4)
    assert not result.solved
    candidates = rows(tmp_path / "search", CANDIDATES)
    assert all(set(each["scores"]) == {1.0} for each in candidates)
    prompts = [request["messages"][-1]["content"] for request in seen]
    assert any("It passes all 16 tests that are shown, and fails others that are not" in prompt for prompt in prompts)
    texts = [*prompts, (tmp_path / "search" / CANDIDATES).read_text()]
    assert not any(number in text for number in held_out for text in texts)
    assert any(str(number) in texts[-1] for number in shown)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def square(n):\n    return n + 2", "- `square(1)` returns `3`; expected: `1`\n- `square(3)` returns `5`"),
        ("def square(n):\n    return 1 // (n - 1)", "It passes 0 of 8 tests, and fails:\n- `square(1)` ends in an "
         "exception: ZeroDivisionError: "),
        ("def square(n):\n    while n > 7: pass\n    return n * n", "It passes 7 of 8 tests, and fails:\n- `square(8)` "
         "takes too long"),
        ("def cube(n):\n    return n ** 3", "It does not define square."),
        ("def square(n)\n    return n", "It fails all 8 tests: SyntaxError: "),
        ("import nothing_of_this_name", "It fails all 8 tests: ModuleNotFoundError: "),
        ("def square(n):\n    return 'x' * 5000", "returns `"),
    ],
)  # fmt: skip
def test_feedback_says_what_fails(source, said, data):
    task = get("code", data=data(), test_seconds=0.5)
    problem = task.problems()[0]
    (goal,) = goals_of(task)
    request = ScoringRequest(0, problem.id, goal.name, f"```python\n{source}\n```", 1)
    (result,) = GoalScorer(task, {problem.id: problem}, {goal.name: goal}).score([request])
    feedback = result.answers[0].feedback
    assert said in feedback
    assert len(feedback) < 1000
    assert feedback.count("\n") <= 4
    parent = Candidate(
        0, 0, "fresh", None, 1, f"Here it is:\n```python\n{source}\n```\nDone.", (0.0,), 0.0, False, None, feedback
    )
    (message,) = request_for_move(task, SearchProblem(problem, goal), Move("repair", parent), 1, None).messages
    assert feedback in message["content"]
    assert "Here it is" not in message["content"]  # the program alone
    assert message["content"].endswith(task.single)


def test_a_program_that_reads_standard_input_is_told_what_it_printed(tmp_path):
    row = {
        "name": "twice",
        "description": "Print twice the number.",
        "public_tests": {"input": ["3\n"], "output": ["6\n"]},
    }
    row |= {"private_tests": {"input": ["5\n"], "output": ["10\n"]}, "generated_tests": {"input": [], "output": []}}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row))
    task = get("code", data=str(path))
    problem = task.problems()[0]
    answer = "```python\nprint(int(input()) + 3)\n```"
    (vector,) = task.score_all([problem], [answer])
    (feedback,) = task.feedback_all([problem], [answer], [vector])
    assert "It passes 1 of 2 tests, and fails:\n- with the input `'5\\n'` it prints `'8" in feedback
    assert "expected: `'10" in feedback


def test_feedback_without_scores_runs_the_program(data):
    task = get("code", data=data())
    problem = task.problems()[0]
    answer = "```python\ndef square(n):\n    return n\n```"
    assert task.feedback_all([problem], [answer], [(0.0,)])[0].startswith("It passes 1 of 8 tests")
    assert task.feedback_all([problem], ["```python\n```"], [(0.0,)]) == ["It has no Python program."]


def test_a_search_with_repairs_is_resumed(data, tmp_path):
    whole, _ = search(tmp_path / "whole", data(), repairer)
    search(tmp_path / "cut", data(), repairer, iterations=3)
    again, seen = search(tmp_path / "cut", data(), repairer)
    assert again.solved_at["iterations"] == whole.solved_at["iterations"]
    for name in (GENERATIONS, CANDIDATES):
        assert rows(tmp_path / "cut", name) == rows(tmp_path / "whole", name)
    assert len(seen) == len(rows(tmp_path / "whole", GENERATIONS)) - 9
