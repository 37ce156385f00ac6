"""Scoring in processes: in parallel, within a limit, and whatever a scorer does."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from vpo.search.scorer import ScoringRequest, TaskSource, form_text
from vpo.search.scoring_pool import ScoringPool
from vpo.tasks import get
from vpo.tasks.answers import write

TASK = """
import os, subprocess, time
from dataclasses import dataclass
from vpo.tasks import Objective, Task

@dataclass(frozen=True)
class Word:
    id: str

class Wild(Task):
    name, summary = "wild", "does what the answer says"
    objectives = (Objective("length", "length"), Objective("one", "one"))
    weights = (0.5, 0.5)
    def problems(self, split="test", *, count=None):
        return [Word(f"w{n}") for n in range(3 if count is None else count)]
    def question(self, problem):
        return [{"role": "user", "content": problem.id}]
    def score(self, problem, answer):
        if answer == "hang":
            time.sleep(60)
        if answer == "die":
            os._exit(3)
        if answer == "raise":
            raise RuntimeError("as the answer says")
        if answer == "exit":
            raise SystemExit("as the answer says")
        if answer.startswith("/"):
            child = subprocess.Popen(["sleep", "60"])
            open(answer, "w").write(str(child.pid))
            child.wait()
        while answer == "loop":
            pass
        return float("nan") if answer == "nan" else len(answer) / 10, 1.0
    def normal_form(self, answer):
        if answer == "form":
            raise RuntimeError("no form")
        return [answer] if answer == "odd form" else answer
    def read(self, completion, answers):
        if completion == "unparsable":
            raise RuntimeError("no parse")
        return super().read(completion, answers)
"""


IN_BATCHES = """
    def score_all(self, problems, answers):
        return super().score_all(problems, answers)
