"""Expected outputs of problems whose data has none: computed when they are needed, and kept in the user's cache."""

import gzip
import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.tasks import code_rows
from tests.tasks.watched import WatchedSandbox, only, prepared, task_on
from vpo.sandbox.verdicts import Limits, Output, Status, Verdict
from vpo.tasks.code import output_cache
from vpo.tasks.code.output_cache import OutputCache
from vpo.tasks.code.problem import Check, Draft
from vpo.util.caches import cache_folder

RICH = """
def rich(number):
    if number == 0:
        raise KeyError("none\\x1b")
    return {
        1: (1, 1.0, True, None, -0.0, float("inf")),
        2: {(1, 2): {frozenset({1, "a"}), "b"}, "nested": [[], (), {}]},
        3: 10 ** 2000,
        4: "\\ud800 é \\x00",
        5: b"\\xff",
        6: complex(1, -2),
        7: [float("nan")],
    }[number]
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vpo" / "expected_outputs"


def rows(count):
    return [code_rows.mbppplus_row(task_id=f"Mbpp/{9001 + number}") for number in range(count)]


def rich_row():
    inputs = [[number] for number in range(8)]
    return code_rows.mbppplus_row(
        entry_point="rich", canonical_solution=RICH, base_input=inputs, plus_input=[], prompt="Be rich."
    )


def values(problem):
    """Expected outputs as texts that tell nan, -0.0 and True apart; the members of a set are sorted by their text."""
    return [text_of(check.case.expected) for check in problem.checks]


def text_of(value):
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}({sorted(map(text_of, value))})"
    if isinstance(value, dict):
        return f"dict({[(text_of(key), text_of(each)) for key, each in value.items()]})"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({list(map(text_of, value))})"
    return repr(value)


# Computed when they are needed


def test_prompts_need_no_solution_to_be_run(tmp_path):
    task = task_on(tmp_path, [*rows(2), code_rows.mbppplus_row(canonical_solution="def (", task_id="Mbpp/1")])
    for problem in task.problems():
        assert "Write a function to add two numbers." in task.ask(problem, 3)[-1]["content"]
        assert task.gold(problem) is not None
    assert task.patient.solved == []


def test_reading_the_checks_of_one_problem_runs_one_solution(tmp_path, monkeypatch):
    task = task_on(tmp_path, rows(3))
    monkeypatch.setattr("vpo.tasks.code.expected.patient_sandbox", lambda *, unsafe: task.patient)
    first, *_ = task.problems()
    assert len(task.names_of(first)) == 16
    assert len(first.hidden) == 26
    assert [len(programs) for programs in task.patient.solved] == [1]


def test_scoring_runs_the_solutions_of_its_problems_in_one_call(tmp_path):
    task = task_on(tmp_path, [*rows(3), code_rows.mbppplus_row(canonical_solution="def (", task_id="Mbpp/1")])
    one, other, *_ = task.problems()
    assert task.score_all([one, other, one], ["def add(a, b): return a + b", None, "pass"]) == [
        (1.0,) * 16,
        (0.0,) * 16,
        (0.0,) * 16,
    ]
    assert [len(programs) for programs in task.patient.solved] == [2]
    task.score_all([one, other], [None, None])
    assert len(task.patient.solved) == 1


def test_a_prepared_problem_is_pickled_with_its_outputs(tmp_path, cache):
    (problem,) = prepared(task_on(tmp_path, rows(1)))
    copied = pickle.loads(pickle.dumps(problem))
    assert copied == problem
    shutil.rmtree(cache)
    assert copied.checks == problem.checks
    assert not cache.exists()  # nothing was computed again


def test_the_fields_of_a_problem_are_plain_data_before_and_after_it_is_prepared(tmp_path):
    task = task_on(tmp_path, rows(1))
    (problem,) = task.problems()
    before = json.dumps(asdict(problem))
    task.prepare([problem])
    assert json.dumps(asdict(problem)) == before


# Kept


def test_outputs_are_the_same_with_and_without_a_cache(tmp_path):
    first, second = (task_on(tmp_path, [rich_row()]) for _ in range(2))
    (computed,), (kept,) = prepared(first), prepared(second)
    assert len(first.patient.solved) == 1
    assert second.patient.solved == []
    assert values(kept) == values(computed)
    assert kept.excluded == computed.excluded
    assert kept.excluded[0].startswith("input 0: exception: KeyError")
    assert len(kept.checks) == 7


@pytest.mark.parametrize(
    "change",
    [
        {"canonical_solution": "def add(a, b):\n    return b + a\n"},
        {"entry_point": "sum_div", "canonical_solution": "def sum_div(a, b):\n    return a + b\n"},
        {"base_input": [[1, 2], [3, 4.0]]},
        {"base_input": [[1, 2], [True, 4]]},
    ],
)
def test_another_problem_has_other_outputs(tmp_path, cache, change):
    prepared(task_on(tmp_path, [code_rows.mbppplus_row()]))
    prepared(task_on(tmp_path, [code_rows.mbppplus_row(**change)]))
    assert len(list(cache.iterdir())) == 2


def test_what_the_outputs_follow_from_is_in_the_name_of_a_file(tmp_path, monkeypatch):
    draft = only(task_on(tmp_path, [code_rows.mbppplus_row()])).draft
    sandbox = WatchedSandbox()
    names = {OutputCache(sandbox)._path(draft)}
    sandbox.limits = Limits(memory_mb=1024)
    names.add(OutputCache(sandbox)._path(draft))
    monkeypatch.setattr(output_cache, "_judge", lambda: "another version")
    names.add(OutputCache(sandbox)._path(draft))
    monkeypatch.setattr(sys, "version", "another Python")
    names.add(OutputCache(sandbox)._path(draft))
    wrapped = tuple(Check(each.case, "def vpo_check(*args): pass") for each in draft.checks)
    names.add(OutputCache(sandbox)._path(replace(draft, checks=wrapped)))
    assert len(names) == 5
    assert OutputCache(sandbox)._path(replace(draft, statement="In other words.", id="x")) in names


def test_a_name_does_not_depend_on_the_order_of_a_set(cache):
    script = (
        "from vpo.sandbox.verdicts import Case\n"
        "from vpo.sandbox import Limits\n"
        "from types import SimpleNamespace as N\n"
        "from vpo.tasks.code.output_cache import OutputCache\n"
        "from vpo.tasks.code.problem import Check, Draft\n"
        "case = Case(({'one', 'two', 'three', 'four'},), None)\n"
        "sandbox = N(isolation=N(name='none'), limits=Limits())\n"
        "print(OutputCache(sandbox)._path(Draft('p', '', (Check(case),), entry='f')))\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-9],
        lambda data: b"no gzip",
        lambda data: data[:20] + bytes([data[20] ^ 255]) + data[21:],
        lambda data: gzip.compress(b"[]"),
        lambda data: gzip.compress(b'{"value": 1}'),
        lambda data: gzip.compress(b"[" * 5000),
        lambda data: gzip.compress(json.dumps([{"value": {"x": 1}}] * 42).encode()),
        lambda data: gzip.compress(json.dumps([{"reason": 1, "detail": 2}] * 42).encode()),
        lambda data: gzip.compress(b"\xff"),
    ],
)
def test_a_damaged_file_is_ignored_and_written_again(tmp_path, cache, damage):
    (before,) = prepared(task_on(tmp_path, rows(1)))
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    task = task_on(tmp_path, rows(1))
    (after,) = prepared(task)
    assert len(task.patient.solved) == 1
    assert after.checks == before.checks
    assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, cache, monkeypatch):
    (tmp_path / "cache").write_text("a file")  # even root cannot make a folder in it
    assert len(only(task_on(tmp_path, rows(1))).checks) == 16
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert cache_folder("expected_outputs") is None
    (problem,) = prepared(task_on(tmp_path, rows(1)))
    assert len(problem.checks) == 16


def test_several_threads_write_one_cache(tmp_path, cache):
    problem = only(task_on(tmp_path, rows(1)))
    kept = OutputCache(WatchedSandbox())
    outputs = [Output(number) for number in range(len(problem.draft.checks))]
    threads = [threading.Thread(target=kept.write, args=(problem.draft, outputs)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept.read(problem.draft) == outputs
    assert len(list(cache.iterdir())) == 1  # no temporary file is left


@pytest.mark.parametrize(
    ("verdict", "is_kept"),
    [
        (Verdict(Status.FAILED, "exception", "TypeError"), True),
        (Verdict(Status.FAILED, "timeout"), False),
        (Verdict(Status.FAILED, "memory", "MemoryError: "), True),
        (Verdict(Status.FAILED, "wrong answer", "output of more than 16,000,000 bytes"), True),
        (Verdict(Status.FAILED, "memory", "its output takes too much time or memory to read"), False),
        (Verdict(Status.NOT_RUN), False),
        (Verdict(Status.ERROR, detail="the judge could not be run"), False),
    ],
)
def test_failures_that_another_machine_may_not_have_are_not_kept(tmp_path, verdict, is_kept):
    draft: Draft = only(task_on(tmp_path, rows(1))).draft
    kept = OutputCache(WatchedSandbox())
    outputs = [Output(1)] * 41 + [Output(failure=verdict)]
    kept.write(draft, outputs)
    assert kept.read(draft) == (outputs if is_kept else None)
