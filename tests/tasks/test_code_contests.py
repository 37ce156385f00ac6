"""Rows of contests: LiveCodeBench, DeepCoder and CodeContests, in the published schemas."""

import base64
import pickle
import zlib
from pathlib import Path

import pytest

from tests.tasks import code_rows
from tests.tasks.watched import only, passes, task_on
from vpo.tasks.code import CodeTask
from vpo.tasks.code.contests import read_private


def test_a_row_of_livecodebench_on_standard_input(tmp_path):
    task = task_on(tmp_path, [code_rows.livecodebench_row()])
    problem = only(task)
    assert problem.entry is None
    assert len(problem.checks) == 3
    assert task.score(problem, "print(input())") == (1, 1, 1)
    assert task.score(problem, "print(0)") == (1, 0, 0)
    assert task.gold(problem) is None


def test_a_row_of_livecodebench_with_a_method(tmp_path):
    task = task_on(tmp_path, [code_rows.livecodebench_row(functional=True)])
    problem = only(task)
    assert problem.entry == "Solution.work"
    assert [check.case.input for check in problem.checks] == [([1, 1], 2), ([2, 1], 2)]
    answer = "class Solution:\n    def work(self, items: List[int], k):\n        return [1, 2]"
    assert task.score(problem, answer) == (1, 1)
    assert "class Solution" in task.question(problem)[0]["content"]


def test_livecodebench_is_split_by_date(tmp_path):
    days = {"old": "2025-01-31T23:00:00", "first": "2025-02-01T00:00:00", "last": "2025-04-30", "late": "2025-05-01"}
    rows = [code_rows.livecodebench_row(name, day) for name, day in days.items()]
    task = task_on(tmp_path, rows, "test5.jsonl")
    assert [problem.id for problem in task.problems("train")] == ["old"]
    assert [problem.id for problem in task.problems("test")] == ["first", "last"]
    assert len(task.problems("all")) == 4
    other = task_on(tmp_path, rows, before="2025-01-01", until="2025-02-01")
    assert [problem.id for problem in other.problems("test")] == ["old"]
    for before, until in (("1 May", "2025-02-01"), ("2025-02-01", "2025-02-01")):
        with pytest.raises(ValueError, match=r"must be dates|until must be later"):
            CodeTask(before=before, until=until)


class Evil:
    def __reduce__(self):
        return Path.touch, (Path("/nowhere/evil"),)


def packed(payload):
    return base64.b64encode(zlib.compress(payload)).decode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (packed(pickle.dumps(Evil())), r"cannot be unpickled .UnpicklingError: it imports pathlib"),
        (packed(b"cos\nsystem\n(S'true'\ntR."), "it imports os.system"),
        (packed(pickle.dumps(["no text"])), "the pickle must hold text, not list"),
        (packed(pickle.dumps("no JSON")), "must be JSON"),
        (packed(b""), "cannot be unpickled"),
        (packed(b"\x80\x04."), "cannot be unpickled"),
        (base64.b64encode(b"not compressed").decode(), "cannot be decompressed"),
        ("!!", "cannot be decompressed"),
    ],
)
def test_private_tests_are_unpickled_as_plain_values_alone(text, message):
    with pytest.raises(ValueError, match=f"here: .*{message}|here {message}"):
        read_private(text, "here")


def test_private_tests_are_bounded(monkeypatch):
    monkeypatch.setattr("vpo.tasks.code.contests.LARGEST", 1000)
    with pytest.raises(ValueError, match="the tests must be at most 1000 bytes, decompressed"):
        read_private(packed(pickle.dumps("x" * 10_000)), "here")
    assert read_private('[{"input": "1"}]', "here") == [{"input": "1"}]


@pytest.mark.parametrize(
    ("tests", "entry", "answer"),
    [
        ([{"input": "1\n", "output": "1\n", "type": "stdin_stdout"}], None, "print(input())"),
        ([{"input": "1\n", "output": "1\n"}], None, "print(input())"),
        ({"inputs": ["1\n", ["2", "3"]], "outputs": ["1\n", ["2"]]}, None, "print(input())"),
        ({"fn_name": "f", "inputs": [[1, 2]], "outputs": [[3]]}, "f", "def f(a, b):\n    return a + b"),
        (
            [{"input": [1, 2], "output": [3], "type": "function_call", "fn_name": "f"}],
            "f",
            "def f(a, b):\n    return a + b",
        ),
        (
            [{"input": "1\n[2]", "output": "3", "testtype": "functional", "metadata": {"func_name": "f"}}],
            "f",
            "def f(a, b):\n    return a + b[0]",
        ),
    ],
)
def test_rows_of_deepcoder(tmp_path, tests, entry, answer):
    task = task_on(tmp_path, [code_rows.deepcoder_row(tests)])
    problem = only(task)
    assert problem.entry == entry
    assert set(task.score(problem, answer)) == {1.0}
    assert problem.id == "rows.jsonl:1"
    assert problem.solution == "print(input())"


def test_rows_of_deepcoder_with_a_class(tmp_path):
    tests = {"fn_name": "f", "inputs": [[1]], "outputs": [1]}
    problem = only(
        task_on(tmp_path, [code_rows.deepcoder_row(tests, starter_code="class Solution:\n  def f(self, a):")])
    )
    assert problem.entry == "Solution.f"


def test_rows_of_codecontests(tmp_path):
    task = task_on(tmp_path, [code_rows.codecontests_row()])
    problem = only(task)
    assert problem.id == "1_A. Echo"
    assert len(problem.checks) == 4
    assert passes(task, problem)
    plain = {"id": "cc-1", "problem": "Echo.", "tests": {"inputs": ["1\n"], "outputs": ["1\n"]}}
    assert only(task_on(tmp_path, [plain])).id == "cc-1"