"""


@pytest.fixture(params=["", IN_BATCHES], ids=["one by one", "in batches"])
def source(request, tmp_path):
    file = tmp_path / "wild.py"
    file.write_text(TASK + request.param)
    return TaskSource(str(file), {}, "test", None, {"targets": ["length=1"]})


def score(pool, *answers):
    """Results by number, of completions with one of the answers and then x."""
    texts = [write([answer, "x"]) for answer in answers]
    requests = [ScoringRequest(number, "w1", "length=1", text, 2) for number, text in enumerate(texts)]
    return {result.number: result for result in pool.score(requests)}


@pytest.mark.parametrize("processes", [0, 2])
def test_every_request_is_scored_once(source, processes):
    pool = ScoringPool(source, processes, 30)
    try:
        results = score(pool, *("a" * (n % 10) for n in range(100)))
        assert len(results) == 100
        for number, result in results.items():
            first, second = result.answers
            assert first.scores == pytest.approx((number % 10 / 10, 1.0))
            assert first.value == pytest.approx(number % 10 / 10)
            assert first.answer == "a" * (number % 10)
            assert (second.answer, second.form) == ("x", "'x'")
            assert not first.solved
        (result,) = score(pool, "a" * 10).values()  # again, by the same processes
        assert result.answers[0].solved
        assert list(pool.score([])) == []
    finally:
        pool.close()


def test_what_hangs_dies_or_raises_costs_itself_alone(source):
    pool = ScoringPool(source, 2, 1.0)
    try:
        began = time.monotonic()
        results = score(pool, "a", "hang", "b", "die", "c", "exit", "d", "die", "hang", "e")
        assert time.monotonic() - began < 50
        assert {number: result.failure for number, result in results.items() if result.failure} == {
            1: "not scored within 1 s",
            3: "the process that scored it died",
            7: "the process that scored it died",
            8: "not scored within 1 s",
        }
        assert results[5].answers[0].failure == "SystemExit: as the answer says"
        assert all(results[number].answers[0].scores[1] == 1.0 for number in (0, 2, 4, 6, 9))
    finally:
        pool.close()


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        (write(["raise", "x"]), "RuntimeError: as the answer says"),
        (write(["nan", "x"]), "a score is not a finite number: [nan, 1.0]"),
        (write(["form", "x"]), "RuntimeError: no form"),
        (write(["odd form", "x"]), None),
        ("<answer_2>x</answer_2>", "the completion has no such answer"),
        ("", "the completion has no such answer"),
    ],
)
def test_one_answer_that_fails_costs_itself_alone(source, text, failure):
    (result,) = source.load().score([ScoringRequest(0, "w0", "length=1", text, 2)])
    first, second = result.answers
    assert first.failure == failure
    assert (first.scores is None) == (failure is not None)
    assert (second.failure is None) == ("x" in text)


def test_a_batch_is_scored_in_one_call(tmp_path):
    file = tmp_path / "wild.py"
    file.write_text(
        TASK + "    calls = 0\n    def score_all(self, problems, answers):\n        Wild.calls += 1\n"
        "        return [(len(answers) / 10, float(Wild.calls))] * len(answers)\n"
    )
    pool = ScoringPool(TaskSource(str(file), {}, "test", None, {"targets": ["length=1"]}), 1, 30)
    try:
        results = score(pool, "a", "b", "c")
    finally:
        pool.close()
    assert {answer.scores for result in results.values() for answer in result.answers} == {(0.6, 1.0)}


def test_an_answer_that_raises_in_a_batch_costs_itself_alone(source):
    texts = [write([answer, "x"]) for answer in ("a", "raise", "nan", "exit", "form", "b")]
    requests = [ScoringRequest(number, "w0", "length=1", text, 2) for number, text in enumerate(texts)]
    results = source.load().score([*requests, ScoringRequest(6, "w0", "length=1", "unparsable", 2)])
    assert [result.number for result in results] == list(range(7))
    assert results[6].failure == "RuntimeError: no parse"
    failures = [[answer.failure for answer in result.answers] for result in results[:6]]
    assert [second for _, second in failures] == [None] * 6
    assert [first for first, _ in failures] == [
        None,
        "RuntimeError: as the answer says",
        "a score is not a finite number: [nan, 1.0]",
        "SystemExit: as the answer says",
        "RuntimeError: no form",
        None,
    ]


@pytest.mark.parametrize("said", ["['wrong'] * len(answers)", "[]", "1 / 0"])
def test_booleans_of_numpy_are_booleans(said, tmp_path):
    file = tmp_path / "wild.py"
    file.write_text(
        f"import numpy\n{TASK}    def solved(self, vector):\n        return numpy.all(numpy.asarray(vector) >= 0.3)\n"
        f"    def feedback_all(self, problems, answers, vectors):\n        return {said}\n"
    )
    scorer = TaskSource(str(file), {}, "test", None, {}).load()
    (result,) = scorer.score([ScoringRequest(0, "w1", "own", write(["aaa", "a"]), 2)])
    solving, wrong = result.answers
    assert (solving.solved, wrong.solved) == (True, False)
    assert (solving.failure, wrong.failure) == (None, None)
    assert (solving.feedback, wrong.feedback) == ("", "wrong" if "wrong" in said else "")


def test_half_of_a_surrogate_pair_is_stored(source):
    (result,) = source.load().score([ScoringRequest(0, "w1", "length=1", "a\ud83d", 0)])
    result.answers[0].answer.encode()


def test_a_worker_that_is_replaced_late_ends_nothing(source):
    pool = ScoringPool(source, 2, 1.0)
    try:
        texts = [write([answer, "x"]) for answer in ("die", "a", "die", "b")]
        done = []
        for result in pool.score(ScoringRequest(n, "w1", "length=1", text, 2) for n, text in enumerate(texts)):
            done.append(result.number)
            time.sleep(1.3)  # past the deadline of what was sent
        assert sorted(done) == [0, 1, 2, 3]
    finally:
        pool.close()


def test_a_parser_that_raises_costs_the_generation(source):
    (result,) = source.load().score([ScoringRequest(0, "w0", "length=1", "unparsable", 2)])
    assert (result.answers, result.failure) == ((), "RuntimeError: no parse")


def test_forms_are_the_same_in_every_process():
    assert form_text((frozenset({"b", "a"}), [1, None], "c")) == "({'a', 'b'}, (1, None), 'c')"


def test_processes_end_with_a_parent_that_is_killed(source, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys, time\n"
        "from vpo.search.scorer import ScoringRequest, TaskSource\n"
        "from vpo.search.scoring_pool import ScoringPool\n"
        "if __name__ == '__main__':\n"
        f"    pool = ScoringPool(TaskSource({source.task!r}, {{}}, 'test', None), 1, 500)\n"
        "    print(pool.workers[0].process.pid, flush=True)\n"
        "    list(pool.score([ScoringRequest(0, 'w1', 'own', '<answer>loop</answer>', 1)]))\n"
    )
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    time.sleep(1.5)  # it loops by now
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while running(worker):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_a_scorer_starts_ends_with_it(source, tmp_path):
    pool = ScoringPool(source, 1, 1.0)
    try:
        (result,) = score(pool, str(tmp_path / "pid")).values()
    finally:
        pool.close()
    assert result.failure == "not scored within 1 s"
    started = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while running(started):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def running(pid):
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_settings_are_checked(source):
    with pytest.raises(ValueError, match="processes must be 0 or more, not -1"):
        ScoringPool(source, -1, 1)
    with pytest.raises(ValueError, match="limit must be greater than 0 and finite, not 0"):
        ScoringPool(source, 0, 0)


@pytest.mark.parametrize("processes", [0, 1])
def test_problems_that_are_loaded_are_not_loaded_again(processes):
    problems = get("maze", size=7).problems("test", count=2)
    nowhere = TaskSource("maze", {"size": 7}, "no such split", None, {"targets": ["gold=1"]})
    pool = ScoringPool(nowhere, processes, 30, problems)
    try:
        (result,) = pool.score([ScoringRequest(0, problems[1].id, "gold=1", "<answer>RRDD</answer>", 1)])
    finally:
        pool.close()
    assert result.answers[0].scores is not None


@pytest.mark.parametrize("processes", [0, 1])
def test_problems_of_a_file_are_sent_or_loaded_again(source, processes):
    pool = ScoringPool(source, processes, 30, source.load().task.problems())
    try:
        (result,) = pool.score([ScoringRequest(0, "w2", "length=1", "<answer>xy</answer>", 1)])
    finally:
        pool.close()
    assert result.answers[0].scores == (0.2, 1.0)
