"""`vpo search --strategy openevolve`: OpenEvolve on the problems of a task."""

import json
import multiprocessing
import os
import signal
import time
from contextlib import contextmanager

import pytest

pytest.importorskip("openevolve")

from tests.endpoint import endpoint
from vpo.search.config import SearchConfig
from vpo.search.log import CANDIDATES, GENERATIONS
from vpo.search.openevolve.project import evaluator
from vpo.search.run import search_into
from vpo.tasks.answers import write
from vpo.tasks.maze import MazeTask

TASK = MazeTask(size=7)
MAZES = TASK.problems("test", count=2)
BAD_TASK = """
from vpo.tasks.maze import MazeTask

class Bad(MazeTask):
    name = "bad"

    def score(self, problem, answer):
        if "X" in answer:
            raise RuntimeError("as the answer says")
        return super().score(problem, answer)
"""


def config(address, **changes):
    return SearchConfig(
        **{
            **{"model": "m", "endpoint": address, "strategy": "openevolve", "task": "maze", "answers": 3},
            **{"task_settings": {"size": 7}, "problems": 1, "iterations": 4, "conditions": ("completion>=1",)},
            **{"features": ("gold", "diamond"), "limit": 20.0, **changes},
        }
    )


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_openevolve_searches_the_cases_of_a_task(tmp_path):
    best = TASK.gold(MAZES[0])

    def answer(request, number):
        text = request["messages"][-1]["content"]
        assert "What counts now is: completion>=1" in text
        assert "Give 3 different answers" in text
        assert TASK.question(MAZES[0])[0]["content"] in text
        return write([best[: number + 1], f"{best[:-1]}{number % 2 * ' '}x", best if number >= 2 else "nonsense"])

    folder = tmp_path / "a"
    with endpoint(answer) as (address, seen):
        result = search_into(folder, config(address, iterations=8))
        requests = len(seen)
        assert 3 <= requests <= 5  # it ends once the problem is solved
        again = search_into(folder, config(address, iterations=8))
        assert len(seen) == requests  # nothing is done twice
    assert result.solved == again.solved == {f"{MAZES[0].id} completion>=1"}
    assert result.solved_at["iterations"].tolist() == [3]
    assert result.solved_at["answers"].tolist() == [9]
    generations, candidates = lines(folder, GENERATIONS), lines(folder, CANDIDATES)
    assert [row["iteration"] for row in generations][:3] == [0, 1, 2]
    assert {row["operator"] for row in generations} == {"openevolve"}
    assert {row["tokens"] for row in generations} == {7}
    for row in candidates:
        if row["answer"] is not None:
            assert row["scores"] == pytest.approx(TASK.score(MAZES[0], row["answer"]))
    written = json.loads((folder / "openevolve" / "0" / "config.yaml").read_text())
    assert written["database"]["feature_dimensions"] == ["gold", "diamond"]


def test_an_interrupted_search_resumes_from_the_checkpoint(tmp_path):
    with endpoint(lambda request, number: write(["U" * (number + 1), "D" * (number + 1), "L"])) as (address, seen):
        short = tmp_path / "a"
        search_into(short, config(address, iterations=2))
        result = search_into(short, config(address, iterations=3))
        assert len(seen) == 3
        for name in (GENERATIONS, CANDIDATES, "ended.json"):
            (short / name).unlink()  # as if it had been killed before it was read back
        assert search_into(short, config(address, iterations=3)).cases == result.cases
        assert len(seen) == 3
    assert result.spent["generations"].tolist() == [3]


def test_a_lost_process_is_reported_and_the_search_continues(tmp_path):
    def answer(request, number):
        if number == 2:  # the process that requests is killed, as by a system that is out of memory
            for pid in started:
                os.kill(pid, signal.SIGKILL)
        return write([f"{'U' * number}D", "L" * (number + 1), f"{'R' * number}U"])

    started = set()
    with endpoint(answer) as (address, seen):
        four = config(address, iterations=4)
        with (
            noting_processes(started),
            pytest.raises(ValueError, match="was killed by signal 9; resume with the same command"),
        ):
            search_into(tmp_path / "a", four)
        assert not (tmp_path / "a" / "ended.json").exists()
        result = search_into(tmp_path / "a", four)
    assert result.spent["iterations"].tolist() == [4]
    assert len(seen) >= 4


@contextmanager
def noting_processes(started):
    """Note the processes that this one starts: that of OpenEvolve."""
    real = multiprocessing.process.BaseProcess.start

    def start(process):
        real(process)
        started.add(process.pid)

    patch = pytest.MonkeyPatch()
    patch.setattr(multiprocessing.process.BaseProcess, "start", start)
    try:
        yield
    finally:
        patch.undo()


def test_an_endpoint_that_is_down_is_one_error_and_is_retried_later(tmp_path):
    with pytest.raises(
        ValueError, match=r"OpenEvolve got no completion from http://127\.0\.0\.1:9/v1: LLM generation failed"
    ):
        search_into(tmp_path / "a", config("http://127.0.0.1:9/v1", iterations=1))
    with endpoint(lambda request, number: write(["U", "D", "L"])) as (address, _):
        result = search_into(tmp_path / "a", config(address, iterations=1))
    assert result.spent["answers"].tolist() == [3]


def test_the_limit_of_a_request_holds(tmp_path):
    def answer(request, number):
        if number == 1:
            time.sleep(60)
        return write([f"{'U' * number}D", f"{'L' * number}U", "D"])

    with endpoint(answer) as (address, seen):
        began = time.monotonic()
        result = search_into(tmp_path / "a", config(address, iterations=3, limit=1.5))
        assert len(seen) == 4
    assert time.monotonic() - began < 50
    assert result.spent["answers"].tolist() == [9]
    assert result.failures == {}


def test_a_failed_request_is_retried_once_over_and_no_reply_is_lost(tmp_path):
    def answer(request, number):
        if number % 3 == 0:
            return (503, b"") if number else (429, b"{}", {"Retry-After": "0.1"})
        return write([f"{'U' * number}D", f"{'L' * number}U", "D"])

    with endpoint(answer) as (address, seen):
        result = search_into(tmp_path / "a", config(address, iterations=4))
        assert len(seen) == 6  # 4 completions, and 2 failures that are retried
    assert result.failures == {}
    texts = [row["text"] for row in lines(tmp_path / "a", GENERATIONS)]
    assert texts == [answer(None, number) for number in (1, 2, 4, 5)]
    with endpoint(lambda request, number: answer(None, 1) if number == 0 else (500, b"")) as (address, seen):
        failing = config(address, iterations=2)
        result = search_into(tmp_path / "b", failing)
        assert len(seen) == 4  # three tries of the second
    (reason,) = result.failures
    assert "500" in reason
    assert result.spent["answers"].tolist() == [6]


def test_an_answer_without_a_score_is_not_in_the_database(tmp_path):
    (tmp_path / "task.py").write_text(BAD_TASK)
    with endpoint(lambda request, number: write(["X", f"{'U' * (number + 1)}D", "X L"])) as (address, _):
        bad = config(address, task=str(tmp_path / "task.py"), iterations=2, conditions=(), targets=("gold=1",))
        result = search_into(tmp_path / "a", bad)
    assert result.failures == {"RuntimeError: as the answer says": 4}
    rows = lines(tmp_path / "a", CANDIDATES)
    assert [(row["answer"], row["scores"] is None) for row in rows[:3]] == [("X", True), ("UD", False), ("X L", True)]
    checkpoint = tmp_path / "a" / "openevolve" / "0" / "out" / "checkpoints" / "checkpoint_6"
    programs = [json.loads(path.read_text()) for path in (checkpoint / "programs").iterdir()]
    assert {program["code"] for program in programs} <= {"UD", "UUD", "(none yet)"}


def test_a_failed_problem_is_recorded_and_the_others_continue(tmp_path):
    def answer(request, number):
        first = TASK.question(MAZES[0])[0]["content"] in request["messages"][-1]["content"]
        return "no tags at all" if first else write(["U", "D", "```\nL\n``` R"])

    with endpoint(answer) as (address, _):
        result = search_into(tmp_path / "a", config(address, problems=2, iterations=2, budget={"answers": 3}))
    assert result.spent["answers"].tolist() == [3, 3]
    assert result.failures["the completion has no such answer"] == 3
    answers = [row["answer"] for row in lines(tmp_path / "a", CANDIDATES)]
    assert "```\nL\n``` R" in answers  # as it is


def test_answers_are_cut_out_and_scored_as_the_task_does_it(tmp_path):
    from tests.tasks.rows import musique_row
    from vpo.tasks.musique import MusiqueTask

    (tmp_path / "rows.jsonl").write_text(json.dumps(musique_row()) + "\n")
    task = MusiqueTask(data=str(tmp_path / "rows.jsonl"))
    (problem,) = task.problems("test", count=1)
    for answers in (1, 3):
        gold = task.gold(problem)
        text = gold if answers == 1 else write([gold, "<answer>else</answer>", "<answer>nothing</answer>"])
        with endpoint(lambda request, number, text=text: text) as (address, _):
            changes = {"task": "musique", "task_settings": {"data": str(tmp_path / "rows.jsonl")}, "features": ()}
            one = config(address, conditions=(), targets=("answer_f1=1",), iterations=1, answers=answers, **changes)
            result = search_into(tmp_path / str(answers), one)
        assert len(result.solved) == 1
        rows = lines(tmp_path / str(answers), CANDIDATES)
        assert rows[0]["scores"] == [1.0] * 5


def test_what_openevolve_cannot_do_is_refused(tmp_path):
    for changes in ({"operators": {"fresh": 1.0}}, {"budget": {"tokens": 10}}):
        with pytest.raises(ValueError, match="openevolve takes neither operators nor a budget in tokens"):
            config("http://127.0.0.1:9/v1", **changes)
    with pytest.raises(ValueError, match="thinking cannot be set for an endpoint"):
        config("http://127.0.0.1:9/v1", thinking=True)


def test_the_evaluator_gives_every_metric_or_why_there_is_none(tmp_path):
    (tmp_path / "task.py").write_text(BAD_TASK)
    source = {"task": str(tmp_path / "task.py"), "settings": {"size": 7}, "split": "test", "count": 1}
    source["goals"] = {"targets": ["gold=1"]}
    settings = {"source": source, "problem": MAZES[0].id, "goal": "gold=1", "limit": 20, "objectives": TASK.names}
    evaluate = evaluator(json.dumps(settings))
    program = tmp_path / "program.txt"
    program.write_text(TASK.gold(MAZES[0]))
    metrics = evaluate(str(program))
    scores = TASK.score(MAZES[0], program.read_text())
    assert metrics == pytest.approx(
        {
            **dict(zip(TASK.names, scores, strict=True)),
            **{"combined_score": scores[1], "vpo_solved": metrics["vpo_solved"]},
        }
    )
    program.write_text("X")
    assert evaluate(str(program)) == {"vpo_unscored": "RuntimeError: as the answer says"}
